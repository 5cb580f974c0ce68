package conversation

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fanout queues deliveries that tell the members about a change of a conversation, in the
// transaction that makes the change. The deliveries of one conversation arrive in order.
type fanout struct {
	Deps
	host         vocab.Username
	conversation *user.HostedConversation // in its state after the transaction
	now          time.Time

	addressees []user.Addressee
}

// newFanout returns a fanout to the members of a conversation, and to the actors whose membership
// ended at the log number in the parameter left. If the host would be the only addressee, the
// fanout has no addressee.
func newFanout(ctx context.Context, tx *user.Tx, d Deps, host vocab.Username, c *user.HostedConversation, left int64, now time.Time) (*fanout, error) {
	f := &fanout{Deps: d, host: host, conversation: c, now: now}
	all, err := tx.Hosted.ListAddressees(ctx, c.ID, left)
	me := f.me()
	f.addressees = all
	if slices.ContainsFunc(all, func(a user.Addressee) bool { return a.Actor != me }) {
		return f, err
	}
	f.addressees = nil // the host is told by an event
	return f, err
}

func (f *fanout) me() vocab.ID { return f.Actors.ID(f.host) }

// tellEntries queues messages of the log for the members, each in an Add. For members that know
// only the SWICG draft it calls tellForeign instead. An actor that joins by one of the messages
// gets a Welcome instead. The parameter previous is the hash of the message that precedes entries
// in the log.
func (f *fanout) tellEntries(ctx context.Context, tx *user.Tx, previous []byte, entries ...user.LogEntry) error {
	if err := f.tellForeign(ctx, tx, entries); err != nil {
		return err
	}
	to := f.listOthers(func(a user.Addressee) bool { return a.JoinedSeq < entries[0].Seq })
	if len(to) == 0 {
		return nil
	}
	jobs := make([]user.Job, len(entries))
	for i, e := range entries {
		object, err := f.describeEntry(e, previous)
		if err != nil {
			return err
		}
		jobs[i], previous = f.newAdd(object, to, e.Kind == user.KindCommit), e.Hash
	}
	return tx.Deliveries.EnqueueAll(ctx, jobs, f.inboxesOf(to), f.now)
}

// describeEntry returns a message of the log in the form that is sent to members, with the
// host's receipt.
func (f *fanout) describeEntry(e user.LogEntry, previous []byte) (vocab.Doc, error) {
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
	if isPrivate(e.Content) {
		kind = "PrivateMessage"
	}
	if e.Kind == user.KindApplication {
		told["kind"] = "ChatMessage"
	}
	d := f.describeMessage(kind, e.Sender, e.Content, told)
	d["id"], d["published"] = string(uri)+"/log/"+strconv.FormatInt(e.Seq, 10), e.At.UTC().Format(time.RFC3339Nano)
	return d, nil
}

// isPrivate reports whether a message is a PrivateMessage of MLS.
func isPrivate(content []byte) bool {
	h, err := mls.ReadHeader(content)
	return err == nil && h.WireFormat == mls.FormatPrivateMessage
}

// describeMessage returns an object that carries an MLS message.
func (f *fanout) describeMessage(kind string, sender vocab.ID, content []byte, told vocab.Doc) vocab.Doc {
	uri := string(f.conversation.URI)
	return vocab.Doc{"type": kind, "attributedTo": string(sender), "mediaType": "message/mls", "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(content), "context": uri, "conversation": uri, "lwMetadata": told}
}

// tellWelcomes queues the Welcomes of a commit for the actors whose devices it adds.
func (f *fanout) tellWelcomes(ctx context.Context, tx *user.Tx, committer vocab.ID, all []user.Welcome) error {
	for _, w := range all {
		if err := f.tellForeignWelcome(ctx, tx, committer, w); err != nil {
			return err
		}
		to := f.listOthers(func(a user.Addressee) bool { return a.Actor == w.Recipient })
		if len(to) == 0 {
			continue
		}
		told := vocab.Doc{"mlsGroupId": f.conversation.GroupID, "keyPackageRef": base64.StdEncoding.EncodeToString(w.KeyPackage)}
		told.SetCount("seq", f.conversation.LastSeq)
		told.SetCount("mlsEpoch", f.conversation.Epoch)
		told.SetCount("mlsGeneration", int64(f.conversation.Generation))
		d := f.describeMessage("Welcome", committer, w.Content, told)
		d["id"], d["published"] = string(f.conversation.URI)+"/welcomes/"+w.ID.String(), w.CreatedAt.UTC().Format(time.RFC3339Nano)
		if err := tx.Deliveries.EnqueueAll(ctx, []user.Job{f.newAdd(d, to, true)}, f.inboxesOf(to), f.now); err != nil {
			return err
		}
	}
	return nil
}

// tellState queues an Update for the members, with the state of the conversation.
func (f *fanout) tellState(ctx context.Context, tx *user.Tx) error {
	to := f.listOthers(func(a user.Addressee) bool { return true })
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
	return tx.Deliveries.EnqueueAll(ctx, []user.Job{f.newJob(d, to)}, f.inboxesOf(to), f.now)
}

// describeRoster returns the members with their roles, and marks the members that know only the
// SWICG draft. It also returns the status of the conversation, the URI of the predecessor, and
// whether the conversation is one of two, or mixed.
func (f *fanout) describeRoster() vocab.Doc {
	members := []any{}
	for _, a := range f.addressees {
		if a.LeftSeq != nil {
			continue
		}
		m := vocab.Doc{"id": string(a.Actor), "role": a.Role}
		if !a.Lightweb {
			m["lightweb"] = false
		}
		members = append(members, m)
	}
	d := vocab.Doc{"members": members, "status": f.conversation.Status}
	if before := f.conversation.Predecessor; before != "" {
		d["predecessor"] = string(before)
	}
	if f.conversation.Partner != "" {
		d["pair"] = true
	}
	if f.conversation.Mixed {
		d["mixed"] = true
	}
	return d
}

// listOthers returns the addressees for which the test holds, except the host, the actors that
// the host blocks, and the actors whose servers know only the SWICG draft. A blocked actor may
// not be named, because a shared inbox would hand the activity to that actor.
func (f *fanout) listOthers(holds func(user.Addressee) bool) (others []user.Addressee) {
	me := f.me()
	for _, a := range f.addressees {
		if a.Actor != me && a.Lightweb && !a.Blocked && holds(a) {
			others = append(others, a)
		}
	}
	return others
}

// inboxesOf returns the inboxes of addressees.
func (f *fanout) inboxesOf(to []user.Addressee) []user.Inbox {
	var all []user.Destination
	for _, a := range to {
		if a.Inbox != "" {
			all = append(all, user.Destination{Actor: a.Actor, Inbox: a.Inbox, SharedInbox: a.SharedInbox})
		}
	}
	return f.Inboxes(all)
}

// newAdd returns the job that sends an Add, whose object is a message and whose target is the
// conversation. If withRoster is true, the Add contains the roster. Callers set it for commits and
// Welcomes, because these change the roster.
func (f *fanout) newAdd(object vocab.Doc, to []user.Addressee, withRoster bool) user.Job {
	object["to"] = namesOf(to)
	d := vocab.Doc{"type": vocab.Add, "object": object, "target": string(f.conversation.URI)}
	if withRoster {
		d["lwMetadata"] = f.describeRoster()
	}
	return f.newJob(d, to)
}

func (f *fanout) newJob(d vocab.Doc, to []user.Addressee) user.Job {
	id := f.Actors.NewActivityID(f.host)
	d["@context"], d["id"], d["actor"], d["to"] = vocab.ConversationContext(), string(id), string(f.me()), namesOf(to)
	audience := make([]vocab.ID, len(to))
	for i, a := range to {
		audience[i] = a.Actor
	}
	return user.Job{ID: uuid.Must(uuid.NewV7()), Activity: id, Object: f.conversation.URI, Type: d.Text("type"), Body: d.JSON(), Audience: audience}
}

func namesOf(all []user.Addressee) []any {
	names := make([]any, len(all))
	for i, a := range all {
		names[i] = string(a.Actor)
	}
	return names
}
