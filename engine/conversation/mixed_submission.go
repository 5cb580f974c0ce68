package conversation

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
)

// Orderer puts in order what members who know the SWICG draft alone send to the inbox of a host.
type Orderer struct {
	Actors  Actors
	Inboxes func([]db.Destination) []db.Inbox
}

// order puts a message into the log in the transaction in which it arrived: it is acknowledged once
// it stands there, and the same message stands there once. A refusal drops it: its sender hears no
// answer, and the other members nothing.
func (o Orderer) order(ctx context.Context, r *receiver, id uuid.UUID) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedWelcome)
	}
	m := &Message{Caller: r.entry.sender, Content: r.entry.message}
	if err := m.parse(); err != nil {
		return refused(Unordered)
	}
	c, err := r.LockConversation(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	t := &task{do: m}
	d := Deps{Actors: o.Actors, Inboxes: o.Inboxes, Now: func() time.Time { return r.Applied }}
	if err := d.acceptMessages(ctx, r, Place{Host: r.User, ID: id}, c, []*task{t}); err != nil {
		return Outcome{}, err
	}
	switch {
	case errors.Is(t.err, errNoConversation), errors.Is(t.err, errNotMember):
		return refused(NotMember)
	case t.err != nil:
		return refused(Unordered)
	case m.accepted.Replayed:
		return refused(OutdatedMessage)
	}
	return Outcome{Kept: true}, nil
}
