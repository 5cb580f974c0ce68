package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sender sends activities of the user that another activity or a Listing causes. It stores and
// queues them in the transaction that applies their cause.
type sender struct {
	tx    *user.Tx
	local *actor.Local
	user  vocab.Username
	now   time.Time
	cause *Received // nil if the user or a Listing is the cause

	spelling vocab.Spelling // how other servers write the ids that the activities name, besides the recipient's id
}

// newSender returns a sender for the activities that the received one causes.
func (r *Received) newSender(tx *user.Tx, local *actor.Local) sender {
	return sender{tx: tx, local: local, user: r.User, now: r.Applied, cause: r}
}

// withSpelling returns a copy of s with one more spelling. The parameter written is the form in
// which the server of id writes that id.
func (s sender) withSpelling(id vocab.ID, written string) sender {
	s.spelling = s.spelling.Add(id, written)
	return s
}

// sendAboutActivity stores an activity about a Follow or Offer, and queues it for one actor. If
// the actor's inbox is unknown, nothing is queued.
func (s sender) sendAboutActivity(ctx context.Context, kind string, object vocab.Doc, to *vocab.Actor) error {
	about := vocab.ID(object.Text("id"))
	id := s.local.NewActivityID(s.user)
	return s.storeActivity(ctx, vocab.Doc{"id": string(id), "type": kind, "object": object}, about, about, to)
}

// queueAboutActivity is sendAboutActivity for an activity that a stranger alone causes: it is not
// stored, and no event tells of it.
func (s sender) queueAboutActivity(ctx context.Context, kind string, object vocab.Doc, to *vocab.Actor) error {
	d := vocab.Doc{"id": string(s.local.NewActivityID(s.user)), "type": kind, "object": object}
	s, inboxes := s.addressTo(d, to)
	_, sent, err := s.proveActivity(d)
	if err != nil {
		return err
	}
	return s.queueActivity(ctx, d, vocab.ID(object.Text("id")), sent, inboxes)
}

// sendFollow stores a Follow of an actor, queues it, and returns its id.
func (s sender) sendFollow(ctx context.Context, to *vocab.Actor) (vocab.ID, error) {
	id := s.local.NewActivityID(s.user)
	return id, s.storeActivity(ctx, vocab.Doc{"id": string(id), "type": vocab.Follow, "object": string(to.ID)}, to.ID, id, to)
}

// storeActivity stores the activity d, and queues it for one actor. The parameter ordered is
// the id by which its delivery is ordered; see Registry.OrderOf.
func (s sender) storeActivity(ctx context.Context, d vocab.Doc, object, ordered vocab.ID, to *vocab.Actor) error {
	s, inboxes := s.addressTo(d, to)
	return s.storeFor(ctx, d, object, ordered, inboxes)
}

// addressTo addresses the activity d to one actor. It returns the actor's inbox, if it is known,
// and a copy of s with the spelling of the actor's id.
func (s sender) addressTo(d vocab.Doc, to *vocab.Actor) (sender, []user.Inbox) {
	d["to"] = []any{string(to.ID)}
	s = s.withSpelling(to.ID, to.Written)
	if to.Inbox == "" {
		return s, nil
	}
	inbox := user.Inbox{URL: to.Inbox, Host: to.Inbox.Host(), Targets: []vocab.ID{to.ID}}
	if s.local.IsLocal(to.ID) {
		inbox.Host = ""
	}
	return s, []user.Inbox{inbox}
}

// storeFor stores the activity d with its event, and queues it for the inboxes.
func (s sender) storeFor(ctx context.Context, d vocab.Doc, object, ordered vocab.ID, inboxes []user.Inbox) error {
	stored, sent, err := s.proveActivity(d)
	if err != nil {
		return err
	}
	me, id, kind := s.local.ID(s.user), vocab.ID(d.Text("id")), d.Text("type")
	err = s.tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: id, Direction: user.Outbound, Type: kind,
		Actor: me, Object: object, Published: s.now, Raw: stored})
	if err != nil {
		return err
	}
	if err := s.queueActivity(ctx, d, ordered, sent, inboxes); err != nil {
		return err
	}
	if tells, err := s.mayTell(ctx); err != nil || !tells {
		return err
	}
	return s.tx.Events.Add(ctx, NewEvent(EventType(kind, "sent"), Payload{Activity: id, Type: kind, Actor: me, Object: object, Trust: user.TrustSelf}, s.now))
}

// mayTell reports whether an event may tell of an activity. The budget of strangers' events counts
// an activity that a stranger's activity causes.
func (s sender) mayTell(ctx context.Context) (bool, error) {
	if s.cause == nil {
		return true, nil
	}
	trust, err := s.cause.Trust(ctx, s.tx)
	return err == nil && s.cause.Tells(trust), err
}

// proveActivity completes the activity d, and returns it with the user's proof: as it is stored,
// and as it is sent. An Accept or Reject must not say here when it was published, because that
// tells the user's own answers apart (see user.Deliveries.IsUsersOwn).
func (s sender) proveActivity(d vocab.Doc) (stored, sent []byte, err error) {
	d["@context"], d["actor"] = vocab.WithQuoteTerms(vocab.ActivityContext(), d), string(s.local.ID(s.user))
	if stored, err = s.local.Prove(s.user, d, s.now); err != nil {
		return nil, nil, fmt.Errorf("prove %s: %w", d.Text("type"), err)
	}
	if len(s.spelling) == 0 {
		return stored, stored, nil
	}
	if sent, err = s.local.Prove(s.user, d.Spelled(s.spelling), s.now); err != nil {
		return nil, nil, fmt.Errorf("prove %s: %w", d.Text("type"), err)
	}
	return stored, sent, nil
}

// queueActivity queues the activity d for the inboxes. The parameter sent is d as it is sent.
func (s sender) queueActivity(ctx context.Context, d vocab.Doc, ordered vocab.ID, sent []byte, inboxes []user.Inbox) error {
	to, err := vocab.AddressingOf(d)
	if err != nil {
		return err
	}
	job := user.Job{ID: uuid.Must(uuid.NewV7()), Activity: vocab.ID(d.Text("id")), Object: ordered, Type: d.Text("type"), Body: sent, Audience: to.All()}
	return s.tx.Deliveries.Enqueue(ctx, job, inboxes, s.now)
}

// Written returns the id of a received activity as the activity's server writes it. Documents that
// answer the activity name it by this id. Written returns "" if the activity is not stored any
// more; then the documents use the canonical form.
func Written(ctx context.Context, tx *user.Tx, activity user.Owned) (string, error) {
	stored, err := tx.Activities.FindBy(ctx, activity)
	if err != nil || stored == nil {
		return "", err
	}
	a, err := stored.Parse()
	if err != nil {
		return "", err
	}
	return a.Written, nil
}
