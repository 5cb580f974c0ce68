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

// sender sends what follows from an activity, in the user's name and in the transaction that stores the activity.
type sender struct {
	tx    Tx
	local *actor.Local
	user  vocab.Username
	now   time.Time
}

// send stores an activity about a Follow, and owes it to one actor. To one of whom nothing is known but its id, nothing
// is sent.
func (s sender) send(ctx context.Context, kind string, follow vocab.Doc, to *vocab.Actor) error {
	about := vocab.ID(follow.Text("id"))
	id := s.local.NewActivityID(s.user)
	return s.store(ctx, vocab.Doc{"id": string(id), "type": kind, "object": follow}, about, about, to)
}

// follow asks an actor for its posts, and returns the Follow.
func (s sender) follow(ctx context.Context, to *vocab.Actor) (vocab.ID, error) {
	id := s.local.NewActivityID(s.user)
	return id, s.store(ctx, vocab.Doc{"id": string(id), "type": "Follow", "object": string(to.ID)}, to.ID, id, to)
}

// store stores d, which is about an object and whose delivery is ordered by another one or itself.
func (s sender) store(ctx context.Context, d vocab.Doc, object, ordered vocab.ID, to *vocab.Actor) error {
	me := s.local.ID(s.user)
	d["@context"], d["actor"], d["to"] = vocab.ActivityContext(), string(me), []any{string(to.ID)}
	id, kind := vocab.ID(d.Text("id")), d.Text("type")
	body, err := s.local.Prove(s.user, d, s.now)
	if err != nil {
		return fmt.Errorf("prove %s: %w", kind, err)
	}
	err = s.tx.AddActivity(ctx, db.Activity{ID: uuid.Must(uuid.NewV7()), URI: id, Direction: db.Outbound, Type: kind,
		Actor: me, Object: object, Published: s.now, Raw: body})
	if err != nil {
		return err
	}
	if to.Inbox != "" {
		inbox := db.Inbox{URL: to.Inbox, Host: to.Inbox.Host(), Targets: []vocab.ID{to.ID}}
		if s.local.IsLocal(to.ID) {
			inbox.Host = ""
		}
		job := db.Job{ID: uuid.Must(uuid.NewV7()), Activity: id, Object: ordered, Type: kind, Body: body}
		if err := s.tx.Enqueue(ctx, job, []db.Inbox{inbox}, s.now); err != nil {
			return err
		}
	}
	return s.tx.AddEvent(ctx, NewEvent(EventType(kind, "sent"), Payload{Activity: id, Type: kind, Actor: me, Object: object, Trust: TrustSelf}, s.now))
}
