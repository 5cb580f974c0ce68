package admin

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// KeyPackages are the key packages with which others add users' devices to encrypted
// conversations.
type KeyPackages struct{ in *instance.Instance }

// PackageStats counts the key packages of a user.
type PackageStats struct {
	User vocab.Username `json:"user"`
	user.PackageStats
}

// PackageStatsList has the counts of several users.
type PackageStatsList struct {
	Users    []PackageStats `json:"users"`
	Failures []UserFailure  `json:"failures"`
}

// Stats counts the key packages of users. The fault is NoUser when a named user does not exist.
func (ks KeyPackages) Stats(ctx context.Context, named []vocab.Username, all bool) (PackageStatsList, error) {
	l := PackageStatsList{Users: []PackageStats{}, Failures: []UserFailure{}}
	users, err := chooseUsers(ctx, ks.in, named, all)
	if err != nil {
		return l, err
	}
	for _, u := range users {
		err := ks.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
			s, err := tx.KeyPackages.CountStats(ctx, ks.in.Now())
			if err == nil {
				l.Users = append(l.Users, PackageStats{u, *s})
			}
			return err
		})
		if err != nil {
			l.Failures = append(l.Failures, describeFailure(u, err))
		}
	}
	return l, nil
}
