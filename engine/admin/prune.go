package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// PruneOptions says whose databases to prune, and of what age.
type PruneOptions struct {
	Users    []vocab.Username    // none: all
	Days     int                 // age of an old activity; 0: retention.remote_days, and nothing is old when that is 0
	DryRun   bool                // only count
	Progress func(done, all int) // called after each user; may be nil
	NotSince time.Time           // leave out users pruned since then; zero: none
}

// PruneCounts counts removed rows, or with DryRun rows to remove.
type PruneCounts struct {
	Activities int `json:"pruned_activities"` // with their places in the feed
	Objects    int `json:"pruned_objects"`
	Reactions  int `json:"pruned_reactions"`     // by those activities, or to those objects
	Actors     int `json:"pruned_actors"`        // unreferenced copies of actors
	Deliveries int `json:"pruned_deliveries"`    // done over a week ago; their jobs keep the actors that they reached
	Jobs       int `json:"pruned_jobs"`          // fan-outs made delivery.retention ago, with their deliveries
	Lapsed     int `json:"failed_deliveries"`    // given up: the host was inactive for too long
	Audits     int `json:"pruned_audit"`         // records of actions dispatched half a year ago
	Messages   int `json:"pruned_messages"`      // of conversations, accepted conversations.retention ago
	Strangers  int `json:"pruned_acquaintances"` // of actors without rows in the user's database in two nights
}

// addCounts adds the counts of one more user.
func (c *PruneCounts) addCounts(more PruneCounts) {
	c.Activities += more.Activities
	c.Objects += more.Objects
	c.Reactions += more.Reactions
	c.Actors += more.Actors
	c.Deliveries += more.Deliveries
	c.Jobs += more.Jobs
	c.Lapsed += more.Lapsed
	c.Audits += more.Audits
	c.Messages += more.Messages
	c.Strangers += more.Strangers
}

// PruneReport is the result of Prune.
type PruneReport struct {
	Users []PrunedUser `json:"users"` // in the order of pruning
	PruneCounts
	Reports   int   `json:"pruned_reports"`   // resolved that long ago; only when all users are pruned
	Forgotten int   `json:"forgotten_actors"` // unreferenced actors; only when all users are pruned
	Hosts     int   `json:"forgotten_hosts"`  // without a sign for 90 days; only when all users are pruned
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

// Prune removes old activities of other servers from users' databases unless the user interacted
// with them, as db.Cluster.Prune decides, and old results of deliveries. When it prunes all users
// it also removes reports resolved as long ago, and actors that no user needs, as
// db.Cluster.PruneRemoteActors decides. A user that fails does not stop the others. The fault is
// Busy when another process prunes, NoUser when a named user does not exist, Usage for a number of
// days out of bounds.
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
	if p.NotSince.IsZero() {
		p.NotSince = began.Add(time.Hour)
	}
	old := db.Pruning{DryRun: p.DryRun, Messages: dbs.in.Now().Add(-dbs.in.Config.Conversations.Retention), Deliveries: delivery.Retention(dbs.in.Now(), dbs.in.Config.Delivery.Retention, handler.LastingTypes())}
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
func (dbs Databases) pruneUser(ctx context.Context, u vocab.Username, old db.Pruning) PrunedUser {
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
	out := PrunedUser{User: u, PruneCounts: pruneCounts(did, strangers)}
	if err != nil {
		out.Error, out.Hint = err.Error(), fault.Hint(err)
	}
	return out
}

// pruneCounts returns the counts as commands show them.
func pruneCounts(did db.Pruned, strangers int) PruneCounts {
	return PruneCounts{Activities: did.Activities, Objects: did.Objects, Reactions: did.Reactions, Actors: did.Actors, Deliveries: did.Deliveries,
		Jobs: did.Jobs, Lapsed: did.Lapsed, Audits: did.Audits, Messages: did.Messages, Strangers: strangers}
}
