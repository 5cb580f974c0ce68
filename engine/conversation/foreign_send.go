package conversation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ErrHasHost refuses a message that names recipients, in a conversation with a host.
var ErrHasHost = unprocessable("has_host", "the host of the conversation tells who gets its messages: leave to out").At("/to")

// SendTo sends a message or a Welcome of a group without a host to the given actors. Only the
// user's device knows the members of such a group, so the caller names the recipients. The
// user's own server delivers to each of them.
func (m *Members) SendTo(ctx context.Context, u vocab.Username, c *user.Conversation, content []byte, to []vocab.ID) (Accepted, error) {
	e, err := checkHostless(content, c.GroupID)
	if err != nil {
		return Accepted{}, err
	}
	inboxes, err := m.findInboxes(ctx, m.Local.ID(u), to)
	if err != nil {
		return Accepted{}, err
	}
	d, body, err := m.buildCreate(u, c.GroupID, e, to)
	if err != nil {
		return Accepted{}, err
	}
	var accepted Accepted
	err = m.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		accepted, err = m.keepOwn(ctx, tx, u, c, d, body, inboxes)
		return err
	})
	return accepted, explainTaken(err, "")
}

// checkHostless refuses a message that is too large, that belongs to another group, or that
// clients of other servers cannot read, such as a commit or a proposal in a PublicMessage.
func checkHostless(content []byte, group string) (*entry, error) {
	if len(content) > maxCommit {
		return nil, fault.New(fault.TooLarge, "a message has 1 MiB at most")
	}
	h, err := mls.ReadHeader(content)
	if err != nil {
		return nil, badMessage(err, "/message")
	}
	e := classify(envelope{content, h})
	switch {
	case e.kind == user.KindWelcome:
		return e, nil
	case e.kind == user.KindOpaque, h.WireFormat != mls.FormatPrivateMessage:
		return nil, unprocessable("not_a_message", "where nobody puts messages in order there are PrivateMessages and Welcomes").At("/message")
	case e.group != group:
		return nil, errWrongGroup
	}
	return e, nil
}

var errTooManyNamed = unprocessable("invalid_parameter", "to names 1 to 256 actors").At("/to")

// findInboxes returns the inboxes of actors. It leaves out the user, because the user's devices
// read sent messages in the user's own database.
func (m *Members) findInboxes(ctx context.Context, me vocab.ID, to []vocab.ID) (inboxes []user.Inbox, err error) {
	if len(to) == 0 || len(to) > mls.MaxMembers || slices.Contains(to, vocab.Public) {
		return nil, errTooManyNamed
	}
	for i, id := range to {
		if id == me || slices.Contains(to[:i], id) {
			continue
		}
		i, err := m.findInbox(ctx, id)
		if err != nil {
			return nil, err
		}
		inboxes = append(inboxes, i)
	}
	return inboxes, nil
}

func (m *Members) findInbox(ctx context.Context, id vocab.ID) (user.Inbox, error) {
	a, err := m.People.Resolve(ctx, id)
	if err != nil {
		return user.Inbox{}, err
	}
	i := user.Inbox{URL: a.Inbox, Host: a.Inbox.Host(), Targets: []vocab.ID{a.ID}}
	if _, isLocal := m.Local.Owner(a.ID); isLocal {
		i.Host = ""
	}
	return i, nil
}

// buildCreate returns the Create activity that carries a message, in the form of the SWICG
// draft. The parameter context is the URI or the group id of the conversation. The message gets a
// new id if e.object is empty.
func (m *Members) buildCreate(u vocab.Username, context string, e *entry, to []vocab.ID) (*vocab.Activity, []byte, error) {
	me, kind := string(m.Local.ID(u)), "PrivateMessage"
	if e.kind == user.KindWelcome {
		kind = "Welcome"
	}
	var named []any
	for _, id := range to {
		named = append(named, string(id))
	}
	id := cmp.Or(e.object, m.Local.NewObjectID(u))
	now := m.Now().UTC().Format(time.RFC3339)
	object := vocab.Doc{"type": kind, "id": string(id), "attributedTo": me, "to": named, "mediaType": "message/mls", "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(e.message), "summary": "Encrypted message.", "context": context, "conversation": context, "published": now}
	if e.kind == user.KindApplication {
		object["lwMetadata"] = vocab.Doc{"kind": "ChatMessage", "mlsGroupId": e.group, "mlsEpoch": e.epoch}
	}
	d := vocab.Doc{"@context": vocab.MessageActivityContext(), "type": vocab.Create, "id": string(m.Local.NewActivityID(u)), "actor": me, "to": named, "context": context, "published": now, "object": object}
	body, err := m.Local.Prove(u, d, m.Now())
	if err != nil {
		return nil, nil, err
	}
	a, err := vocab.ParseActivity(body)
	return a, body, err
}

// keepOwn stores a message of the user, so that all devices of the user can read it, and queues
// it for the inboxes.
func (m *Members) keepOwn(ctx context.Context, tx *user.Tx, u vocab.Username, c *user.Conversation, a *vocab.Activity, body []byte, inboxes []user.Inbox) (Accepted, error) {
	if err := tx.HoldAudience(ctx); err != nil {
		return Accepted{}, err
	}
	if err := tx.Messages.Lock(ctx); err != nil {
		return Accepted{}, err
	}
	j, err := readJoined(ctx, tx, c)
	if err != nil {
		return Accepted{}, err
	}
	e, err := readMessage(a)
	if err != nil {
		return Accepted{}, err
	}
	r := &receiver{tx: tx, entry: e, conversation: j, Arrival: Arrival{Me: m.Local.ID(u), Activity: a, Sender: &vocab.Actor{ID: m.Local.ID(u)}, Now: m.Now()}}
	kept, err := r.keepInOrder(ctx)
	if err == nil && !j.Confirmed {
		err = tx.Joined.Confirm(ctx, j.ID, r.Me) // the device that made the message has joined
	}
	if err != nil {
		return Accepted{}, err
	}
	if !kept.Kept {
		return m.sendAgain(ctx, r, u, inboxes)
	}
	return Accepted{Seq: e.seq, Epoch: j.Epoch, Generation: j.Generation}, r.queueOwn(ctx, a, body, inboxes)
}

// sendAgain handles a message that the receiver has stored already. If the user sent the message
// before, sendAgain sends it to those recipients that the stored Create does not name. They get a
// new Create, which names all recipients so far and is stored in place of the first.
func (m *Members) sendAgain(ctx context.Context, r *receiver, u vocab.Username, inboxes []user.Inbox) (Accepted, error) {
	j, hash := r.conversation, hashOf(r.entry.message)
	like, err := r.tx.Messages.FindLike(ctx, r.row())
	at := slices.IndexFunc(like, func(e user.InboxEntry) bool { return e.Seq != nil && bytes.Equal(e.Hash, hash) })
	if err != nil || at < 0 {
		return Accepted{}, err
	}
	accepted := Accepted{Seq: *like[at].Seq, Epoch: j.Epoch, Generation: j.Generation, Replayed: true}
	if like[at].Sender != r.Me {
		return accepted, nil
	}
	sent, err := vocab.ParseActivity([]byte(JoinContent(like[at])))
	if err != nil {
		return Accepted{}, err
	}
	named, err := sent.Doc.IDs("to")
	if err != nil {
		return Accepted{}, err
	}
	inboxes = slices.DeleteFunc(slices.Clone(inboxes), func(i user.Inbox) bool { return slices.ContainsFunc(named, i.Targets[0].Same) })
	if len(inboxes) == 0 {
		return accepted, nil
	}
	to, err := r.Activity.Doc.IDs("to")
	if err != nil {
		return Accepted{}, err
	}
	named = append(named, slices.DeleteFunc(to, func(id vocab.ID) bool { return slices.ContainsFunc(named, id.Same) })...)
	if len(named) > mls.MaxMembers {
		return Accepted{}, errTooManyNamed
	}
	r.entry.object = sent.Object.ID
	a, body, err := m.buildCreate(u, j.GroupID, r.entry, named)
	if err != nil {
		return Accepted{}, err
	}
	text, cut := cutContent(a, r.entry.message)
	if err := r.tx.Messages.Readdress(ctx, like[at].Arrival, text, cut); err != nil {
		return Accepted{}, err
	}
	accepted.Replayed = false
	return accepted, r.queueOwn(ctx, a, body, inboxes)
}

// queueOwn queues a Create of the user for the inboxes. It leaves out inboxes of actors that the
// user blocks.
func (r *receiver) queueOwn(ctx context.Context, a *vocab.Activity, body []byte, inboxes []user.Inbox) error {
	var actors []vocab.ID
	for _, i := range inboxes {
		actors = append(actors, i.Targets...)
	}
	blocked, err := r.tx.Blocks.FindAmong(ctx, actors)
	if err != nil {
		return err
	}
	inboxes = slices.DeleteFunc(slices.Clone(inboxes), func(i user.Inbox) bool { return blocked[i.Targets[0]] })
	job := user.Job{ID: uuid.Must(uuid.NewV7()), Activity: a.ID, Object: r.conversation.URI, Type: a.Type, Body: body, Audience: actors}
	return r.tx.Deliveries.Enqueue(ctx, job, inboxes, r.Now)
}
