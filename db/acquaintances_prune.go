package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// idleFor is the least time between the mark of a row as idle and the removal of the row. The
// mark says that the user's database did not name the actor of the row. Callers rely on a row for
// AcquaintanceBelieved without reading it. idleFor exceeds that time by more than the clocks of
// two machines differ. But idleFor is shorter than a day, so that a row marked in one night can
// be removed in the next.
const idleFor = 2 * instance.AcquaintanceBelieved

// acquaintancePage is the number of rows that one query checks. If many of these rows are idle,
// the query takes tenths of a second in the user's database.
const acquaintancePage = 200

// PruneAcquaintances removes the user's acquaintances with actors of which the user's database
// has no data, and returns how many rows it removed. It removes a row in two steps: one run marks
// the row, and a run at least idleFor later removes it. The mark is cleared if Acquaintances.Add
// is called for the actor, or if a run finds data of the actor. If dryRun is true, it only counts
// the rows that it would remove now. It works in pages and rests between them. It removes nothing
// while the journal has an activity for the user, because that activity may be of any actor.
//
// PruneAcquaintances is safe while a process serves the instance. Before data of an actor enters
// the user's database, Add is called for the actor. The call is at most AcquaintanceBelieved
// earlier, unless the data waits in the journal. If Add was called before a run marked the row,
// the data is there before idleFor has passed, and the next run finds it. If Add was called after
// the row was marked, it cleared the mark. If Add was called after the row was removed, it made
// the row again.
func (c *Cluster) PruneAcquaintances(ctx context.Context, u vocab.Username, now time.Time, dryRun bool) (n int, err error) {
	for last := vocab.ID(""); ; {
		began := time.Now()
		page, err := c.Instance.Acquaintances.List(ctx, u, last, acquaintancePage)
		if err != nil || len(page) == 0 {
			return n, err
		}
		var idle, held []string
		err = c.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			idle, held, err = tx.Actors.DivideIdle(ctx, page)
			return err
		})
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

// removeIdle removes the user's rows of idle actors that were marked at least idleFor before now.
// It marks the rows of idle actors that have no mark yet, and clears the marks of the held actors.
// If dryRun is true, it only counts the rows to remove.
func (c *Cluster) removeIdle(ctx context.Context, u vocab.Username, idle, held []string, now time.Time, dryRun bool) (int, error) {
	if dryRun {
		return c.Instance.Acquaintances.CountIdle(ctx, u, idle, now.Add(-idleFor))
	}
	return c.Instance.Acquaintances.RemoveIdle(ctx, u, idle, held, now.Add(-idleFor), now)
}
