package handler

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sendAdd does what an Add of the user's says: an actor is put into a group, a stream among the
// user's streams, an object into a stream, or among what the user shows first.
func sendAdd(ctx context.Context, tx Tx, s *Sent) error {
	a := s.Activity
	switch {
	case s.Group != nil:
		return addMember(ctx, tx, s)
	case s.Stream == nil:
		return tx.SetPin(ctx, db.Pin{Actor: s.Actor.ID, Object: a.Object.ID, Activity: a.ID}, s.Now)
	case a.Object.ID == s.Stream.URI:
		made := *s.Stream
		made.Activity, made.CreatedAt = a.ID, s.Now
		return tx.AddStream(ctx, made)
	}
	return tx.AddToStream(ctx, s.Stream.URI, db.StreamObject{Object: a.Object.ID, ID: uuid.Must(uuid.NewV7()), Activity: a.ID, AddedAt: s.Now})
}

// sendRemove takes back what an Add of the user's did.
func sendRemove(ctx context.Context, tx Tx, s *Sent) error {
	object := s.Activity.Object.ID
	switch {
	case s.Group != nil:
		return removeMember(ctx, tx, s)
	case s.Stream == nil:
		_, err := tx.RemovePin(ctx, s.Actor.ID, object)
		return err
	case object == s.Stream.URI:
		return tx.RemoveStream(ctx, object)
	}
	return tx.RemoveFromStream(ctx, s.Stream.URI, object)
}

// collectedID returns the stream that an Add or Remove makes or deletes, else the collection that
// it changes.
func collectedID(a *vocab.Activity) vocab.ID {
	if a.Object.Type() == vocab.OrderedCollection {
		return a.Object.ID
	}
	return a.Target.ID
}
