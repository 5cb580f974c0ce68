package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// KeyPackage is an MLS key package of one of the user's devices.
type KeyPackage struct {
	ID         uuid.UUID
	Ref        []byte // its KeyPackageRef
	Device     string
	Suite      int32
	Content    []byte // the KeyPackage struct alone, without an MLSMessage around it
	LastResort bool   // the package may be claimed again and again, and is public
	NotAfter   time.Time
	State      string
	CreatedAt  time.Time
}

// PackageAvailable is the state of a package that may be claimed, or shown.
const PackageAvailable = "available"

const keyPackageColumns = `id, ref, device_id AS device, suite, content, last_resort, not_after, state, created_at`

// usable holds for a package that may be handed out at the time @now. It must be valid for
// another day, since the claimer needs time to use it.
const usable = `state = 'available' AND not_after > @now::timestamptz + interval '1 day'`

// Add publishes a package, and reports whether it is new. A new package of last resort retires
// the device's earlier one of the same suite.
func (t KeyPackages) Add(ctx context.Context, k KeyPackage) (bool, error) {
	if k.LastResort {
		if _, err := t.execBeside(ctx, "retire key package", `UPDATE mls_key_packages SET state = 'retired' WHERE device_id = $1 AND suite = $2 AND last_resort AND state = 'available'
			AND NOT EXISTS (SELECT FROM mls_key_packages WHERE ref = $3)`, k.Device, k.Suite, k.Ref); err != nil {
			return false, err
		}
	}
	n, err := t.execBeside(ctx, "add key package", `INSERT INTO mls_key_packages (id, ref, device_id, suite, content, last_resort, not_after, state, created_at)
		VALUES (@id, @ref, @device, @suite, @content, @last_resort, @not_after, 'available', @created) ON CONFLICT (ref) DO NOTHING`,
		named{"id": k.ID, "ref": k.Ref, "device": k.Device, "suite": k.Suite, "content": k.Content, "last_resort": k.LastResort, "not_after": k.NotAfter,
			"created": k.CreatedAt})
	return n == 1, err
}

// FindAll returns the packages with these references, by reference.
func (t KeyPackages) FindAll(ctx context.Context, refs [][]byte) (map[string]KeyPackage, error) {
	all, err := collect[KeyPackage](ctx, t.tx, "read key packages", `SELECT `+keyPackageColumns+` FROM mls_key_packages WHERE ref = ANY($1)`, refs)
	found := make(map[string]KeyPackage, len(all))
	for _, k := range all {
		found[string(k.Ref)] = k
	}
	return found, err
}

// Prune removes packages that expired before a time.
func (t KeyPackages) Prune(ctx context.Context, before time.Time) error {
	_, err := t.execBeside(ctx, "forget key packages", `DELETE FROM mls_key_packages WHERE not_after < $1`, before)
	return err
}

// List returns the user's available packages that have not expired, sorted by device.
func (t KeyPackages) List(ctx context.Context, now time.Time) ([]KeyPackage, error) {
	return collect[KeyPackage](ctx, t.tx, "list key packages", `SELECT `+keyPackageColumns+` FROM mls_key_packages WHERE state = 'available' AND not_after > $1 ORDER BY device_id, created_at, id`, now)
}

// ListPublic returns up to n usable packages of last resort of a suite, one of each device.
func (t KeyPackages) ListPublic(ctx context.Context, suite int32, now time.Time, n int) ([]KeyPackage, error) {
	return collect[KeyPackage](ctx, t.tx, "list public key packages", `SELECT `+keyPackageColumns+` FROM mls_key_packages
		WHERE `+usable+` AND suite = @suite AND last_resort ORDER BY created_at, id LIMIT @n`, named{"now": now, "suite": suite, "n": n})
}

// Find returns a package of the user, nil when there is none.
func (t KeyPackages) Find(ctx context.Context, id uuid.UUID) (*KeyPackage, error) {
	return one[KeyPackage](ctx, t.tx, "read key package", `SELECT `+keyPackageColumns+` FROM mls_key_packages WHERE id = $1`, id)
}

// Claim returns one usable package of each device for an actor. It returns a one-time package,
// and marks it as claimed. If the device has no one-time package that is usable and not locked by
// another transaction, Claim returns a package of last resort. It leaves out a device that has
// neither.
func (t KeyPackages) Claim(ctx context.Context, claimer vocab.ID, now time.Time) ([]KeyPackage, error) {
	once, err := collect[KeyPackage](ctx, t.tx, "claim key packages", `WITH devices AS (SELECT DISTINCT device_id FROM mls_key_packages WHERE `+usable+`),
		picked AS (SELECT k.id FROM devices d CROSS JOIN LATERAL (SELECT id FROM mls_key_packages
			WHERE device_id = d.device_id AND NOT last_resort AND `+usable+` ORDER BY not_after, id LIMIT 1 FOR UPDATE SKIP LOCKED) k)
		UPDATE mls_key_packages SET state = 'claimed', claimed_by = @claimer, claimed_at = @now WHERE id IN (SELECT id FROM picked)
		RETURNING `+keyPackageColumns, named{"now": now, "claimer": claimer})
	if err != nil {
		return nil, err
	}
	devices := make([]string, len(once))
	for i, k := range once {
		devices[i] = k.Device
	}
	last, err := collect[KeyPackage](ctx, t.tx, "take key packages of last resort", `SELECT DISTINCT ON (device_id) `+keyPackageColumns+` FROM mls_key_packages
		WHERE `+usable+` AND last_resort AND device_id <> ALL(@devices) ORDER BY device_id, suite`, named{"now": now, "devices": devices})
	return append(once, last...), err
}

// Claims has the number of one-time packages that an actor has claimed.
type Claims struct {
	Actor vocab.ID
	Count int
}

// CountClaims returns how many one-time packages each actor has claimed since a time. Packages that
// a restore marked as claimed have no claimer.
func (t KeyPackages) CountClaims(ctx context.Context, since time.Time) ([]Claims, error) {
	return collect[Claims](ctx, t.tx, "count claims", `SELECT claimed_by AS actor, count(*) FROM mls_key_packages WHERE claimed_at > $1 AND state = 'claimed' AND claimed_by <> '' GROUP BY claimed_by`, since)
}

// Revoke revokes a package and invalidates its unconfirmed Welcomes. It reports whether there
// was an unrevoked package with this id.
func (t KeyPackages) Revoke(ctx context.Context, id uuid.UUID) (bool, error) {
	revoked, err := collect[struct{ Ref []byte }](ctx, t.tx, "revoke key package", `UPDATE mls_key_packages SET state = 'revoked', claimed_by = NULL WHERE id = $1 AND state <> 'revoked' RETURNING ref`, id)
	if err != nil || len(revoked) == 0 {
		return false, err
	}
	_, err = t.execBeside(ctx, "revoke welcomes", `UPDATE mls_welcomes SET state = 'invalid', leased_until = NULL WHERE key_package_ref = $1 AND state IN ('available', 'in_flight')`, revoked[0].Ref)
	return true, err
}

// PackageStats counts the packages of the user.
type PackageStats struct {
	Available  int  `json:"available"` // the sum of OneTime and LastResort
	OneTime    int  `json:"one_time"`  // for one claim each
	LastResort int  `json:"last_resort"`
	Claimed    int  `json:"consumed"`
	Expired    int  `json:"expired"`
	Revoked    int  `json:"revoked"`
	Devices    int  `json:"devices"` // devices with a package that may be handed out
	Told       bool `json:"-"`       // the user was told that few are left, and that still holds
}

// CountStats counts the packages of the user.
func (t KeyPackages) CountStats(ctx context.Context, now time.Time) (*PackageStats, error) {
	return one[PackageStats](ctx, t.tx, "count key packages", `SELECT count(*) FILTER (WHERE `+usable+`) AS available,
		count(*) FILTER (WHERE `+usable+` AND NOT last_resort) AS one_time, count(*) FILTER (WHERE `+usable+` AND last_resort) AS last_resort,
		count(*) FILTER (WHERE state = 'claimed') AS claimed, count(*) FILTER (WHERE state = 'available' AND not_after <= @now::timestamptz + interval '1 day') AS expired,
		count(*) FILTER (WHERE state = 'revoked') AS revoked,
		count(DISTINCT device_id) FILTER (WHERE `+usable+`) AS devices, coalesce(bool_or(told_low), false) AS told FROM mls_key_packages`, named{"now": now})
}

// NoteLow stores whether the user was told that few packages are left. The parameter low is false
// when there are enough again.
func (t KeyPackages) NoteLow(ctx context.Context, low bool) error {
	query := `UPDATE mls_key_packages SET told_low = false WHERE told_low`
	if low {
		query = `UPDATE mls_key_packages SET told_low = true WHERE id = (SELECT id FROM mls_key_packages WHERE state = 'claimed' ORDER BY claimed_at DESC LIMIT 1)`
	}
	_, err := t.execBeside(ctx, "note how many key packages are left", query)
	return err
}
