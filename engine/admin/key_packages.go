package admin

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// KeyPackages are those by which others add users' devices to encrypted conversations.
type KeyPackages struct{ in *instance.Instance }

// PackageStats counts the key packages of a user.
type PackageStats struct {
	User       vocab.Username `json:"user"`
	Available  int            `json:"available"` // one-time and of last resort
	OneTime    int            `json:"one_time"`
	LastResort int            `json:"last_resort"`
	Consumed   int            `json:"consumed"` // claimed by somebody
	Expired    int            `json:"expired"`
	Revoked    int            `json:"revoked"`
	Devices    int            `json:"devices"` // that can be added
}

// PackageStatsList is the stats of users.
type PackageStatsList struct {
	Users    []PackageStats `json:"users"`
	Failures []UserFailure  `json:"failures"`
}

// Stats counts the key packages of users. The fault is NoUser when a named one does not exist.
func (ks KeyPackages) Stats(ctx context.Context, named []vocab.Username, all bool) (PackageStatsList, error) {
	l := PackageStatsList{Users: []PackageStats{}, Failures: []UserFailure{}}
	users, err := chooseUsers(ctx, ks.in, named, all)
	if err != nil {
		return l, err
	}
	for _, u := range users {
		err := ks.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
			s, err := tx.PackageStats(ctx, ks.in.Now())
			if err == nil {
				l.Users = append(l.Users, PackageStats{u, s.Available + s.LastResort, s.Available, s.LastResort, s.Claimed, s.Expired, s.Revoked, s.Devices})
			}
			return err
		})
		if err != nil {
			l.Failures = append(l.Failures, describeFailure(u, err))
		}
	}
	return l, nil
}
