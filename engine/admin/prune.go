package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// PruneOptions says which users' databases to prune, and how old a pruned activity is.
type PruneOptions struct {
	Users    []vocab.Username    // all users if empty
	Days     int                 // age from which an activity is old; if 0, retention.remote_days counts; if that is 0, too, no activity is old
	DryRun   bool                // only count
	Progress func(done, all int) // called after each user; may be nil
	NotSince time.Time           // leave out users that were pruned since this time; if zero, leave out none
}

// PruneCounts counts the removed rows, or the rows that would be removed if DryRun is set.
type PruneCounts struct {
	user.Pruned
	Strangers int `json:"pruned_acquaintances"` // rows that PruneAcquaintances removed
}

// addCounts adds the counts of one more user.
func (c *PruneCounts) addCounts(more PruneCounts) {
	c.Add(more.Pruned)
	c.Strangers += more.Strangers
}

// PruneReport is the result of Prune.
type PruneReport struct {
	Users []PrunedUser `json:"users"` // in the order of pruning
	PruneCounts
	Reports   int   `json:"pruned_reports"`   // reports that were resolved at least Days ago; only when all users are pruned
	Forgotten int   `json:"forgotten_actors"` // unneeded actors; only when all users are pruned
	Hosts     int   `json:"forgotten_hosts"`  // hosts without contact for 90 days; only when all users are pruned
	Failed    int   `json:"failed"`
	Days      int   `json:"days"`
	Millis    int64 `json:"elapsed_ms"`
	DryRun    bool  `json:"dry_run"`
}

// PrunedUser is the result for one user's database.
type PrunedUser struct {
	User vocab.Username `json:"user"`
	PruneCounts
	Error string `json:"error,omitempty"` // set when pruning is incomplete
	Hint  string `json:"hint,omitempty"`
}

// Prune removes activities of other servers that are older than p.Days from users' databases,
// except the activities that user.Databases.Prune keeps. If p.Days is 0, the configured number
// applies. Prune also removes everything else of a user that user.Databases.Prune calls old, such
// as results of deliveries and messages of conversations. It removes acquaintances and retired
// keys that are not needed any more. If no users are named, it prunes all users, and removes
// reports that were resolved at least p.Days ago, actors that no user needs (see
// instance.Actors.Prune), and hosts without recent contact. If pruning one user fails, the others
// are still pruned. The fault is Busy when another process prunes, NoUser when a named user does
// not exist, and Usage for a number of days out of bounds.
func (dbs Databases) Prune(ctx context.Context, p PruneOptions) (r PruneReport, err error) {
	began := time.Now()
	r = PruneReport{Users: []PrunedUser{}, Days: p.Days, DryRun: p.DryRun}
	if r.Days == 0 {
		r.Days = dbs.in.Config.Retention.RemoteDays
	}
	if r.Days < 0 || r.Days > instance.MaxDays {
		return r, fault.New(fault.Usage, fmt.Sprintf("%d days are not from 1 to %d", r.Days, instance.MaxDays))
	}
	release, err := dbs.in.DB.Instance.Locks.Prune(ctx)
	if err != nil {
		return r, err
	}
	defer release()
	old := user.Pruning{DryRun: p.DryRun, Messages: dbs.in.Now().Add(-dbs.in.Config.Conversations.Retention), Deliveries: delivery.Retention(dbs.in.Now(), dbs.in.Config.Delivery.Retention, handler.LastingTypes())}
	if r.Days > 0 {
		old.Before = dbs.in.Now().AddDate(0, 0, -r.Days)
	}
	if len(p.Users) == 0 && r.Days > 0 {
		if r.Reports, err = dbs.in.DB.Instance.Reports.Prune(ctx, old.Before, p.DryRun); err != nil {
			return r, err
		}
	}
	users, err := dbs.in.DB.Instance.Users.ListToPrune(ctx, p.Users, p.NotSince)
	if err != nil {
		return r, err
	}
	for n, u := range users {
		one := dbs.pruneUser(ctx, u, old)
		if err := ctx.Err(); err != nil {
			return r, fault.Wrap(fault.Busy, fmt.Sprintf("time ran out when %d of %d users were pruned", n, len(users)), err)
		}
		r.addUser(one)
		if p.Progress != nil {
			p.Progress(n+1, len(users))
		}
	}
	if len(p.Users) == 0 {
		if r.Forgotten, err = dbs.in.DB.Instance.Actors.Prune(ctx, dbs.in.Now(), p.DryRun); err != nil {
			return r, err
		}
		if r.Hosts, err = dbs.in.DB.Instance.Hosts.Prune(ctx, dbs.in.Now(), p.DryRun); err != nil {
			return r, err
		}
	}
	r.Millis = time.Since(began).Milliseconds()
	return r, nil
}

// addUser adds the result of one user.
func (r *PruneReport) addUser(u PrunedUser) {
	r.Users = append(r.Users, u)
	r.PruneCounts.addCounts(u.PruneCounts)
	if u.Error != "" {
		r.Failed++
	}
}

// pruneUser prunes one user's database.
func (dbs Databases) pruneUser(ctx context.Context, u vocab.Username, old user.Pruning) PrunedUser {
	old.Me = dbs.in.Local.ID(u)
	did, err := dbs.in.DB.Prune(ctx, u, old)
	strangers := 0
	if err == nil {
		strangers, err = dbs.in.DB.PruneAcquaintances(ctx, u, dbs.in.Now(), old.DryRun)
	}
	if err == nil && !old.DryRun {
		err = dbs.pruneKeys(ctx, u)
	}
	if err == nil && !old.DryRun {
		err = dbs.in.DB.Instance.Users.MarkPruned(ctx, u, dbs.in.Now())
	}
	out := PrunedUser{User: u, PruneCounts: PruneCounts{did, strangers}}
	if err != nil {
		out.Error, out.Hint = err.Error(), fault.Hint(err)
	}
	return out
}
