package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The states of a report.
const (
	ReportOpen     = "open"
	ReportResolved = "resolved"
)

// Report is what another server reports to the operator.
type Report struct {
	ID         int64
	Activity   vocab.ID // the Flag
	Actor      vocab.ID // who reports
	Objects    []vocab.ID
	Users      []string // the local users who are reported, or whose objects are; by name
	Content    string   // what the reporter says, plain
	ReceivedAt time.Time
	State      string
	ResolvedAt *time.Time
	Note       string // the operator's
	Domain     string // the reporter's registrable domain, which pays
}

const reportColumns = `id, activity, actor, objects, users, content, received_at, state, resolved_at, note, domain`

// ReportBounds is how many reports may be open: in all, of one domain, and of one actor.
type ReportBounds struct{ All, Domain, Actor int }

// errReportsFull refuses a report of a reporter who has its share of the open ones.
var errReportsFull = fault.New(fault.RateLimited, "too many reports of this server are open").After(time.Hour)

// AddReport keeps a report, and tells whether it is new and about anything here: about one of its Users who exists, or
// meant for the instance as a whole. The fault is RateLimited when its actor or domain has too many open ones. When there are
// too many in all, the newest one of the domain that has most gives way to a domain that has fewer, and is returned.
func (c *Cluster) AddReport(ctx context.Context, r Report, forInstance bool, most ReportBounds) (added bool, displaced *Report, err error) {
	err = pgx.BeginFunc(ctx, c.instance, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `WITH here AS (SELECT array_agg(username ORDER BY username) AS names FROM users WHERE username = ANY($6) AND state <> 'creating')
			INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at, domain)
			SELECT $1, $2, $3, $4, $5, coalesce(names, '{}'), $7, $8, $11 FROM here WHERE (names IS NOT NULL OR $9) AND NOT EXISTS (SELECT FROM reports WHERE digest = $10)
			ON CONFLICT (digest) DO NOTHING`,
			Owned{r.Activity, r.Actor}.key(), r.Activity, r.Actor, r.Actor.Host(), texts(r.Objects), r.Users, r.Content, r.ReceivedAt, forInstance, digest(r.Activity), r.Domain)
		if added = err == nil && tag.RowsAffected() == 1; !added {
			return err
		}
		displaced, err = displaceReport(ctx, tx, r, most)
		return err
	})
	if err != nil {
		return false, nil, postgres.Fault("store report", err)
	}
	return added, displaced, nil
}

// displaceReport holds the bounds once a report is added: it removes one when there are too many in all, and refuses a
// reporter who has too many.
func displaceReport(ctx context.Context, tx pgx.Tx, r Report, most ReportBounds) (*Report, error) {
	var all, ofDomain, ofActor int
	err := tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE domain = $1), count(*) FILTER (WHERE actor = $2) FROM reports WHERE state = 'open'`,
		r.Domain, r.Actor).Scan(&all, &ofDomain, &ofActor)
	if err != nil {
		return nil, err
	}
	if ofDomain > most.Domain || ofActor > most.Actor {
		return nil, errReportsFull
	}
	if all <= most.All {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `WITH largest AS (SELECT domain, count(*) AS n FROM reports WHERE state = 'open' GROUP BY domain ORDER BY n DESC, max(id) DESC LIMIT 1)
		DELETE FROM reports WHERE id = (SELECT max(id) FROM reports JOIN largest USING (domain) WHERE state = 'open' AND largest.n > $1)
		RETURNING `+reportColumns, ofDomain)
	if err != nil {
		return nil, err
	}
	gone, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[Report])
	if err != nil || len(gone) == 0 {
		return nil, errors.Join(err, errReportsFull)
	}
	return gone[0], nil
}

// Reports returns the open reports, or all of them, the newest first.
func (c *Cluster) Reports(ctx context.Context, all bool) ([]Report, error) {
	return c.reports(ctx, `SELECT `+reportColumns+` FROM reports WHERE $1 OR state = 'open' ORDER BY id DESC`, all)
}

// Report returns one report; the fault is NotFound when there is none.
func (c *Cluster) Report(ctx context.Context, id int64) (Report, error) {
	found, err := c.reports(ctx, `SELECT `+reportColumns+` FROM reports WHERE id = $1`, id)
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, fmt.Sprintf("there is no report %d", id)).WithHint("lightweb report list --all")
	}
	if err != nil {
		return Report{}, err
	}
	return found[0], nil
}

func (c *Cluster) reports(ctx context.Context, query string, args ...any) ([]Report, error) {
	rows, err := c.instance.Query(ctx, query, args...)
	if err != nil {
		return nil, postgres.Fault("read reports", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Report])
	return found, postgres.Fault("read reports", err)
}

// ResolveReports closes reports, with a note for the operator unless that is empty, and returns which of them there are.
// One that is resolved stays as it was but for the note.
func (c *Cluster) ResolveReports(ctx context.Context, ids []int64, note string, now time.Time) ([]int64, error) {
	rows, err := c.instance.Query(ctx, `UPDATE reports SET state = 'resolved', resolved_at = coalesce(resolved_at, $3),
		note = CASE WHEN $2 = '' THEN note ELSE $2 END WHERE id = ANY($1) RETURNING id`, ids, note, now)
	if err != nil {
		return nil, postgres.Fault("resolve reports", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return found, postgres.Fault("resolve reports", err)
}

// CountOpenReports returns how many reports wait for the operator.
func (c *Cluster) CountOpenReports(ctx context.Context) (n int, err error) {
	err = c.instance.QueryRow(ctx, `SELECT count(*) FROM reports WHERE state = 'open'`).Scan(&n)
	return n, postgres.Fault("count reports", err)
}

// PruneReports forgets the reports that were resolved before then, some at a time, and returns how many. With dryRun it only
// counts them.
func (c *Cluster) PruneReports(ctx context.Context, before time.Time, dryRun bool) (n int, err error) {
	if dryRun {
		err = c.instance.QueryRow(ctx, `SELECT count(*) FROM reports WHERE state = 'resolved' AND resolved_at < $1`, before).Scan(&n)
		return n, postgres.Fault("count old reports", err)
	}
	for {
		tag, err := c.instance.Exec(ctx, `DELETE FROM reports WHERE id IN
			(SELECT id FROM reports WHERE state = 'resolved' AND resolved_at < $1 ORDER BY id LIMIT $2)`, before, pruneBatch)
		if n += int(tag.RowsAffected()); err != nil || tag.RowsAffected() < pruneBatch {
			return n, postgres.Fault("prune reports", err)
		}
	}
}
