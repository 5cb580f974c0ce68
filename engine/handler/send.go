package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sender sends activities that follow from another one, in the user's name and in the transaction
// that stores that one.
type sender struct {
	tx    Tx
	local *actor.Local
	user  vocab.Username
	now   time.Time

	spelling vocab.Spelling // of what is named, beside the recipient
}

// withSpelling returns s with the form in which the server of an id writes it.
func (s sender) withSpelling(id vocab.ID, written string) sender {
	s.spelling = s.spelling.Add(id, written)
	return s
}

// sendAboutActivity stores an activity about a Follow or Offer, and owes it to one actor. An actor
// of which only the id is known is sent nothing.
func (s sender) sendAboutActivity(ctx context.Context, kind string, object vocab.Doc, to *vocab.Actor) error {
	about := vocab.ID(object.Text("id"))
	id := s.local.NewActivityID(s.user)
	return s.storeActivity(ctx, vocab.Doc{"id": string(id), "type": kind, "object": object}, about, about, to)
}

// sendFollow asks an actor for its posts, and returns the Follow.
func (s sender) sendFollow(ctx context.Context, to *vocab.Actor) (vocab.ID, error) {
	id := s.local.NewActivityID(s.user)
	return id, s.storeActivity(ctx, vocab.Doc{"id": string(id), "type": vocab.Follow, "object": string(to.ID)}, to.ID, id, to)
}

// storeActivity stores d, and owes it to one actor. Its delivery keeps its order by another
// activity or itself.
func (s sender) storeActivity(ctx context.Context, d vocab.Doc, object, ordered vocab.ID, to *vocab.Actor) error {
	d["to"] = []any{string(to.ID)}
	var inboxes []db.Inbox
	if to.Inbox != "" {
		inbox := db.Inbox{URL: to.Inbox, Host: to.Inbox.Host(), Targets: []vocab.ID{to.ID}}
		if s.local.IsLocal(to.ID) {
			inbox.Host = ""
		}
		inboxes = []db.Inbox{inbox}
	}
	return s.withSpelling(to.ID, to.Written).storeFor(ctx, d, object, ordered, inboxes)
}

// storeFor stores d, and owes it to inboxes.
func (s sender) storeFor(ctx context.Context, d vocab.Doc, object, ordered vocab.ID, inboxes []db.Inbox) error {
	me := s.local.ID(s.user)
	d["@context"], d["actor"] = vocab.WithQuoteTerms(vocab.ActivityContext(), d), string(me)
	id, kind := vocab.ID(d.Text("id")), d.Text("type")
	body, err := s.local.Prove(s.user, d, s.now)
	if err != nil {
		return fmt.Errorf("prove %s: %w", kind, err)
	}
	sent := body
	if len(s.spelling) > 0 {
		if sent, err = s.local.Prove(s.user, d.Spelled(s.spelling), s.now); err != nil {
			return fmt.Errorf("prove %s: %w", kind, err)
		}
	}
	err = s.tx.AddActivity(ctx, db.Activity{ID: uuid.Must(uuid.NewV7()), URI: id, Direction: db.Outbound, Type: kind,
		Actor: me, Object: object, Published: s.now, Raw: body})
	if err != nil {
		return err
	}
	if len(inboxes) > 0 {
		to, err := vocab.AddressingOf(d)
		if err != nil {
			return err
		}
		job := db.Job{ID: uuid.Must(uuid.NewV7()), Activity: id, Object: ordered, Type: kind, Body: sent, Audience: to.All()}
		if err := s.tx.Enqueue(ctx, job, inboxes, s.now); err != nil {
			return err
		}
	}
	return s.tx.AddEvent(ctx, NewEvent(EventType(kind, "sent"), Payload{Activity: id, Type: kind, Actor: me, Object: object, Trust: TrustSelf}, s.now))
}

// Written returns the id of a received activity as its server writes it, for documents that answer
// it; the canonical form when the activity is not stored any more.
func Written(ctx context.Context, tx interface {
	ActivityBy(ctx context.Context, a db.Owned) (*db.Activity, error)
}, activity db.Owned) (string, error) {
	stored, err := tx.ActivityBy(ctx, activity)
	if err != nil || stored == nil {
		return "", err
	}
	a, err := vocab.ParseActivity(stored.Raw)
	if err != nil {
		return "", fmt.Errorf("read stored activity: %w", err)
	}
	return a.Written, nil
}
