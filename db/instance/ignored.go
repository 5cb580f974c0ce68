package instance

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// IgnoredRing stores the newest activities that were ignored.
type IgnoredRing struct{ on conns }

// Ignored is an activity that the server answered with 202 and stored for no user.
type Ignored struct {
	Activity vocab.ID // only a digest of the id is stored
	Reason   string
	Host     string // the registrable domain that sent it; the row counts towards the share of this domain (see Trim)
	At       time.Time
}

// Add stores ignored activities. If an activity is stored already, its row is overwritten.
func (r IgnoredRing) Add(ctx context.Context, all []Ignored) error {
	newest := make(map[string]Ignored, len(all)) // one statement must not write a row twice
	for _, g := range all {
		newest[string(schema.Digest(g.Activity))] = g
	}
	var digests [][]byte
	var reasons, hosts []string
	var at []time.Time
	for d, g := range newest {
		digests, reasons, hosts, at = append(digests, []byte(d)), append(reasons, g.Reason), append(hosts, g.Host), append(at, g.At)
	}
	_, err := r.on.Exec(ctx, `INSERT INTO ignored (digest, reason, host, ignored_at) SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::timestamptz[])
		ON CONFLICT (digest) DO UPDATE SET reason = excluded.reason, host = excluded.host, ignored_at = excluded.ignored_at`, digests, reasons, hosts, at)
	return postgres.Fault("store ignored activities", err)
}

// Find returns an ignored activity by its id, or nil if the activity is not stored.
func (r IgnoredRing) Find(ctx context.Context, id vocab.ID) (*Ignored, error) {
	g := Ignored{Activity: id}
	err := r.on.QueryRow(ctx, `SELECT reason, host, ignored_at FROM ignored WHERE digest = $1`, schema.Digest(id)).Scan(&g.Reason, &g.Host, &g.At)
	if postgres.IsNoRows(err) {
		return nil, nil
	}
	return &g, postgres.Fault("read ignored activity", err)
}

// Trim removes rows until at most a given number are left. Each domain has an equal share of this
// number. A domain that has more rows than its share loses its oldest rows. The unused parts of
// shares are divided among the other domains.
func (r IgnoredRing) Trim(ctx context.Context, most int) error {
	counts, err := postgres.CollectColumn[int](ctx, r.on, "count ignored activities", `SELECT count(*)::integer FROM ignored GROUP BY host`)
	if err != nil {
		return err
	}
	share := shareOf(counts, most)
	if share < 0 {
		return nil
	}
	_, err = r.on.Exec(ctx, `DELETE FROM ignored WHERE digest IN (
		SELECT digest FROM (SELECT digest, row_number() OVER (PARTITION BY host ORDER BY ignored_at DESC) AS place FROM ignored) ranked WHERE place > $1)`, share)
	return postgres.Fault("trim ignored activities", err)
}

// shareOf returns how many rows each domain may have so that all domains together have at most a
// given number of rows. The parameter counts has the number of rows of each domain. shareOf
// returns -1 if no domain has to lose a row.
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
