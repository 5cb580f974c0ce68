package conversation

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errForeignMember refuses to let in who could not be sent a Welcome: that is the committer's to
// send, and only the host's own goes out.
var errForeignMember = unprocessable("foreign_member", "an actor whose server knows the SWICG draft alone is added by who made the conversation").At("/commit")

// tellForeign owes the members who know the SWICG draft alone what the host's user says, in a
// Create of that user. Handshakes in the open mean nothing to them.
func (f *fanout) tellForeign(ctx context.Context, tx LogTx, entries []db.LogEntry) error {
	to := f.listForeign(func(a db.Addressee) bool { return a.JoinedSeq < entries[0].Seq })
	if len(to) == 0 {
		return nil
	}
	var jobs []db.Job
	for _, e := range entries {
		if e.Kind != db.KindApplication || e.Sender != f.me() {
			continue
		}
		told := vocab.Doc{"kind": "ChatMessage", "mlsGroupId": f.conversation.GroupID}
		told.SetCount("mlsEpoch", e.Epoch)
		told.SetCount("mlsGeneration", int64(e.Generation))
		d := f.describeMessage("PrivateMessage", e.Sender, e.Content, told)
		jobs = append(jobs, f.newCreate(d, "/log/"+strconv.FormatInt(e.Seq, 10), e.At, f.listMembers()))
	}
	return tx.EnqueueAll(ctx, jobs, f.inboxesOf(to), f.now)
}

// tellForeignWelcome owes an actor who knows the SWICG draft alone the Welcome of a device.
func (f *fanout) tellForeignWelcome(ctx context.Context, tx LogTx, committer vocab.ID, w db.Welcome) error {
	to := f.listForeign(func(a db.Addressee) bool { return a.Actor == w.Recipient })
	if len(to) == 0 || committer != f.me() {
		return nil
	}
	told := vocab.Doc{"mlsGroupId": f.conversation.GroupID}
	told.SetCount("mlsGeneration", int64(f.conversation.Generation))
	job := f.newCreate(f.describeMessage("Welcome", committer, w.Content, told), "/welcomes/"+w.ID.String(), w.CreatedAt, to)
	return tx.EnqueueAll(ctx, []db.Job{job}, f.inboxesOf(to), f.now)
}

// listForeign returns those members for which a test holds and who know the SWICG draft alone.
func (f *fanout) listForeign(holds func(db.Addressee) bool) (foreign []db.Addressee) {
	for _, a := range f.addressees {
		if !a.Lightweb && a.LeftSeq == nil && holds(a) {
			foreign = append(foreign, a)
		}
	}
	return foreign
}

// listMembers returns the members but the host.
func (f *fanout) listMembers() (members []db.Addressee) {
	me := f.me()
	for _, a := range f.addressees {
		if a.Actor != me && a.LeftSeq == nil {
			members = append(members, a)
		}
	}
	return members
}

// newCreate returns the job of a Create of the host's user, in the form that other servers know.
func (f *fanout) newCreate(object vocab.Doc, path string, at time.Time, to []db.Addressee) db.Job {
	uri, published := string(f.conversation.URI), at.UTC().Format("2006-01-02T15:04:05Z")
	object["id"], object["to"], object["summary"], object["published"] = uri+path, namesOf(to), "Encrypted message.", published
	return f.newJob(vocab.Doc{"type": vocab.Create, "object": object, "context": uri, "published": published}, to)
}

// LogTx is what is needed of a transaction on the host's database to put messages in order.
type LogTx interface {
	LockConversation(ctx context.Context, id uuid.UUID) (*db.HostedConversation, error)
	MembersAmong(ctx context.Context, id uuid.UUID, actors []vocab.ID) (map[vocab.ID]db.ConversationMember, error)
	LoggedMessages(ctx context.Context, id uuid.UUID, hashes [][]byte) ([]db.LoggedMessage, error)
	AddLogEntries(ctx context.Context, id uuid.UUID, entries ...db.LogEntry) error
	CountMessages(ctx context.Context, id uuid.UUID, n int, hash []byte, now time.Time) error
	AskToLeave(ctx context.Context, id uuid.UUID, actor vocab.ID) error
	Addressees(ctx context.Context, id uuid.UUID, left int64) ([]db.Addressee, error)
	EnqueueAll(ctx context.Context, jobs []db.Job, inboxes []db.Inbox, due time.Time) error
	AddEvent(ctx context.Context, e db.Event) error
}
