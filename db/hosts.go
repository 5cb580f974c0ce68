package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Host is what is known of another server. Times that are nil never were.
type Host struct {
	Host         string
	Dialect      string // of signatures, as last taken; empty when nothing is known
	Software     string // as it calls itself
	Failures     int    // attempts at deliveries since something got through to it
	FailingSince *time.Time
	FailedAt     *time.Time
	Failure      string     // the last one
	DeliveredAt  *time.Time // within the hour
	ClosedUntil  *time.Time // nothing is sent before
	Probes       int        // attempts that found it closed still
	InactiveAt   *time.Time // since then its deliveries are parked
	PausedAt     *time.Time // since then the operator holds them back
	ChangedAt    *time.Time // by the operator
}

const hostColumns = `host, coalesce(dialect, ''), coalesce(software, ''), failures, failing_since, failed_at, coalesce(failure, ''), delivered_at,
	closed_until, probes, inactive_at, paused_at, changed_at`

// Hosts returns the hosts of which anything is known, by name: with troubled only those that something is the matter with.
func (c *Cluster) Hosts(ctx context.Context, troubled bool) ([]Host, error) {
	return c.hosts(ctx, `WHERE NOT $1 OR failures > 0 OR closed_until IS NOT NULL OR inactive_at IS NOT NULL OR paused_at IS NOT NULL ORDER BY host`, troubled)
}

// HostsChanged returns the hosts that the operator has changed since then, which is a time that such a host had.
func (c *Cluster) HostsChanged(ctx context.Context, since time.Time) ([]Host, error) {
	return c.hosts(ctx, `WHERE changed_at > $1 ORDER BY changed_at`, since)
}

// Host returns what is known of a host. The fault is NotFound when nothing is.
func (c *Cluster) Host(ctx context.Context, host string) (Host, error) {
	all, err := c.hosts(ctx, `WHERE host = $1`, host)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "nothing is known of the host "+host).WithHint("lightweb host list")
	}
	if err != nil {
		return Host{}, err
	}
	return all[0], nil
}

func (c *Cluster) hosts(ctx context.Context, which string, args ...any) ([]Host, error) {
	rows, err := c.instance.Query(ctx, `SELECT `+hostColumns+` FROM hosts `+which, args...)
	if err != nil {
		return nil, postgres.Fault("read hosts", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Host])
	return all, postgres.Fault("read hosts", err)
}

// SaveHosts remembers how deliveries to hosts go: everything but what the operator sets. A host that the operator changed
// later than seen keeps what it has.
func (c *Cluster) SaveHosts(ctx context.Context, all []Host, seen time.Time) error {
	var names, failures []string
	var counts, probes []int
	var since, failed, delivered, closed, inactive []*time.Time
	for _, h := range all {
		names, counts, since, failed, failures = append(names, h.Host), append(counts, h.Failures), append(since, h.FailingSince), append(failed, h.FailedAt), append(failures, text(h.Failure))
		delivered, closed, probes, inactive = append(delivered, h.DeliveredAt), append(closed, h.ClosedUntil), append(probes, h.Probes), append(inactive, h.InactiveAt)
	}
	_, err := c.instance.Exec(ctx, `INSERT INTO hosts AS h (host, failures, failing_since, failed_at, failure, delivered_at, closed_until, probes, inactive_at)
		SELECT host, count, since, failed, nullif(failure, ''), delivered, closed, probes, inactive
		FROM unnest($1::text[], $2::int[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::int[], $9::timestamptz[])
			AS n (host, count, since, failed, failure, delivered, closed, probes, inactive)
		ON CONFLICT (host) DO UPDATE SET failures = excluded.failures, failing_since = excluded.failing_since, failed_at = excluded.failed_at,
			failure = excluded.failure, delivered_at = coalesce(excluded.delivered_at, h.delivered_at), closed_until = excluded.closed_until,
			probes = excluded.probes, inactive_at = excluded.inactive_at, heard_at = now()
		WHERE h.changed_at IS NULL OR h.changed_at <= $10`,
		names, counts, since, failed, failures, delivered, closed, probes, inactive, seen)
	return postgres.Fault("remember hosts", err)
}

// PauseHost holds back what is owed to a host until it is resumed.
func (c *Cluster) PauseHost(ctx context.Context, host string) error {
	_, err := c.instance.Exec(ctx, `INSERT INTO hosts (host, paused_at, changed_at) VALUES ($1, now(), clock_timestamp())
		ON CONFLICT (host) DO UPDATE SET paused_at = coalesce(hosts.paused_at, now()), changed_at = clock_timestamp()`, host)
	return postgres.Fault("pause host", err)
}

// ResumeHost forgets what holds back deliveries to a host: the operator's pause, and the failures. The fault is NotFound
// when nothing is known of it.
func (c *Cluster) ResumeHost(ctx context.Context, host string) error {
	tag, err := c.instance.Exec(ctx, `UPDATE hosts SET paused_at = NULL, failures = 0, failing_since = NULL, failure = NULL, closed_until = NULL,
		probes = 0, inactive_at = NULL, changed_at = clock_timestamp() WHERE host = $1`, host)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, "nothing is known of the host "+host).WithHint("lightweb host list")
	}
	return postgres.Fault("resume host", err)
}

// ProbeHosts lets one attempt find out at once how each of the hosts is that is left alone. Those stay alone that the operator
// holds back.
func (c *Cluster) ProbeHosts(ctx context.Context, hosts []string) error {
	_, err := c.instance.Exec(ctx, `UPDATE hosts SET closed_until = now(), changed_at = clock_timestamp()
		WHERE host = ANY($1) AND closed_until > now() AND paused_at IS NULL`, hosts)
	return postgres.Fault("probe hosts", err)
}

// LearnHostSoftware remembers what the software of a host calls itself.
func (c *Cluster) LearnHostSoftware(ctx context.Context, host, software string) error {
	_, err := c.instance.Exec(ctx, `INSERT INTO hosts (host, software) VALUES ($1, $2)
		ON CONFLICT (host) DO UPDATE SET software = excluded.software, heard_at = now()`, host, text(software))
	return postgres.Fault("remember host", err)
}

// Parked says that deliveries of a user to a host are parked.
type Parked struct {
	Host string
	User vocab.Username
}

// Parked returns whose deliveries are parked. It may say too much.
func (c *Cluster) Parked(ctx context.Context) ([]Parked, error) {
	rows, err := c.instance.Query(ctx, `SELECT host, username FROM parked ORDER BY host, username`)
	if err != nil {
		return nil, postgres.Fault("read parked deliveries", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Parked])
	return all, postgres.Fault("read parked deliveries", err)
}

// MarkParked remembers that the users' deliveries are parked, or with resumed that they are no more.
func (c *Cluster) MarkParked(ctx context.Context, all []Parked, resumed bool) error {
	hosts, users := make([]string, len(all)), make([]string, len(all))
	for n, p := range all {
		hosts[n], users[n] = p.Host, p.User.String()
	}
	query := `INSERT INTO parked (host, username) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING`
	if resumed {
		query = `DELETE FROM parked p USING unnest($1::text[], $2::text[]) AS r (host, username) WHERE p.host = r.host AND p.username = r.username`
	}
	_, err := c.instance.Exec(ctx, query, hosts, users)
	return postgres.Fault("remember parked deliveries", err)
}

// HostDialect returns the signature dialect that a host took last, empty when none was remembered since then. It notes, once
// a day, that the host is in use: PruneHosts leaves it alone then.
func (c *Cluster) HostDialect(ctx context.Context, host string, since time.Time) (string, error) {
	var d string
	err := c.instance.QueryRow(ctx, `WITH heard AS (UPDATE hosts SET heard_at = now() WHERE host = $1 AND heard_at < now() - interval '1 day')
		SELECT coalesce(dialect, '') FROM hosts WHERE host = $1 AND learned_at >= $2`, host, since).Scan(&d)
	if postgres.IsNoRows(err) {
		return "", nil
	}
	return d, postgres.Fault("read host", err)
}

// hostUnheard is how long a host is remembered that nobody has to do with.
const hostUnheard = 90 * 24 * time.Hour

// PruneHosts forgets the hosts that were not heard of for 90 days, some at a time, and returns how many; with dryRun it only
// counts them. Those stay that the operator holds back, that are left alone now, or for which deliveries are parked.
func (c *Cluster) PruneHosts(ctx context.Context, now time.Time, dryRun bool) (n int, err error) {
	const old = `SELECT h.host FROM hosts h WHERE heard_at < $1 AND paused_at IS NULL AND (closed_until IS NULL OR closed_until < $2)
		AND NOT EXISTS (SELECT FROM parked p WHERE p.host = h.host)`
	if dryRun {
		err = c.instance.QueryRow(ctx, `SELECT count(*) FROM (`+old+`) o`, now.Add(-hostUnheard), now).Scan(&n)
		return n, postgres.Fault("count old hosts", err)
	}
	for {
		began := time.Now()
		tag, err := c.instance.Exec(ctx, `DELETE FROM hosts WHERE heard_at < $1 AND host IN (`+old+` ORDER BY heard_at LIMIT $3)`, now.Add(-hostUnheard), now, pruneBatch)
		if n += int(tag.RowsAffected()); err != nil || tag.RowsAffected() < pruneBatch {
			return n, postgres.Fault("prune hosts", err)
		}
		if err := rest(ctx, time.Since(began)); err != nil {
			return n, err
		}
	}
}

// LearnHostDialect remembers the signature dialect that a host took.
func (c *Cluster) LearnHostDialect(ctx context.Context, host, dialect string, now time.Time) error {
	_, err := c.instance.Exec(ctx, `INSERT INTO hosts (host, dialect, learned_at) VALUES ($1, $2, $3)
		ON CONFLICT (host) DO UPDATE SET dialect = excluded.dialect, learned_at = excluded.learned_at, heard_at = now()`, host, dialect, now)
	return postgres.Fault("remember host", err)
}
