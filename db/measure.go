package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Received counts what u has of an actor: activities from outside, and those of them that the feed
// shows.
func (c *Cluster) Received(ctx context.Context, u vocab.Username, from vocab.ID) (activities, shown int, err error) {
	type row struct{ Activities, Shown int }
	err = c.Read(ctx, u, func(ctx context.Context, tx *Tx) error {
		r, err := one[row](ctx, tx, "count activities", `SELECT count(*), count(f.id) FROM activities a LEFT JOIN feed f ON f.activity_uri = a.uri AND f.actor_uri = a.actor_uri
			WHERE a.direction = 'inbound' AND a.actor_uri = $1`, from)
		if err == nil {
			activities, shown = r.Activities, r.Shown
		}
		return err
	})
	return activities, shown, err
}

// Multiply fills the database of u for a measurement: a stored activity, whose id begins with that
// of its object, and the object, the entry in the feed and the memory of the id are copied n-1
// times. Copies have ids of their own and are each a millisecond older than the one before. step
// is told how far it is.
func (c *Cluster) Multiply(ctx context.Context, u vocab.Username, activity, object vocab.ID, n int, step func(done, all int)) error {
	const chunk = 10_000
	for first := 1; first < n; first += chunk {
		last := min(first+chunk, n) - 1
		err := c.Write(ctx, u, func(ctx context.Context, tx *Tx) error {
			for _, query := range copies {
				args := pgx.NamedArgs{"activity": activity, "object": object, "first": first, "last": last}
				if _, err := tx.exec(ctx, "copy an activity", query, args); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		step(last+1, n)
	}
	return c.tidy(ctx, u)
}

// Owe fills the database of u for a measurement: the job of an activity is copied until n
// deliveries more are owed to the inboxes on host that it went to, none of which was tried. Copies
// have activities and objects of their own, and are spread evenly over the time until now since
// which the host has failed, as h says, which is remembered. With h inactive they are parked.
func (c *Cluster) Owe(ctx context.Context, u vocab.Username, activity vocab.ID, h instance.Host, n int, now time.Time, step func(done, all int)) error {
	status := DeliveryPending
	if h.InactiveAt != nil {
		status = DeliveryParked
	}
	owed, jobs := 0, 0
	for owed < n {
		const chunk = 1000
		err := c.Write(ctx, u, func(ctx context.Context, tx *Tx) error {
			rows, err := tx.exec(ctx, "copy a job", owing, pgx.NamedArgs{"activity": activity, "host": h.Host, "status": status, "first": jobs + 1, "last": jobs + chunk,
				"left": n - owed, "all": n, "since": *h.FailingSince, "now": now})
			owed, jobs = owed+int(rows), jobs+chunk
			if err == nil && rows == 0 {
				err = fault.New(fault.NotFound, "the activity was not delivered to "+h.Host)
			}
			return err
		})
		if err != nil {
			return err
		}
		step(owed, n)
	}
	if err := c.Instance.Hosts.Save(ctx, []instance.Host{h}, now); err != nil {
		return err
	}
	if status == DeliveryParked {
		if err := c.Instance.Deliveries.MarkParked(ctx, []instance.Parked{{Host: h.Host, User: u}}, false); err != nil {
			return err
		}
	}
	return c.tidy(ctx, u)
}

// owing is the statement of Owe. A job that would have more deliveries than are left gets those
// that are.
var owing = func() string {
	renamed := func(text string) string {
		return `replace(replace(` + text + `, activity_uri, activity_uri || '-' || n), object_uri, object_uri || '-' || n)`
	}
	return `
	WITH template AS (
		SELECT * FROM delivery_jobs WHERE activity_uri = @activity ORDER BY id LIMIT 1
	), inbox AS (
		SELECT d.inbox, d.host, d.targets, d.followers_digest, row_number() OVER (ORDER BY d.id) AS place, count(*) OVER () AS inboxes
		FROM deliveries d JOIN template ON template.id = d.job_id WHERE d.host = @host
	), copy AS (
		SELECT gen_random_uuid() AS id, n, @since::timestamptz + (@now::timestamptz - @since::timestamptz) * least(n * (SELECT max(inboxes) FROM inbox) / @all::float, 1) AS at
		FROM generate_series(@first::int, @last::int) n
	), job AS (
		INSERT INTO delivery_jobs (id, activity_uri, object_uri, type, body, created_at, audience, signer, dedupe_hash)
		SELECT c.id, ` + renamed("activity_uri") + `, ` + renamed("object_uri") + `, type, convert_to(` + renamed("convert_from(body, 'UTF8')") + `, 'UTF8'),
			at, audience, signer, sha256(convert_to(c.id::text, 'UTF8')) FROM template, copy c
		WHERE (n - @first) * (SELECT max(inboxes) FROM inbox) < @left RETURNING id
	)
	INSERT INTO deliveries (job_id, inbox, host, targets, followers_digest, status, next_at, created_at, updated_at)
	SELECT c.id, inbox, host, targets, followers_digest, @status, at, at, at FROM copy c JOIN job USING (id), inbox
	WHERE (n - @first) * inboxes + place <= @left ORDER BY n, place`
}()

// tidy does what autovacuum would have done, had the rows come one by one.
func (c *Cluster) tidy(ctx context.Context, u vocab.Username) error {
	l, err := c.pool.Acquire(ctx, c.class, c.schema.OfUser(u), c.mayOpen)
	if err != nil {
		return err
	}
	defer c.pool.Release(l)
	_, err = l.Conn().Exec(ctx, `VACUUM (ANALYZE)`)
	return postgres.Fault("tidy database of "+u.String(), err)
}

// copies are the statements of Multiply, which name numbers from @first to @last. A copied row
// keeps the shape of the engine's ids, a time followed by chance (RFC 9562 §5.7).
var copies = func() []string {
	const (
		id = `encode(decode(lpad(to_hex((extract(epoch FROM published) * 1000)::bigint - n), 12, '0'), 'hex') ||
			substring(set_byte(uuid_send(gen_random_uuid()), 6, 112) FROM 7), 'hex')::uuid`
		older   = `published - n * interval '1 millisecond'`
		numbers = ` CROSS JOIN generate_series(@first::int, @last::int) n `
	)
	renamed := func(column string) string { return `replace(` + column + `, @object::text, @object::text || '-' || n)` }
	raw := renamed(`raw::text`) + `::jsonb`
	return []string{
		`INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw)
			SELECT ` + id + `, ` + renamed("uri") + `, direction, type, actor_uri, ` + renamed("object_uri") + `, ` + older + `, ` + raw + `
			FROM activities` + numbers + `WHERE uri = @activity`,
		`INSERT INTO objects (id, uri, published, raw, readable)
			SELECT ` + id + `, ` + renamed("uri") + `, ` + older + `, ` + raw + `, readable FROM objects` + numbers + `WHERE uri = @object`,
		`INSERT INTO feed (id, activity_uri, actor_uri, published)
			SELECT ` + id + `, ` + renamed("activity_uri") + `, actor_uri, ` + older + ` FROM feed` + numbers + `WHERE activity_uri = @activity`,
		`INSERT INTO seen (digest)
			SELECT substring(sha256(convert_to(` + renamed("uri") + `, 'UTF8')) FOR 16) || substring(sha256(convert_to(actor_uri, 'UTF8')) FOR 16) FROM activities` + numbers + `WHERE uri = @activity`,
	}
}()
