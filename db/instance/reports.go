package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The states of a report.
const (
	ReportOpen     = "open"
	ReportResolved = "resolved"
)

// Reports are the reports to the operator.
type Reports struct{ on conns }

// Report is a Flag by which another server reports something to the operator.
type Report struct {
	ID         int64
	Activity   vocab.ID // the Flag
	Actor      vocab.ID // the reporter
	Objects    []vocab.ID
	Users      []string // the local users that are reported, or whose objects are; by name
	Content    string   // the words of the reporter, as plain text
	ReceivedAt time.Time
	State      string
	ResolvedAt *time.Time
	Note       string // the operator's
	Domain     string // the reporter's registrable domain, which pays
}

const reportColumns = `id, activity, actor, objects, users, content, received_at, state, resolved_at, note, domain`

// ReportBounds is how many reports may be open: in all, of one domain, and of one actor.
type ReportBounds struct{ All, Domain, Actor int }

// errReportsFull refuses a reporter that has used up its share of the open reports.
var errReportsFull = fault.New(fault.RateLimited, "too many reports of this server are open").After(time.Hour)

// Add stores a report, and reports whether it is new and concerns this server: one of its Users
// that exists, or the instance as a whole. The fault is RateLimited when its actor or domain has
// too many open ones. When there are too many in all, the newest report of the domain with the
// most is removed for a domain that has fewer, and returned.
func (s Reports) Add(ctx context.Context, r Report, forInstance bool, most ReportBounds) (added bool, displaced *Report, err error) {
	err = pgx.BeginFunc(ctx, s.on, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `WITH here AS (SELECT array_agg(username ORDER BY username) AS names FROM users WHERE username = ANY(@users) AND state <> 'creating')
			INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at, domain)
			SELECT @key, @activity, @actor, @host, @objects, coalesce(names, '{}'), @content, @received, @domain
			FROM here WHERE (names IS NOT NULL OR @forInstance) AND NOT EXISTS (SELECT FROM reports WHERE digest = @oldKey)
			ON CONFLICT (digest) DO NOTHING`,
			pgx.NamedArgs{"key": schema.OwnedKey(r.Activity, r.Actor), "oldKey": schema.Digest(r.Activity), "activity": r.Activity, "actor": r.Actor,
				"host": r.Actor.Host(), "domain": r.Domain, "objects": texts(r.Objects), "users": r.Users, "content": r.Content,
				"received": r.ReceivedAt, "forInstance": forInstance})
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

// displaceReport keeps the bounds once a report is added: it removes one when there are too many
// in all, and refuses a reporter that has too many.
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
	gone, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[Report])
	if err != nil || len(gone) == 0 {
		return nil, errors.Join(err, errReportsFull)
	}
	return gone[0], nil
}

// List returns the open reports, or all of them, the newest first.
func (s Reports) List(ctx context.Context, all bool) ([]Report, error) {
	return s.list(ctx, `SELECT `+reportColumns+` FROM reports WHERE $1 OR state = 'open' ORDER BY id DESC`, all)
}

// Find returns one report; the fault is NotFound when there is none.
func (s Reports) Find(ctx context.Context, id int64) (Report, error) {
	found, err := s.list(ctx, `SELECT `+reportColumns+` FROM reports WHERE id = $1`, id)
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, fmt.Sprintf("there is no report %d", id)).WithHint("lightweb report list --all")
	}
	if err != nil {
		return Report{}, err
	}
	return found[0], nil
}

func (s Reports) list(ctx context.Context, query string, args ...any) ([]Report, error) {
	return postgres.Collect[Report](ctx, s.on, "read reports", query, args...)
}

// Resolve closes reports, with a note of the operator unless that is empty, and returns the ids of
// those that exist. A resolved report changes in nothing but the note.
func (s Reports) Resolve(ctx context.Context, ids []int64, note string, now time.Time) ([]int64, error) {
	return postgres.CollectColumn[int64](ctx, s.on, "resolve reports", `UPDATE reports SET state = 'resolved', resolved_at = coalesce(resolved_at, $3),
		note = CASE WHEN $2 = '' THEN note ELSE $2 END WHERE id = ANY($1) RETURNING id`, ids, note, now)
}

// CountOpen returns how many reports wait for the operator.
func (s Reports) CountOpen(ctx context.Context) (n int, err error) {
	err = s.on.QueryRow(ctx, `SELECT count(*) FROM reports WHERE state = 'open'`).Scan(&n)
	return n, postgres.Fault("count reports", err)
}

// Prune removes the reports that were resolved before then, some at a time, and returns how many.
// With dryRun it only counts them.
func (s Reports) Prune(ctx context.Context, before time.Time, dryRun bool) (n int, err error) {
	if dryRun {
		err = s.on.QueryRow(ctx, `SELECT count(*) FROM reports WHERE state = 'resolved' AND resolved_at < $1`, before).Scan(&n)
		return n, postgres.Fault("count old reports", err)
	}
	for {
		tag, err := s.on.Exec(ctx, `DELETE FROM reports WHERE id IN
			(SELECT id FROM reports WHERE state = 'resolved' AND resolved_at < $1 ORDER BY id LIMIT $2)`, before, pruneBatch)
		if n += int(tag.RowsAffected()); err != nil || tag.RowsAffected() < pruneBatch {
			return n, postgres.Fault("prune reports", err)
		}
	}
}
