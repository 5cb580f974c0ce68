package conversation

import (
	"cmp"
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// domainMembers limits the members of one registrable domain in a conversation without a host.
const domainMembers = mls.MaxMembers / 2

// noteNamed handles a member's message in a conversation without a host. It makes the sender and
// the actors that the message names members, because the sender's device sends the message to all
// members. Names alone fill no group: if there are too many, members that have never sent give way
// to named actors that have. The actors of one domain fill no group either.
func (r *receiver) noteNamed(ctx context.Context, members []user.ConversationMember) error {
	seats := map[string]int{}
	for _, m := range members {
		seats[policy.RegistrableDomain(m.Actor.Host())]++
	}
	named := slices.DeleteFunc(append([]vocab.ID{r.entry.sender}, audience.Open(r.Activity.Addressing)...), func(id vocab.ID) bool {
		if id == r.Me || slices.ContainsFunc(members, func(m user.ConversationMember) bool { return m.Actor == id }) {
			return true // a user who has left stays out
		}
		domain := policy.RegistrableDomain(id.Host())
		seats[domain]++
		return seats[domain] > domainMembers
	})
	id, room := r.conversation.ID, mls.MaxMembers-len(members)
	if len(named) > room {
		senders, err := r.tx.Messages.ListSenders(ctx, id, named)
		if err != nil {
			return err
		}
		named = append(senders, slices.DeleteFunc(named, func(id vocab.ID) bool { return slices.Contains(senders, id) })...)
		made, err := r.makeRoom(ctx, members, seats, max(0, len(senders)-room))
		if err != nil {
			return err
		}
		room += made
	}
	return r.tx.Conversations.Join(ctx, id, named[:min(len(named), max(0, room))], user.RoleMember, 0)
}

// makeRoom removes up to n members that have sent nothing which is still stored, first those of
// the domain with the most seats. It returns how many it removed.
func (r *receiver) makeRoom(ctx context.Context, members []user.ConversationMember, seats map[string]int, n int) (int, error) {
	var silent []vocab.ID
	for _, m := range members {
		if m.IsIn() && m.Actor != r.Me {
			silent = append(silent, m.Actor)
		}
	}
	heard, err := r.tx.Messages.ListSenders(ctx, r.conversation.ID, silent)
	if err != nil {
		return 0, err
	}
	silent = slices.DeleteFunc(silent, func(id vocab.ID) bool { return slices.Contains(heard, id) })
	slices.SortStableFunc(silent, func(a, b vocab.ID) int {
		return cmp.Compare(seats[policy.RegistrableDomain(b.Host())], seats[policy.RegistrableDomain(a.Host())])
	})
	gone := silent[:min(n, len(silent))]
	return len(gone), r.tx.Conversations.Forget(ctx, r.conversation.ID, gone)
}
