package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// KeyPackage is one of a device of the user.
type KeyPackage struct {
	ID         uuid.UUID
	Ref        []byte // its KeyPackageRef
	Device     string
	Suite      int32
	Content    []byte // the bare struct
	LastResort bool   // it may be claimed again and again, and the public sees it
	NotAfter   time.Time
	State      string
	CreatedAt  time.Time
}

// PackageAvailable is the state of a package that may be claimed, or shown.
const PackageAvailable = "available"

const keyPackageColumns = `id, ref, device_id, suite, content, last_resort, not_after, state, created_at`

// usable is the condition that a package may be handed out at $1: an adder needs time to use it.
const usable = `state = 'available' AND not_after > $1::timestamptz + interval '1 day'`

// AddKeyPackage publishes a package, and reports whether it is new. One of last resort retires the
// one that the device had.
func (t *Tx) AddKeyPackage(ctx context.Context, k KeyPackage) (bool, error) {
	if k.LastResort {
		if _, err := t.execBeside(ctx, "retire key package", `UPDATE mls_key_packages SET state = 'retired' WHERE device_id = $1 AND suite = $2 AND last_resort AND state = 'available'
			AND NOT EXISTS (SELECT FROM mls_key_packages WHERE ref = $3)`, k.Device, k.Suite, k.Ref); err != nil {
			return false, err
		}
	}
	n, err := t.execBeside(ctx, "add key package", `INSERT INTO mls_key_packages (id, ref, device_id, suite, content, last_resort, not_after, state, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'available', $8) ON CONFLICT (ref) DO NOTHING`, k.ID, k.Ref, k.Device, k.Suite, k.Content, k.LastResort, k.NotAfter, k.CreatedAt)
	return n == 1, err
}

// PruneKeyPackages forgets packages that ended before a time.
func (t *Tx) PruneKeyPackages(ctx context.Context, before time.Time) error {
	_, err := t.execBeside(ctx, "forget key packages", `DELETE FROM mls_key_packages WHERE not_after < $1`, before)
	return err
}

// KeyPackages returns the packages of the user that are available, each device's together.
func (t *Tx) KeyPackages(ctx context.Context, now time.Time) ([]KeyPackage, error) {
	return collect[KeyPackage](ctx, t, "list key packages", `SELECT `+keyPackageColumns+` FROM mls_key_packages WHERE state = 'available' AND not_after > $1 ORDER BY device_id, created_at, id`, now)
}

// PublicKeyPackages returns one package of each device, of a suite: the one of last resort.
func (t *Tx) PublicKeyPackages(ctx context.Context, suite int32, now time.Time, n int) ([]KeyPackage, error) {
	return collect[KeyPackage](ctx, t, "list public key packages", `SELECT `+keyPackageColumns+` FROM mls_key_packages
		WHERE `+usable+` AND suite = $2 AND last_resort ORDER BY created_at, id LIMIT $3`, now, suite, n)
}

// KeyPackage returns a package of the user, nil when there is none.
func (t *Tx) KeyPackage(ctx context.Context, id uuid.UUID) (*KeyPackage, error) {
	return one[KeyPackage](ctx, t, "read key package", `SELECT `+keyPackageColumns+` FROM mls_key_packages WHERE id = $1`, id)
}

// ClaimKeyPackages takes one package of each device for an actor: one that nobody else gets, while
// there is one, else that of last resort.
func (t *Tx) ClaimKeyPackages(ctx context.Context, claimer vocab.ID, now time.Time) ([]KeyPackage, error) {
	once, err := collect[KeyPackage](ctx, t, "claim key packages", `WITH devices AS (SELECT DISTINCT device_id FROM mls_key_packages WHERE `+usable+`),
		picked AS (SELECT k.id FROM devices d CROSS JOIN LATERAL (SELECT id FROM mls_key_packages
			WHERE device_id = d.device_id AND NOT last_resort AND `+usable+` ORDER BY not_after, id LIMIT 1 FOR UPDATE SKIP LOCKED) k)
		UPDATE mls_key_packages SET state = 'claimed', claimed_by = $2, claimed_at = $1 WHERE id IN (SELECT id FROM picked)
		RETURNING `+keyPackageColumns, now, claimer)
	if err != nil {
		return nil, err
	}
	devices := make([]string, len(once))
	for i, k := range once {
		devices[i] = k.Device
	}
	last, err := collect[KeyPackage](ctx, t, "take key packages of last resort", `SELECT DISTINCT ON (device_id) `+keyPackageColumns+` FROM mls_key_packages
		WHERE `+usable+` AND last_resort AND device_id <> ALL($2) ORDER BY device_id, suite`, now, devices)
	return append(once, last...), err
}

// CountClaims returns how many packages an actor has claimed since a time.
func (t *Tx) CountClaims(ctx context.Context, claimer vocab.ID, since time.Time) (n int, err error) {
	err = t.row(ctx, "count claims", `SELECT count(*) FROM mls_key_packages WHERE claimed_by = $1 AND claimed_at > $2 AND state = 'claimed'`, []any{claimer, since}, &n)
	return n, err
}

// RevokeKeyPackage takes a package back with the Welcomes that wait for it, and reports whether
// there was one.
func (t *Tx) RevokeKeyPackage(ctx context.Context, id uuid.UUID) (bool, error) {
	n, err := t.execBeside(ctx, "revoke key package", `WITH revoked AS (UPDATE mls_key_packages SET state = 'revoked', claimed_by = NULL WHERE id = $1 AND state <> 'revoked' RETURNING ref),
			invalid AS (UPDATE mls_welcomes w SET state = 'invalid', leased_until = NULL FROM revoked r WHERE w.key_package_ref = r.ref AND w.state IN ('available', 'in_flight'))
		SELECT FROM revoked`, id)
	return n == 1, err
}

// PackageStats counts the packages of the user.
type PackageStats struct {
	Available  int // for one claim each
	LastResort int
	Claimed    int
	Expired    int
	Revoked    int
	Told       bool // the user was told that few are left, and there were not enough since
	Devices    int  // of which a package may be handed out
}

// PackageStats counts the packages of the user.
func (t *Tx) PackageStats(ctx context.Context, now time.Time) (*PackageStats, error) {
	return one[PackageStats](ctx, t, "count key packages", `SELECT count(*) FILTER (WHERE `+usable+` AND NOT last_resort), count(*) FILTER (WHERE `+usable+` AND last_resort),
		count(*) FILTER (WHERE state = 'claimed'), count(*) FILTER (WHERE state = 'available' AND not_after <= $1::timestamptz + interval '1 day'), count(*) FILTER (WHERE state = 'revoked'),
		coalesce(bool_or(told_low), false), count(DISTINCT device_id) FILTER (WHERE `+usable+`) FROM mls_key_packages`, now)
}

// NoteLow notes that the user was told that few packages are left, or that there are enough again.
func (t *Tx) NoteLow(ctx context.Context, low bool) error {
	query := `UPDATE mls_key_packages SET told_low = false WHERE told_low`
	if low {
		query = `UPDATE mls_key_packages SET told_low = true WHERE id = (SELECT id FROM mls_key_packages WHERE state = 'claimed' ORDER BY claimed_at DESC LIMIT 1)`
	}
	_, err := t.execBeside(ctx, "note how many key packages are left", query)
	return err
}
