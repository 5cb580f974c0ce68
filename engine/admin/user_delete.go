package admin

import (
	"context"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/deletion"
	"github.com/lightweb/lightweb/engine/vocab"
)

// DeletedUser is the progress of the deletion of a user.
type DeletedUser struct {
	User  vocab.Username `json:"user"`
	State string         `json:"state"` // deleting
	Since time.Time      `json:"since"`
	Until time.Time      `json:"until"` // when the deletion ends at the latest, if an engine serves
	Owed  *int           `json:"owed"`  // deliveries that have not ended; null when they are not counted yet
}

// Delete closes a user to everybody for good. A serving engine, or the next one that starts,
// then announces the deletion to every server that may have data of the user. Afterwards
// everything of the user is removed except the name. For a user who is being deleted already,
// Delete only returns the progress. The fault is NoUser when there is no such user, Gone when the
// user was deleted, and Conflict when the user is not completely made yet.
func (us Users) Delete(ctx context.Context, name vocab.Username) (DeletedUser, error) {
	users := us.in.DB.Instance.Users
	row, err := users.Find(ctx, name)
	if err != nil {
		return DeletedUser{}, err
	}
	d, err := users.BeginDeletion(ctx, name, us.in.Now().UTC())
	if err != nil {
		return DeletedUser{}, err
	}
	r := DeletedUser{User: name, State: dbinstance.UserDeleting, Since: d.Since, Until: d.Since.Add(deletion.MostWait)}
	if row.State == dbinstance.UserDeleting {
		if owed, err := us.in.CountOwed(ctx, name); err == nil {
			r.Owed = &owed
		} else {
			us.in.Log.WarnContext(ctx, "deliveries not counted", "user", name, "err", err)
		}
	}
	return r, nil
}
