package conversation

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fanout tells the members of a conversation what becomes of it, in the transaction that decides
// it. All that is said of one conversation arrives in its order.
type fanout struct {
	Deps
	host         vocab.Username
	conversation *db.HostedConversation // as the transaction leaves it
	now          time.Time

	addressees []db.Addressee
}

// newFanout returns the fan-out to the members of a conversation, and to those whose membership
// ended with a number.
func newFanout(ctx context.Context, tx LogTx, d Deps, host vocab.Username, c *db.HostedConversation, left int64, now time.Time) (*fanout, error) {
	f := &fanout{Deps: d, host: host, conversation: c, now: now}
	all, err := tx.Addressees(ctx, c.ID, left)
	me := f.me()
	f.addressees = all
	if slices.ContainsFunc(all, func(a db.Addressee) bool { return a.Actor != me }) {
		return f, err
	}
	f.addressees = nil // the host hears of it by an event
	return f, err
}

func (f *fanout) me() vocab.ID { return f.Actors.ID(f.host) }

// tellEntries owes the members messages of the log, each in an Add. Those who join by one of them
// get a Welcome instead. previous is the hash of the message before.
func (f *fanout) tellEntries(ctx context.Context, tx LogTx, previous []byte, entries ...db.LogEntry) error {
	if err := f.tellForeign(ctx, tx, entries); err != nil {
		return err
	}
	to := f.listOthers(func(a db.Addressee) bool { return a.JoinedSeq < entries[0].Seq })
	if len(to) == 0 {
		return nil
	}
	jobs := make([]db.Job, len(entries))
	for i, e := range entries {
		object, err := f.describeEntry(e, previous)
		if err != nil {
			return err
		}
		jobs[i], previous = f.newAdd(object, to, e.Kind == db.KindCommit), e.Hash
	}
	return tx.EnqueueAll(ctx, jobs, f.inboxesOf(to), f.now)
}

// describeEntry returns a message of the log as members are sent it.
func (f *fanout) describeEntry(e db.LogEntry, previous []byte) (vocab.Doc, error) {
	uri := f.conversation.URI
	receipt, err := f.Actors.Attest(f.host, receiptOf(uri, e, previous))
	if err != nil {
		return nil, err
	}
	told := vocab.Doc{"mlsGroupId": f.conversation.GroupID, "previousHash": base64.StdEncoding.EncodeToString(previous), "receipt": base64.StdEncoding.EncodeToString(receipt)}
	told.SetCount("seq", e.Seq)
	told.SetCount("mlsEpoch", e.Epoch)
	told.SetCount("mlsGeneration", int64(e.Generation))
	kind := "PublicMessage"
	if e.Kind == db.KindApplication {
		kind, told["kind"] = "PrivateMessage", "ChatMessage"
	}
	d := f.describeMessage(kind, e.Sender, e.Content, told)
	d["id"], d["published"] = string(uri)+"/log/"+strconv.FormatInt(e.Seq, 10), e.At.UTC().Format(time.RFC3339Nano)
	return d, nil
}

// describeMessage returns an object that carries an MLS message.
func (f *fanout) describeMessage(kind string, sender vocab.ID, content []byte, told vocab.Doc) vocab.Doc {
	uri := string(f.conversation.URI)
	return vocab.Doc{"type": kind, "attributedTo": string(sender), "mediaType": "message/mls", "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(content), "context": uri, "conversation": uri, "lwMetadata": told}
}

// tellWelcomes owes each device that a commit adds its Welcome.
func (f *fanout) tellWelcomes(ctx context.Context, tx LogTx, committer vocab.ID, all []db.Welcome) error {
	for _, w := range all {
		if err := f.tellForeignWelcome(ctx, tx, committer, w); err != nil {
			return err
		}
		to := f.listOthers(func(a db.Addressee) bool { return a.Actor == w.Recipient })
		if len(to) == 0 {
			continue
		}
		told := vocab.Doc{"mlsGroupId": f.conversation.GroupID, "keyPackageRef": base64.StdEncoding.EncodeToString(w.KeyPackage)}
		told.SetCount("seq", f.conversation.LastSeq)
		told.SetCount("mlsEpoch", f.conversation.Epoch)
		told.SetCount("mlsGeneration", int64(f.conversation.Generation))
		d := f.describeMessage("Welcome", committer, w.Content, told)
		d["id"], d["published"] = string(f.conversation.URI)+"/welcomes/"+w.ID.String(), w.CreatedAt.UTC().Format(time.RFC3339Nano)
		if err := tx.EnqueueAll(ctx, []db.Job{f.newAdd(d, to, true)}, f.inboxesOf(to), f.now); err != nil {
			return err
		}
	}
	return nil
}

// tellState owes the members an Update of how the conversation stands.
func (f *fanout) tellState(ctx context.Context, tx LogTx) error {
	to := f.listOthers(func(a db.Addressee) bool { return true })
	if len(to) == 0 {
		return nil
	}
	c := f.conversation
	told := f.describeRoster()
	told["mlsGroupId"] = c.GroupID
	told.SetCount("mlsGeneration", int64(c.Generation))
	told.SetCount("mlsEpoch", c.Epoch)
	told.SetCount("lastSeq", c.LastSeq)
	if c.ResetGroupID != "" {
		told["resetGroupId"] = c.ResetGroupID
	}
	d := vocab.Doc{"type": vocab.Update, "object": vocab.Doc{"type": "OrderedCollection", "id": string(c.URI), "lwMetadata": told}}
	return tx.EnqueueAll(ctx, []db.Job{f.newJob(d, to)}, f.inboxesOf(to), f.now)
}

// describeRoster returns the host's word on who is in the conversation.
func (f *fanout) describeRoster() vocab.Doc {
	members := []any{}
	for _, a := range f.addressees {
		if a.LeftSeq == nil {
			members = append(members, vocab.Doc{"id": string(a.Actor), "role": a.Role})
		}
	}
	return vocab.Doc{"members": members, "status": f.conversation.Status}
}

// listOthers returns those addressees but the host for which a test holds, and whose server takes
// what a host sends.
func (f *fanout) listOthers(holds func(db.Addressee) bool) (others []db.Addressee) {
	me := f.me()
	for _, a := range f.addressees {
		if a.Actor != me && a.Lightweb && holds(a) {
			others = append(others, a)
		}
	}
	return others
}

// inboxesOf returns the inboxes of addressees. The host owes nothing to an actor that it blocks.
func (f *fanout) inboxesOf(to []db.Addressee) []db.Inbox {
	var all []db.Destination
	for _, a := range to {
		if a.Inbox != "" && !a.Blocked {
			all = append(all, db.Destination{Actor: a.Actor, Inbox: a.Inbox, SharedInbox: a.SharedInbox})
		}
	}
	return f.Inboxes(all)
}

// newAdd returns the job of an Add of a message to the conversation, with the roster when that may
// have changed.
func (f *fanout) newAdd(object vocab.Doc, to []db.Addressee, withRoster bool) db.Job {
	object["to"] = namesOf(to)
	d := vocab.Doc{"type": vocab.Add, "object": object, "target": string(f.conversation.URI)}
	if withRoster {
		d["lwMetadata"] = f.describeRoster()
	}
	return f.newJob(d, to)
}

func (f *fanout) newJob(d vocab.Doc, to []db.Addressee) db.Job {
	id := f.Actors.NewActivityID(f.host)
	d["@context"], d["id"], d["actor"], d["to"] = vocab.ConversationContext(), string(id), string(f.me()), namesOf(to)
	audience := make([]vocab.ID, len(to))
	for i, a := range to {
		audience[i] = a.Actor
	}
	return db.Job{ID: uuid.Must(uuid.NewV7()), Activity: id, Object: f.conversation.URI, Type: d.Text("type"), Body: d.JSON(), Audience: audience}
}

func namesOf(all []db.Addressee) []any {
	names := make([]any, len(all))
	for i, a := range all {
		names[i] = string(a.Actor)
	}
	return names
}
