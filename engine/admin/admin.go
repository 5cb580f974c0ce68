// Package admin has the tasks of an operator, with a small struct for each noun. The command
// line calls these tasks, and tests or a console can call the same ones.
package admin

import (
	"context"
	"fmt"
	"slices"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Tasks are the operator's tasks on one instance.
type Tasks struct {
	Users      Users
	Configs    Configs
	Tokens     Tokens
	Passwords  Passwords
	Identities Identities
	Audits     Audits
	Actors     Actors
	Domains    Domains
	Hosts      Hosts
	Relays     Relays
	Reports    Reports
	Deliveries Deliveries
	Inboxes    Inboxes

	Conversations Conversations
	KeyPackages   KeyPackages

	Databases Databases
	Streams   Streams
	Caches    Caches
	Backups   Backups
	Imports   Imports
}

// New returns the tasks on an instance.
func New(in *instance.Instance) *Tasks {
	return &Tasks{Users{in}, Configs{in}, Tokens{in}, Passwords{in}, Identities{in}, Audits{in}, Actors{in}, Domains{in}, Hosts{in}, Relays{in}, Reports{in}, Deliveries{in}, Inboxes{in}, Conversations{in}, KeyPackages{in}, Databases{in}, Streams{in}, Caches{in}, Backups{in}, Imports{in}}
}

// chooseUsers returns the named users. If all is true, it returns every user except those that are
// deleted or still being created. The fault is NoUser when a named user does not exist or is
// deleted.
func chooseUsers(ctx context.Context, in *instance.Instance, named []vocab.Username, all bool) ([]vocab.Username, error) {
	if !all {
		for _, u := range named {
			if _, err := in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
				return nil, err
			}
		}
		return named, nil
	}
	rows, err := in.DB.Instance.Users.All(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r dbinstance.User) bool {
		return r.State == dbinstance.UserDeleted || r.State == dbinstance.UserCreating
	})
	users := make([]vocab.Username, len(rows))
	for i, r := range rows {
		users[i] = r.Name
	}
	return users, nil
}

// checkStays returns a fault for a user who must not be changed. The fault is NoUser when the user
// does not exist, is being deleted, or is deleted.
func checkStays(ctx context.Context, in *instance.Instance, u vocab.Username) error {
	row, err := in.DB.Instance.Users.FindUndeleted(ctx, u)
	if err == nil && row.State == dbinstance.UserDeleting {
		err = fault.New(fault.NoUser, fmt.Sprintf("the user %q is %s", u, row.State)).WithHint("lightweb user list")
	}
	return err
}
