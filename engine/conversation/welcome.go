package conversation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// welcomeLease is the time until a Welcome is handed out again if no device confirms it. The
// device that got the Welcome may have crashed, or may be slow to store its new group.
const welcomeLease = 10 * time.Minute

const mostWelcomes = 8

// Welcomes hands out up to mostWelcomes waiting Welcomes of one device of the user, or of all
// devices if the parameter device is empty.
func (r *Registry) Welcomes(ctx context.Context, u vocab.Username, device string) (all []user.Welcome, err error) {
	now := r.Now()
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		all, err = tx.Welcomes.Lease(ctx, r.Actors.ID(u), device, mostWelcomes, now, now.Add(welcomeLease))
		return err
	})
	return all, err
}

// ConfirmWelcome stores that the user's device has joined by a Welcome. A later confirmation
// changes something only if it is the first one that names the group. The server cannot read the
// group's id in a Welcome to a group without a host. For such a Welcome the parameter group is
// the id that the device has read in it, or empty. A host may not confirm the Welcomes of other
// members.
func (r *Registry) ConfirmWelcome(ctx context.Context, u vocab.Username, id uuid.UUID, group string) error {
	me := r.Actors.ID(u)
	if group != groupName([]byte(group)) {
		return unprocessable("invalid_parameter", "groupId is the id of an MLS group, as it is shown here").At("/groupId")
	}
	was, isOfAnother := "", false
	err := r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if err := tx.Messages.Lock(ctx); err != nil { // all transactions take this lock before the Welcome's row
			return err
		}
		if was, err = tx.Welcomes.Confirm(ctx, id, me); err != nil || was == user.WelcomeInvalid {
			return err
		}
		if was == "" {
			isOfAnother, err = tx.Welcomes.IsOfAnother(ctx, id, me)
			return err
		}
		w, err := tx.Welcomes.FindFor(ctx, id, me)
		if err != nil {
			return err
		}
		if w.Conversation != uuid.Nil {
			return tx.Joined.Confirm(ctx, w.Conversation, w.Sender)
		}
		if group == "" {
			return nil
		}
		return joinGroup(ctx, tx, w, group, Arrival{Me: me, Now: r.Now()})
	})
	switch {
	case err != nil:
		return explainTaken(err, "")
	case isOfAnother:
		return fault.New(fault.Forbidden, "the Welcome is for another member").WithCode("not_recipient")
	case was == "":
		return fault.New(fault.NotFound, "there is no such Welcome").WithCode("no_welcome")
	case was == user.WelcomeInvalid:
		return fault.New(fault.Gone, "the key package of the Welcome was revoked").WithCode("welcome_invalid")
	}
	return nil
}

// joinGroup joins the user to the conversation of a group without a host. If there is no such
// conversation yet, it makes one. The caller has called tx.Messages.Lock.
func joinGroup(ctx context.Context, tx *user.Tx, w *user.Welcome, group string, a Arrival) error {
	j, err := tx.Joined.FindGroup(ctx, group)
	if err != nil {
		return err
	}
	if j != nil && j.Host == "" {
		if err := tx.Welcomes.Place(ctx, w.ID, j.ID); err != nil {
			return err
		}
		if err := tx.Conversations.Join(ctx, j.ID, []vocab.ID{w.Sender}, user.RoleMember, 0); err != nil {
			return err
		}
		return tx.Joined.Confirm(ctx, j.ID, w.Sender)
	}
	taken, err := tx.Joined.IsGroupTaken(ctx, group)
	if err == nil && taken {
		err = fault.New(fault.Conflict, takenGroup).WithCode("group_taken").At("/groupId")
	}
	if err != nil {
		return err
	}
	_, err = beginGroup(ctx, tx, w, group, true, a)
	return err
}
