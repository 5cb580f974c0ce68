package conversation

import (
	"context"
	"strconv"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// tellForeign queues the host's own messages for the members that know only the SWICG draft, each
// in a Create of the host. Those members cannot read PublicMessages, and after a reset they can
// read nothing until they are added again. They get the messages of another member from that
// member's server.
func (f *fanout) tellForeign(ctx context.Context, tx *user.Tx, entries []user.LogEntry) error {
	to := f.listForeign(func(a user.Addressee) bool { return a.JoinedSeq < entries[0].Seq })
	if len(to) == 0 {
		return nil
	}
	var jobs []user.Job
	for _, e := range entries {
		if e.Sender != f.me() || !isPrivate(e.Content) || e.Kind != user.KindCommit && !f.conversation.Mixed {
			continue
		}
		told := vocab.Doc{"mlsGroupId": f.conversation.GroupID}
		told.SetCount("mlsEpoch", e.Epoch)
		told.SetCount("mlsGeneration", int64(e.Generation))
		if e.Kind == user.KindApplication {
			told["kind"] = "ChatMessage"
		}
		d := f.describeMessage("PrivateMessage", e.Sender, e.Content, told)
		jobs = append(jobs, f.newCreate(d, "/log/"+strconv.FormatInt(e.Seq, 10), e.At, f.listMembers()))
	}
	return tx.Deliveries.EnqueueAll(ctx, jobs, f.inboxesOf(to), f.now)
}

// tellForeignWelcome queues a Welcome for its recipient if the recipient knows only the SWICG
// draft and the host made the commit.
func (f *fanout) tellForeignWelcome(ctx context.Context, tx *user.Tx, committer vocab.ID, w user.Welcome) error {
	to := f.listForeign(func(a user.Addressee) bool { return a.Actor == w.Recipient })
	if len(to) == 0 || committer != f.me() {
		return nil
	}
	told := vocab.Doc{"mlsGroupId": f.conversation.GroupID}
	told.SetCount("mlsGeneration", int64(f.conversation.Generation))
	job := f.newCreate(f.describeMessage("Welcome", committer, w.Content, told), "/welcomes/"+w.ID.String(), w.CreatedAt, to)
	return tx.Deliveries.EnqueueAll(ctx, []user.Job{job}, f.inboxesOf(to), f.now)
}

// listForeign returns the addressees that know only the SWICG draft and for which the test holds,
// except those that the host blocks.
func (f *fanout) listForeign(holds func(user.Addressee) bool) (foreign []user.Addressee) {
	for _, a := range f.addressees {
		if !a.Lightweb && !a.Blocked && holds(a) {
			foreign = append(foreign, a)
		}
	}
	return foreign
}

// listMembers returns the addressees except the host and the actors that the host blocks.
func (f *fanout) listMembers() (members []user.Addressee) {
	me := f.me()
	for _, a := range f.addressees {
		if a.Actor != me && !a.Blocked {
			members = append(members, a)
		}
	}
	return members
}

// newCreate returns the job that sends a Create of the host, in the form of the SWICG draft.
func (f *fanout) newCreate(object vocab.Doc, path string, at time.Time, to []user.Addressee) user.Job {
	uri, published := string(f.conversation.URI), at.UTC().Format(time.RFC3339)
	object["id"], object["to"], object["summary"], object["published"] = uri+path, namesOf(to), "Encrypted message.", published
	return f.newJob(vocab.Doc{"type": vocab.Create, "object": object, "context": uri, "published": published}, to)
}
