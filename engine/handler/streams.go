package handler

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sendAdd applies an Add of the user. It adds an actor to a group, adds a stream to the user's
// streams, adds an object to a stream, or pins an object.
func sendAdd(ctx context.Context, tx *user.Tx, s *Sent) error {
	a := s.Activity
	switch {
	case s.Group != nil:
		return addMember(ctx, tx, s)
	case s.Stream == nil:
		return tx.Pins.Set(ctx, user.Pin{Actor: s.Actor.ID, Object: a.Object.ID, Activity: a.ID}, s.Now)
	case a.Object.ID == s.Stream.URI:
		made := *s.Stream
		made.Activity, made.CreatedAt = a.ID, s.Now
		return tx.Streams.Add(ctx, made)
	}
	return tx.Streams.AddObject(ctx, s.Stream.URI, user.StreamObject{Object: a.Object.ID, ID: uuid.Must(uuid.NewV7()), Activity: a.ID, AddedAt: s.Now})
}

// sendRemove applies a Remove of the user, which takes back an Add.
func sendRemove(ctx context.Context, tx *user.Tx, s *Sent) error {
	object := s.Activity.Object.ID
	switch {
	case s.Group != nil:
		return removeMember(ctx, tx, s)
	case s.Stream == nil:
		_, err := tx.Pins.Remove(ctx, s.Actor.ID, object)
		return err
	case object == s.Stream.URI:
		return tx.Streams.Remove(ctx, object)
	}
	return tx.Streams.RemoveObject(ctx, s.Stream.URI, object)
}

// collectedID returns the stream that an Add or Remove makes or deletes, or else the collection
// that it changes.
func collectedID(a *vocab.Activity) vocab.ID {
	if a.Object.Type() == vocab.OrderedCollection {
		return a.Object.ID
	}
	return a.Target.ID
}
