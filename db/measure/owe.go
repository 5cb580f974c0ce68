package measure

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Owe fills the database of u with n untried deliveries to the inboxes on a host. It copies the
// delivery job of an activity that went to that host. Copies have activities and objects of their
// own, and times spread evenly from h.FailingSince to now. Owe stores h as the state of the host;
// if h is inactive, the deliveries are parked. Owe calls step with its progress. The fault is
// NotFound when the activity was not delivered to the host.
func (d *Databases) Owe(ctx context.Context, u vocab.Username, activity vocab.ID, h instance.Host, n int, now time.Time, step func(done, all int)) error {
	status := user.DeliveryPending
	if h.InactiveAt != nil {
		status = user.DeliveryParked
	}
	args := pgx.NamedArgs{"activity": activity, "host": h.Host, "status": status, "all": n, "since": *h.FailingSince, "now": now}
	if err := d.copyJobs(ctx, u, args, n, step); err != nil {
		return err
	}
	if err := d.instance.Hosts.Save(ctx, []instance.Host{h}, now); err != nil || status != user.DeliveryParked {
		return err
	}
	return d.instance.Deliveries.MarkParked(ctx, []instance.Parked{{Host: h.Host, User: u}}, false)
}

// copyJobs runs the statement of Owe until it has made n deliveries.
func (d *Databases) copyJobs(ctx context.Context, u vocab.Username, args pgx.NamedArgs, n int, step func(done, all int)) error {
	err := d.useDatabase(ctx, u, func(conn *pgx.Conn) error {
		const chunk = 1000
		for owed, jobs := 0, 0; owed < n; jobs += chunk {
			args["first"], args["last"], args["left"] = jobs+1, jobs+chunk, n-owed
			tag, err := conn.Exec(ctx, owing, args)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return fault.New(fault.NotFound, "the activity was not delivered to the host")
			}
			owed += int(tag.RowsAffected())
			step(owed, n)
		}
		return tidy(ctx, conn)
	})
	return postgres.Fault("copy a job of "+u.String(), err)
}

// owing is the statement of Owe. It makes at most @left deliveries, so the last job may have
// fewer than the others.
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
