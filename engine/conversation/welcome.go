package conversation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// welcomeLease is how long a Welcome that was handed out is not handed out again: a device that
// does not confirm it has crashed, or is slow to store what it joined.
const welcomeLease = 10 * time.Minute

const mostWelcomes = 8

// Welcomes hands out Welcomes that wait for the user, of one device unless device is empty.
func (r *Registry) Welcomes(ctx context.Context, u vocab.Username, device string) (all []db.Welcome, err error) {
	now := r.Now()
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		all, err = tx.LeaseWelcomes(ctx, r.Actors.ID(u), device, mostWelcomes, now, now.Add(welcomeLease))
		return err
	})
	return all, err
}

// ConfirmWelcome notes that the user's device has joined by a Welcome. To confirm it again changes
// nothing. A Welcome to a group that nobody puts in order does not tell which one: group is its id,
// which the device has read, or empty.
func (r *Registry) ConfirmWelcome(ctx context.Context, u vocab.Username, id uuid.UUID, group string) error {
	me := r.Actors.ID(u)
	if group != groupName([]byte(group)) {
		return unprocessable("invalid_parameter", "groupId is the id of an MLS group, as it is shown here").At("/groupId")
	}
	var was string
	err := r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		if was, err = tx.ConfirmWelcome(ctx, id, me); err != nil || was == "" || was == db.WelcomeInvalid {
			return err
		}
		w, err := tx.WelcomeOf(ctx, id, me)
		if err != nil {
			return err
		}
		if w.Conversation != uuid.Nil {
			return tx.ConfirmJoined(ctx, w.Conversation)
		}
		if group == "" {
			return nil
		}
		return joinGroup(ctx, tx, id, group, Arrival{Me: me, Now: r.Now()})
	})
	switch {
	case err != nil:
		return err
	case was == "":
		return fault.New(fault.NotFound, "there is no such Welcome").WithCode("no_welcome")
	case was == db.WelcomeInvalid:
		return fault.New(fault.Gone, "the key package of the Welcome was revoked").WithCode("welcome_invalid")
	}
	return nil
}

// joinGroup lets the user into the conversation of a group that nobody puts in order.
func joinGroup(ctx context.Context, tx *db.Tx, welcome uuid.UUID, group string, a Arrival) error {
	if err := tx.LockInbox(ctx); err != nil {
		return err
	}
	j, err := tx.JoinedByGroup(ctx, group)
	if err != nil {
		return err
	}
	if j != nil && j.Host == "" {
		if err := tx.PlaceWelcome(ctx, welcome, j.ID); err != nil {
			return err
		}
		return tx.ConfirmJoined(ctx, j.ID)
	}
	known, err := tx.IsGroupKnown(ctx, group)
	if err == nil && known {
		err = fault.New(fault.Conflict, "the MLS group has a conversation already").WithCode("group_taken").At("/groupId")
	}
	if err != nil {
		return err
	}
	_, err = beginGroup(ctx, tx, welcome, group, true, a)
	return err
}
