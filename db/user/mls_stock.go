package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// MLSStock counts the key packages that others can still claim to add the user's devices to
// conversations, and the Welcomes that no device of the user has confirmed.
type MLSStock struct {
	KeyPackages int // one-time packages
	Welcomes    int // for the user, not confirmed by any device
}

// CountStock counts the MLSStock of the user. The parameter me is the user's actor.
func (t KeyPackages) CountStock(ctx context.Context, me vocab.ID, now time.Time) (s MLSStock, err error) {
	err = t.row(ctx, "count key packages and welcomes", `SELECT (SELECT count(*) FROM mls_key_packages WHERE `+usable+` AND NOT last_resort),
		(SELECT count(*) FROM mls_welcomes WHERE recipient_uri = @me AND state IN ('available', 'in_flight'))`, []any{named{"now": now, "me": me}}, &s.KeyPackages, &s.Welcomes)
	return s, err
}
