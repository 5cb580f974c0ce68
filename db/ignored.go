package db

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Ignored is an activity that was answered 202 and kept for nobody.
type Ignored struct {
	Activity vocab.ID // of which only a digest is stored
	Reason   string
	Host     string // the registrable domain that sent it, which its row counts for
	At       time.Time
}

// AddIgnored remembers what was ignored. What is there already is remembered as of now.
func (c *Cluster) AddIgnored(ctx context.Context, all []Ignored) error {
	newest := make(map[string]Ignored, len(all)) // one statement must not write a row twice
	for _, g := range all {
		newest[string(digest(g.Activity.Canonical()))] = g
	}
	var digests [][]byte
	var reasons, hosts []string
	var at []time.Time
	for d, g := range newest {
		digests, reasons, hosts, at = append(digests, []byte(d)), append(reasons, g.Reason), append(hosts, g.Host), append(at, g.At)
	}
	_, err := c.instance.Exec(ctx, `INSERT INTO ignored (digest, reason, host, ignored_at) SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::timestamptz[])
		ON CONFLICT (digest) DO UPDATE SET reason = excluded.reason, host = excluded.host, ignored_at = excluded.ignored_at`, digests, reasons, hosts, at)
	return postgres.Fault("remember what was ignored", err)
}

// IgnoredActivity returns what is remembered of an activity that was ignored, nil when that is nothing.
func (c *Cluster) IgnoredActivity(ctx context.Context, id vocab.ID) (*Ignored, error) {
	g := Ignored{Activity: id}
	err := c.instance.QueryRow(ctx, `SELECT reason, host, ignored_at FROM ignored WHERE digest = $1`, digest(id.Canonical())).Scan(&g.Reason, &g.Host, &g.At)
	if postgres.IsNoRows(err) {
		return nil, nil
	}
	return &g, postgres.Fault("read what was ignored", err)
}

// TrimIgnored keeps at most so many rows, the newest of each domain: one that has more than its share loses its oldest, and a
// share that some domains do not use is for the others.
func (c *Cluster) TrimIgnored(ctx context.Context, most int) error {
	rows, err := c.instance.Query(ctx, `SELECT count(*)::integer FROM ignored GROUP BY host`)
	if err != nil {
		return postgres.Fault("count what was ignored", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return postgres.Fault("count what was ignored", err)
	}
	share := shareOf(counts, most)
	if share < 0 {
		return nil
	}
	_, err = c.instance.Exec(ctx, `DELETE FROM ignored WHERE digest IN (
		SELECT digest FROM (SELECT digest, row_number() OVER (PARTITION BY host ORDER BY ignored_at DESC) AS place FROM ignored) ranked WHERE place > $1)`, share)
	return postgres.Fault("trim what was ignored", err)
}

// shareOf returns how much each may have so that all together have no more than most; -1 when nobody need give up anything.
func shareOf(counts []int, most int) int {
	slices.Sort(counts)
	for n, count := range counts {
		share := most / (len(counts) - n)
		if count > share {
			return share
		}
		most -= count
	}
	return -1
}
