package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Pruning says whose databases are pruned, and of what.
type Pruning struct {
	Users    []vocab.Username    // nobody named: everybody
	Days     int                 // what arrived so long ago is old; 0: retention.remote_days
	DryRun   bool                // only count
	Progress func(done, all int) // told after each user; may be nil

	since time.Time // leave out who was pruned since; zero: nobody
}

// PruneCounts counts what was removed, or with DryRun what would be.
type PruneCounts struct {
	Activities int `json:"pruned_activities"` // with their places in the feed
	Objects    int `json:"pruned_objects"`
	Reactions  int `json:"pruned_reactions"` // by those activities, or to those objects
	Actors     int `json:"pruned_actors"`    // copies of actors that nothing refers to any more
}

func (c *PruneCounts) add(more PruneCounts) {
	c.Activities += more.Activities
	c.Objects += more.Objects
	c.Reactions += more.Reactions
	c.Actors += more.Actors
}

// PruneReport says what became of a pruning.
type PruneReport struct {
	Users []PrunedUser `json:"users"` // in the order in which they were pruned
	PruneCounts
	Reports int   `json:"pruned_reports"` // resolved so long ago; only when everybody is pruned
	Failed  int   `json:"failed"`
	Days    int   `json:"days"`
	Millis  int64 `json:"elapsed_ms"`
	DryRun  bool  `json:"dry_run"`
}

// PrunedUser is what was removed from one user's database.
type PrunedUser struct {
	User vocab.Username `json:"user"`
	PruneCounts
	Error string `json:"error,omitempty"` // why it is not all
	Hint  string `json:"hint,omitempty"`
}

// Prune removes from users' databases what others sent long ago and the user had nothing to do with, as db.Cluster.Prune
// decides, and when it is everybody's, the reports that were resolved as long ago; one that fails does not keep the others
// from it. The fault is Busy when another process does the same, NoUser when somebody named is no user, Usage when nothing
// says what is old.
func (e *Engine) Prune(ctx context.Context, p Pruning) (r PruneReport, err error) {
	began := time.Now()
	r = PruneReport{Users: []PrunedUser{}, Days: p.Days, DryRun: p.DryRun}
	if r.Days == 0 {
		r.Days = e.cfg.Retention.RemoteDays
	}
	if r.Days == 0 {
		return r, fault.New(fault.Usage, "retention.remote_days is 0: nothing is ever old").WithHint("lightweb prune --days 180")
	}
	if r.Days < 0 || r.Days > maxDays {
		return r, fault.New(fault.Usage, fmt.Sprintf("%d days are not from 1 to %d", r.Days, maxDays))
	}
	release, err := e.db.LockPrune(ctx)
	if err != nil {
		return r, err
	}
	defer release()
	if p.since.IsZero() {
		p.since = began.Add(time.Hour)
	}
	before := e.now().AddDate(0, 0, -r.Days)
	if len(p.Users) == 0 {
		if r.Reports, err = e.db.PruneReports(ctx, before, p.DryRun); err != nil {
			return r, err
		}
	}
	users, err := e.db.ToPrune(ctx, p.Users, p.since)
	if err != nil {
		return r, err
	}
	for n, u := range users {
		one := e.pruneUser(ctx, u, p.DryRun, before)
		if err := ctx.Err(); err != nil {
			return r, fault.Wrap(fault.Busy, fmt.Sprintf("time ran out when %d of %d users were pruned", n, len(users)), err)
		}
		r.add(one)
		if p.Progress != nil {
			p.Progress(n+1, len(users))
		}
	}
	r.Millis = time.Since(began).Milliseconds()
	return r, nil
}

func (r *PruneReport) add(u PrunedUser) {
	r.Users = append(r.Users, u)
	r.PruneCounts.add(u.PruneCounts)
	if u.Error != "" {
		r.Failed++
	}
}

func (e *Engine) pruneUser(ctx context.Context, u vocab.Username, dryRun bool, before time.Time) PrunedUser {
	did, err := e.db.Prune(ctx, u, db.Pruning{Me: e.local.ID(u), Before: before, DryRun: dryRun})
	if err == nil && !dryRun {
		err = e.db.MarkPruned(ctx, u, e.now())
	}
	out := PrunedUser{User: u, PruneCounts: PruneCounts(did)}
	if err != nil {
		out.Error, out.Hint = err.Error(), fault.Hint(err)
	}
	return out
}
