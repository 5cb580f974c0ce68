package conversation

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// bound limits the items that wait for a user: from one actor, from the actors of one domain, and
// in all.
type bound struct{ ofActor, ofDomain, all int }

// invitations limits the conversations for which the user has a Welcome and which no device of
// the user has joined yet.
var invitations = bound{ofActor: 20, ofDomain: 50, all: 200}

// isReached reports whether a bound is reached, so that the actor may add no further item. For an
// actor that the user knows, only the actor's own items count, so that strangers cannot keep out
// a friend.
func (b bound) isReached(ctx context.Context, tx *user.Tx, waiting []user.Waiting, actor vocab.ID) (bool, error) {
	domain := policy.RegistrableDomain(actor.Host())
	ofActor, ofDomain, all := 0, 0, 0
	for _, w := range waiting {
		all += w.N
		if policy.RegistrableDomain(w.Actor.Host()) == domain {
			ofDomain += w.N
		}
		if w.Actor == actor {
			ofActor += w.N
		}
	}
	if ofActor >= b.ofActor || ofDomain < b.ofDomain && all < b.all {
		return ofActor >= b.ofActor, nil
	}
	knows, err := isKnown(ctx, tx, actor)
	return !knows, err
}

// isKnown reports whether the user follows the actor or is friends with it.
func isKnown(ctx context.Context, tx *user.Tx, actor vocab.ID) (bool, error) {
	all, err := tx.Relationships.FindAll(ctx, actor)
	return slices.ContainsFunc(all, func(r user.Relationship) bool { return r.Type != user.Follower && r.Status == user.Accepted }), err
}

// mayInvite reports whether an actor may invite the user to one more conversation.
func (r *receiver) mayInvite(ctx context.Context, actor vocab.ID) (bool, error) {
	waiting, err := r.tx.Joined.CountInvitations(ctx)
	if err != nil {
		return false, err
	}
	reached, err := invitations.isReached(ctx, r.tx, waiting, actor)
	return !reached, err
}

// takeWelcome stores a Welcome from a host, and the conversation that it belongs to. A Welcome
// is refused if the user blocks the host or the sender, or if its key package is not the user's.
func (r *receiver) takeWelcome(ctx context.Context) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedSender)
	}
	if ours, err := r.tx.KeyPackages.Has(ctx, r.entry.keyPackage); err != nil || !ours {
		return Outcome{Reason: UnknownPackage}, err
	}
	reason, err := r.findOrJoin(ctx)
	if err != nil || reason != "" {
		return Outcome{Reason: reason}, err
	}
	return r.keepWelcome(ctx, r.entry.keyPackage)
}

// findOrJoin finds the conversation that a Welcome belongs to, or stores a new one. If the
// Welcome has to be refused, it returns the reason.
func (r *receiver) findOrJoin(ctx context.Context) (reason string, err error) {
	e, j := r.entry, r.conversation
	if j != nil && j.Status == user.StatusFrozen {
		return FrozenCopy, nil
	}
	if j != nil {
		fits, err := r.fitsGroup(ctx)
		if err != nil || !fits {
			return WrongGroup, err
		}
		return "", r.comeBack(ctx)
	}
	if taken, err := r.tx.Joined.IsGroupTaken(ctx, e.group); err != nil || taken {
		return WrongGroup, err
	}
	if may, err := r.mayInvite(ctx, r.Sender.ID); err != nil || !may {
		return TooMany, err
	}
	r.conversation = &user.JoinedConversation{ID: uuid.Must(uuid.NewV7()), URI: r.Activity.Target.ID, Host: r.Sender.ID, GroupID: e.group, Generation: e.generation, Epoch: e.epoch,
		LastSeq: e.seq, WholeSeq: e.seq, Status: user.StatusActive, FormerGroups: []string{}}
	isPair, err := joinPair(ctx, r.tx, r.Arrival, r.conversation, e.roster)
	if err != nil {
		return "", err
	}
	if err := r.tx.Joined.Add(ctx, *r.conversation, r.Now); err != nil {
		return "", err
	}
	if !isPair {
		if err := r.noteSuccessor(ctx); err != nil {
			return "", err
		}
	}
	return "", r.saveWelcomed(ctx)
}

// comeBack handles a Welcome to a conversation that is already stored. If the user had left the
// conversation, the log is read from the message after the commit that added the user again.
func (r *receiver) comeBack(ctx context.Context) error {
	j := r.conversation
	me, err := r.tx.Conversations.FindMember(ctx, j.ID, r.Me)
	if err != nil {
		return err
	}
	if !me.IsIn() {
		j.WholeSeq = max(j.WholeSeq, r.entry.seq)
	}
	r.advance(j)
	return r.saveWelcomed(ctx)
}

// saveWelcomed stores the state of the conversation. Messages may have been sent before the
// Welcome arrived, so it also calls NoteBehind to have the host's log read.
func (r *receiver) saveWelcomed(ctx context.Context) error {
	if err := r.saveState(ctx); err != nil {
		return err
	}
	r.tx.Joined.NoteBehind(r.conversation.ID, r.conversation.Host, false)
	return nil
}

// keepWelcome stores a Welcome for the device whose key package has the reference ref, and adds
// an event for the user.
func (r *receiver) keepWelcome(ctx context.Context, ref []byte) (Outcome, error) {
	w := user.Welcome{ID: uuid.Must(uuid.NewV7()), Recipient: r.Me, KeyPackage: ref, Content: r.entry.message, CreatedAt: r.Now, Sender: r.entry.sender, Object: r.entry.object}
	if r.conversation != nil {
		w.Conversation = r.conversation.ID
	}
	isNew, err := r.tx.Welcomes.Take(ctx, w)
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	row := r.row()
	row.Seq, row.Receipt = nil, nil
	if _, err := r.tx.Messages.Add(ctx, row); err != nil {
		return Outcome{}, err
	}
	return Outcome{Kept: true}, r.tell(ctx, eventWelcome, vocab.Doc{"welcomeId": w.ID.String()})
}
