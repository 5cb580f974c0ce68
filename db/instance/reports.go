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
	ID         int64      `json:"id"`
	State      string     `json:"state"`
	Activity   vocab.ID   `json:"activity"` // the Flag
	Actor      vocab.ID   `json:"actor"`    // the reporter: often the actor of a whole server
	Host       string     `json:"host"`     // the host of Actor; Add sets it
	Users      []string   `json:"users"`    // the names of the local users that are reported, or whose objects are reported
	Objects    []vocab.ID `json:"objects"`
	Content    string     `json:"content"` // the words of the reporter, as plain text
	ReceivedAt time.Time  `json:"received_at"`
	ResolvedAt *time.Time `json:"resolved_at"`
	Note       string     `json:"note"` // the operator's note
	Domain     string     `json:"-"`    // the reporter's registrable domain; the report counts towards the limit of this domain
}

const reportColumns = `id, activity, actor, host, objects, users, content, received_at, state, resolved_at, note, domain`

// ReportBounds limits how many reports may be open in all, from one domain, and from one actor.
type ReportBounds struct{ All, Domain, Actor int }

// errReportsFull refuses a report because too many reports are open.
var errReportsFull = fault.New(fault.RateLimited, "too many reports of this server are open").After(time.Hour)

// Add stores a report if the report is new and concerns a present or deleted user. If forInstance
// is true, the report need not concern a user. The result "added" reports whether Add stored it.
// The fault is RateLimited when the actor or the domain has too many open reports. When too many
// reports are open in all, Add removes the newest open report of the domain that has the most,
// and returns it as displaced. But if no domain has more than the reporter's domain, the fault is
// RateLimited.
func (s Reports) Add(ctx context.Context, r Report, forInstance bool, most ReportBounds) (added bool, displaced *Report, err error) {
	err = s.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
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

// displaceReport enforces the bounds after a report was added. It refuses a reporter that has too
// many open reports. When too many reports are open in all, it removes one and returns that
// report, as Add describes.
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

// List returns the open reports, or every report if all is true. The newest report comes first.
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

// Resolve closes reports, and returns the ids of those that exist. It stores the operator's note
// unless the note is empty. If a report is resolved already, only its note changes.
func (s Reports) Resolve(ctx context.Context, ids []int64, note string, now time.Time) ([]int64, error) {
	return postgres.CollectColumn[int64](ctx, s.on, "resolve reports", `UPDATE reports SET state = 'resolved', resolved_at = coalesce(resolved_at, $3),
		note = CASE WHEN $2 = '' THEN note ELSE $2 END WHERE id = ANY($1) RETURNING id`, ids, note, now)
}

// CountOpen returns how many reports are open.
func (s Reports) CountOpen(ctx context.Context) (n int, err error) {
	err = s.on.QueryRow(ctx, `SELECT count(*) FROM reports WHERE state = 'open'`).Scan(&n)
	return n, postgres.Fault("count reports", err)
}

// Prune removes the reports that were resolved before a time. It removes a batch at a time, and
// returns how many reports it removed. If dryRun is true, it only counts them.
func (s Reports) Prune(ctx context.Context, before time.Time, dryRun bool) (n int, err error) {
	if dryRun {
		err = s.on.QueryRow(ctx, `SELECT count(*) FROM reports WHERE state = 'resolved' AND resolved_at < $1`, before).Scan(&n)
		return n, postgres.Fault("count old reports", err)
	}
	for {
		began := time.Now()
		tag, err := s.on.Exec(ctx, `DELETE FROM reports WHERE id IN
			(SELECT id FROM reports WHERE state = 'resolved' AND resolved_at < $1 ORDER BY id LIMIT $2)`, before, pruneBatch)
		if n += int(tag.RowsAffected()); err != nil || tag.RowsAffected() < pruneBatch {
			return n, postgres.Fault("prune reports", err)
		}
		if err := postgres.Rest(ctx, time.Since(began)); err != nil {
			return n, err
		}
	}
}
