package instance

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
)

// Hosts are the stored states of other servers.
type Hosts struct{ on conns }

// Host is the state of another server. A nil time means that the event has not happened. Here an
// attempt counts as a success if the host answers with any status but 5xx, or with 501, and does
// not ask the sender to wait.
type Host struct {
	Host         string
	Dialect      string // the signature dialect that the host is known to accept; empty: none
	Software     string // the name that the host gives its software
	Failures     int    // failed attempts at deliveries since the last success
	FailingSince *time.Time
	FailedAt     *time.Time
	Failure      string // the last failure
	// DeliveredAt is the time of the last success; it can be up to an hour too early.
	DeliveredAt *time.Time
	ClosedUntil *time.Time // nothing is sent to the host before this time
	Probes      int        // how often failures have closed the host since the last success
	InactiveAt  *time.Time // since then its deliveries are parked (see Deliveries)
	PausedAt    *time.Time // since then the operator holds back its deliveries
	ChangedAt   *time.Time // of the operator's last change
}

const hostColumns = `host, coalesce(dialect, '') AS dialect, coalesce(software, '') AS software, failures, failing_since, failed_at,
	coalesce(failure, '') AS failure, delivered_at, closed_until, probes, inactive_at, paused_at, changed_at`

// List returns all hosts, sorted by name. If troubled is true, it returns only hosts that have
// failures or are closed, inactive or paused.
func (s Hosts) List(ctx context.Context, troubled bool) ([]Host, error) {
	return s.list(ctx, `WHERE NOT $1 OR failures > 0 OR closed_until IS NOT NULL OR inactive_at IS NOT NULL OR paused_at IS NOT NULL ORDER BY host`, troubled)
}

// ListChanged returns the hosts whose ChangedAt is later than the time in the parameter since,
// the earliest change first. The parameter since is the ChangedAt of a host that an earlier call
// returned.
func (s Hosts) ListChanged(ctx context.Context, since time.Time) ([]Host, error) {
	return s.list(ctx, `WHERE changed_at > $1 ORDER BY changed_at`, since)
}

// Find returns a host. The fault is NotFound when it is not stored.
func (s Hosts) Find(ctx context.Context, host string) (Host, error) {
	all, err := s.list(ctx, `WHERE host = $1`, host)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "nothing is known of the host "+host).WithHint("lightweb host list")
	}
	if err != nil {
		return Host{}, err
	}
	return all[0], nil
}

func (s Hosts) list(ctx context.Context, which string, args ...any) ([]Host, error) {
	return postgres.Collect[Host](ctx, s.on, "read hosts", `SELECT `+hostColumns+` FROM hosts `+which, args...)
}

// Save stores the delivery state of hosts, without the operator's settings. It skips a host whose
// ChangedAt is later than the time in the parameter seen.
func (s Hosts) Save(ctx context.Context, all []Host, seen time.Time) error {
	var names, failures []string
	var counts, probes []int
	var since, failed, delivered, closed, inactive []*time.Time
	for _, h := range all {
		names, counts, since, failed, failures = append(names, h.Host), append(counts, h.Failures), append(since, h.FailingSince), append(failed, h.FailedAt), append(failures, postgres.Text(h.Failure))
		delivered, closed, probes, inactive = append(delivered, h.DeliveredAt), append(closed, h.ClosedUntil), append(probes, h.Probes), append(inactive, h.InactiveAt)
	}
	_, err := s.on.Exec(ctx, `INSERT INTO hosts AS h (host, failures, failing_since, failed_at, failure, delivered_at, closed_until, probes, inactive_at)
		SELECT host, count, since, failed, nullif(failure, ''), delivered, closed, probes, inactive
		FROM unnest(@hosts::text[], @counts::int[], @since::timestamptz[], @failed::timestamptz[], @failures::text[],
			@delivered::timestamptz[], @closed::timestamptz[], @probes::int[], @inactive::timestamptz[])
			AS n (host, count, since, failed, failure, delivered, closed, probes, inactive)
		ON CONFLICT (host) DO UPDATE SET failures = excluded.failures, failing_since = excluded.failing_since, failed_at = excluded.failed_at,
			failure = excluded.failure, delivered_at = coalesce(excluded.delivered_at, h.delivered_at), closed_until = excluded.closed_until,
			probes = excluded.probes, inactive_at = excluded.inactive_at, heard_at = now()
		WHERE h.changed_at IS NULL OR h.changed_at <= @seen`,
		pgx.NamedArgs{"hosts": names, "counts": counts, "since": since, "failed": failed, "failures": failures,
			"delivered": delivered, "closed": closed, "probes": probes, "inactive": inactive, "seen": seen})
	return postgres.Fault("store hosts", err)
}

// nextChange is the time at which an operator's change is stored. It is later than the times of
// all earlier changes, even if the clock was set back, because ListChanged and Save rely on the
// order of these times.
const nextChange = `greatest(clock_timestamp(), (SELECT max(changed_at) + interval '1 microsecond' FROM hosts))`

// Pause holds back the deliveries to a host until Resume.
func (s Hosts) Pause(ctx context.Context, host string) error {
	_, err := s.on.Exec(ctx, `INSERT INTO hosts (host, paused_at, changed_at) VALUES ($1, now(), `+nextChange+`)
		ON CONFLICT (host) DO UPDATE SET paused_at = coalesce(hosts.paused_at, now()), changed_at = `+nextChange, host)
	return postgres.Fault("pause host", err)
}

// Resume ends everything that holds back deliveries to a host. That is the operator's pause, and
// the state that failures, or a request of the host to wait, have caused. The fault is NotFound
// when the host is not stored.
func (s Hosts) Resume(ctx context.Context, host string) error {
	tag, err := s.on.Exec(ctx, `UPDATE hosts SET paused_at = NULL, failures = 0, failing_since = NULL, failure = NULL, closed_until = NULL,
		probes = 0, inactive_at = NULL, changed_at = `+nextChange+` WHERE host = $1`, host)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, "nothing is known of the host "+host).WithHint("lightweb host list")
	}
	return postgres.Fault("resume host", err)
}

// Probe sets ClosedUntil of closed hosts to now, so that the next attempt at each is made
// without delay. It skips a host that the operator has paused.
func (s Hosts) Probe(ctx context.Context, hosts []string) error {
	_, err := s.on.Exec(ctx, `UPDATE hosts SET closed_until = now(), changed_at = `+nextChange+`
		WHERE host = ANY($1) AND closed_until > now() AND paused_at IS NULL`, hosts)
	return postgres.Fault("probe hosts", err)
}

// LearnSoftware stores the name that a host gives its software.
func (s Hosts) LearnSoftware(ctx context.Context, host, software string) error {
	_, err := s.on.Exec(ctx, `INSERT INTO hosts (host, software) VALUES ($1, $2)
		ON CONFLICT (host) DO UPDATE SET software = excluded.software, heard_at = now()`, host, postgres.Text(software))
	return postgres.Fault("store host", err)
}

// LearnDialect stores a signature dialect that a host has accepted, or has signed a request with.
func (s Hosts) LearnDialect(ctx context.Context, host, dialect string, now time.Time) error {
	_, err := s.on.Exec(ctx, `INSERT INTO hosts (host, dialect, learned_at) VALUES ($1, $2, $3)
		ON CONFLICT (host) DO UPDATE SET dialect = excluded.dialect, learned_at = excluded.learned_at, heard_at = now()`, host, dialect, now)
	return postgres.Fault("store host", err)
}

// Dialect returns the signature dialect that LearnDialect stored last for a host, and when. It
// returns an empty string if none is stored. It also stores, at most once a day, that the host is
// in use. So Prune does not remove the host.
func (s Hosts) Dialect(ctx context.Context, host string) (dialect string, learnedAt time.Time, err error) {
	err = s.on.QueryRow(ctx, `WITH heard AS (UPDATE hosts SET heard_at = now() WHERE host = $1 AND heard_at < now() - interval '1 day')
		SELECT dialect, learned_at FROM hosts WHERE host = $1 AND dialect IS NOT NULL AND learned_at IS NOT NULL`, host).Scan(&dialect, &learnedAt)
	if postgres.IsNoRows(err) {
		return "", time.Time{}, nil
	}
	return dialect, learnedAt, postgres.Fault("read host", err)
}

// hostUnheard limits how long an unused host is stored.
const hostUnheard = 90 * 24 * time.Hour

// Prune removes the hosts that were not in use for 90 days, a batch at a time, and returns how
// many it removed. If dryRun is true, it only counts these hosts. A host stays if the operator
// paused it, if it is closed now, or if deliveries to it are parked. A host that accepts
// draft-cavage also stays as long as a user is acquainted with one of its actors, because it may
// answer 2xx to RFC 9421 and drop the activity.
func (s Hosts) Prune(ctx context.Context, now time.Time, dryRun bool) (n int, err error) {
	const old = `SELECT h.host FROM hosts h WHERE heard_at < $1 AND paused_at IS NULL AND (closed_until IS NULL OR closed_until < $2)
		AND NOT EXISTS (SELECT FROM parked p WHERE p.host = h.host)
		AND NOT (coalesce(dialect, '') = 'cavage' AND EXISTS (SELECT FROM acquaintances a
			WHERE a.actor_uri > 'https://' || h.host || '/' AND a.actor_uri < 'https://' || h.host || '0'))` // '0' follows '/' in the locale C
	if dryRun {
		err = s.on.QueryRow(ctx, `SELECT count(*) FROM (`+old+`) o`, now.Add(-hostUnheard), now).Scan(&n)
		return n, postgres.Fault("count old hosts", err)
	}
	for {
		began := time.Now()
		tag, err := s.on.Exec(ctx, `DELETE FROM hosts WHERE heard_at < $1 AND host IN (`+old+` ORDER BY heard_at LIMIT $3)`, now.Add(-hostUnheard), now, pruneBatch)
		if n += int(tag.RowsAffected()); err != nil || tag.RowsAffected() < pruneBatch {
			return n, postgres.Fault("prune hosts", err)
		}
		if err := postgres.Rest(ctx, time.Since(began)); err != nil {
			return n, err
		}
	}
}
