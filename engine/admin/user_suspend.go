package admin

import (
	"context"
	"errors"
	"fmt"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Suspend closes a user to everybody: tokens are refused, the actor, posts and collections are
// not shown, inboxes answer 410, and open streams of events end within a minute. Nothing is
// deleted, and Unsuspend undoes all of it. The fault is Conflict when the user is suspended
// already, and NoUser when the user does not exist or is neither active nor suspended.
func (us Users) Suspend(ctx context.Context, name vocab.Username) (User, error) {
	row, err := us.in.DB.Instance.Users.Find(ctx, name)
	if err != nil {
		return User{}, err
	}
	if row.State == dbinstance.UserSuspended {
		return User{}, fault.New(fault.Conflict, fmt.Sprintf("the user %q is already suspended", name)).WithHint("lightweb user unsuspend " + name.String())
	}
	if err := us.in.DB.Instance.Users.SetState(ctx, name, dbinstance.UserSuspended); err != nil {
		return User{}, err
	}
	return us.Find(ctx, name)
}

// Unsuspend makes a suspended user active again. A serving engine applies the activities that
// waited for the user, and resumes the user's deliveries and events. The fault is NotFound when
// the user is not suspended.
func (us Users) Unsuspend(ctx context.Context, name vocab.Username) (User, error) {
	users := us.in.DB.Instance.Users
	row, err := users.Find(ctx, name)
	if err != nil {
		return User{}, err
	}
	if row.State != dbinstance.UserSuspended {
		return User{}, fault.New(fault.NotFound, fmt.Sprintf("the user %q is not suspended: it is %s", name, row.State)).WithHint("lightweb user list")
	}
	if err := users.SetState(ctx, name, dbinstance.UserActive); err != nil {
		return User{}, err
	}
	if err := errors.Join(us.in.DB.Instance.Deliveries.Want(ctx, []vocab.Username{name}), users.MarkEventsDue(ctx, name)); err != nil {
		return User{}, err
	}
	return us.Find(ctx, name)
}
