package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// idleFor is how long a row must have been idle to be removed. It is longer than anybody relies on
// a row without looking (AcquaintanceBelieved), by more than clocks differ, and shorter than a
// day: what one night marks, the next one removes.
const idleFor = 2 * instance.AcquaintanceBelieved

// acquaintancePage is how many rows are looked at together: with many that are idle, tenths of a
// second of a user's database.
const acquaintancePage = 200

// PruneAcquaintances removes the user's acquaintances that the user's database holds nothing of,
// and returns how many; with dryRun they stay. A row is removed by the second night that finds
// nothing, unless Acquaint was called since the first. It works in pages and rests between them,
// and leaves the user to another night while anything of the user's waits in the journal: that may
// be of anybody.
//
// That is safe beside a server. Whatever enters the user's database after a page was looked at
// came by a call of Acquaint, not longer ago than it is believed unless it waited in the journal.
// Either that call came after the row was marked, and took the mark away, or it makes the row
// again.
func (c *Cluster) PruneAcquaintances(ctx context.Context, u vocab.Username, now time.Time, dryRun bool) (n int, err error) {
	for last := vocab.ID(""); ; {
		began := time.Now()
		page, err := c.Instance.Acquaintances.List(ctx, u, last, acquaintancePage)
		if err != nil || len(page) == 0 {
			return n, err
		}
		idle, held, err := c.idleAmong(ctx, u, page)
		if err != nil {
			return n, err
		}
		removed, err := c.removeIdle(ctx, u, idle, held, now, dryRun)
		if err != nil {
			return n, err
		}
		n += removed
		if len(page) < acquaintancePage {
			return n, nil
		}
		last = page[len(page)-1]
		if err := postgres.Rest(ctx, time.Since(began)); err != nil {
			return n, err
		}
	}
}

// idleActors tells of each of the actors $1 whether a user's database holds nothing of it.
var idleActors = `WITH few AS MATERIALIZED (SELECT k.uri FROM unnest($1::text[]) AS k (uri) WHERE ` + schema.HeldNowhere("k.uri", "") + `),
	held AS MATERIALIZED (` + schema.HeldElsewhere("few") + `)
	SELECT k.uri, k.uri IN (SELECT uri FROM few EXCEPT SELECT uri FROM held) FROM unnest($1::text[]) AS k (uri)`

// idleAmong divides actors into those that the user's database holds nothing of, and the others.
func (c *Cluster) idleAmong(ctx context.Context, u vocab.Username, actors []vocab.ID) (idle, held []string, err error) {
	type row struct {
		URI  string
		Idle bool
	}
	err = c.Read(ctx, u, func(ctx context.Context, tx *Tx) error {
		rows, err := collect[row](ctx, tx, "look for what is of actors", idleActors, texts(actors))
		idle, held = nil, nil
		for _, r := range rows {
			if r.Idle {
				idle = append(idle, r.URI)
			} else {
				held = append(held, r.URI)
			}
		}
		return err
	})
	return idle, held, err
}

// removeIdle removes the rows that were idle the night before, too, and marks the idle ones for
// the next night.
func (c *Cluster) removeIdle(ctx context.Context, u vocab.Username, idle, held []string, now time.Time, dryRun bool) (int, error) {
	if dryRun {
		return c.Instance.Acquaintances.CountIdle(ctx, u, idle, now.Add(-idleFor))
	}
	return c.Instance.Acquaintances.RemoveIdle(ctx, u, idle, held, now.Add(-idleFor), now)
}
