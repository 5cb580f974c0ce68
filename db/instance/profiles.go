package instance

import (
	"context"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ToldProfile has a digest of a user's profile. It is the digest of the version that other servers
// were told last, or of the first version, which needs no announcement.
type ToldProfile struct {
	Name   vocab.Username `db:"username"`
	Digest []byte         `db:"told_profile"` // nil: none is stored
}

// ToldProfiles returns the told profiles of the active ones among the users, sorted by name.
func (s Users) ToldProfiles(ctx context.Context, some []vocab.Username) ([]ToldProfile, error) {
	names := make([]string, len(some))
	for i, u := range some {
		names[i] = u.String()
	}
	return postgres.Collect[ToldProfile](ctx, s.on, "read told profiles", `SELECT username, told_profile FROM users
		WHERE username = ANY($1) AND state = 'active' ORDER BY username`, names)
}

// SetToldProfile stores the digest of a version of the profile of u. Later versions are compared
// with this version (see ToldProfile).
func (s Users) SetToldProfile(ctx context.Context, u vocab.Username, digest []byte) error {
	_, err := s.on.Exec(ctx, `UPDATE users SET told_profile = $2 WHERE username = $1`, u, digest)
	return postgres.Fault("note told profile of "+u.String(), err)
}
