package admin

import (
	"context"
	"fmt"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Inboxes are the accepted activities that users' databases do not have yet.
type Inboxes struct{ in *instance.Instance }

// States of an accepted activity that the user's database does not have.
const (
	InboxPoison  = "poison"  // set aside, because it could not be applied
	InboxWaiting = "waiting" // in the journal, until it can be applied
)

// InboxChoice selects accepted activities that users' databases do not have.
type InboxChoice struct {
	Users    []vocab.Username
	All      bool // all users, except those that are deleted or still being created
	State    string
	Activity vocab.ID // all activities if empty
	Limit    int      // only for List
	DryRun   bool     // change nothing
}

// InboxItem is an accepted activity that the user's database does not have.
type InboxItem struct {
	User     vocab.Username `json:"user"`
	State    string         `json:"state"` // poison or waiting
	Activity vocab.ID       `json:"activity"`
	Type     string         `json:"type"`
	Actor    vocab.ID       `json:"actor"`
	Since    time.Time      `json:"since"`
	Reason   string         `json:"reason"` // why it was set aside
}

// InboxFailure is an activity that could not be handled, or a database that could not be used.
type InboxFailure struct {
	User     vocab.Username `json:"user"`
	Activity vocab.ID       `json:"activity,omitempty"` // empty if the user's database cannot be used
	Error    string         `json:"error"`
	Hint     string         `json:"-"`
}

// InboxList lists accepted activities that users' databases do not have.
type InboxList struct {
	Items    []InboxItem    `json:"items"`   // at most Limit
	Poison   int            `json:"poison"`  // total, also beyond Limit
	Waiting  int            `json:"waiting"` // total, also beyond Limit
	Failures []InboxFailure `json:"failures"`
}

// InboxReport is the result of Retry or Drop.
type InboxReport struct {
	Matched  int            `json:"matched"`
	Retried  int            `json:"retried"`
	Dropped  int            `json:"dropped"`
	Failures []InboxFailure `json:"failures"`
	DryRun   bool           `json:"dry_run"`
}

const inboxPage = 100 // activities in memory at once

// List returns the accepted activities that users' databases do not have. For each user it
// returns first those that were set aside and then those that wait, in both cases the oldest
// first. The fault is NoUser when a named user does not exist.
func (ib Inboxes) List(ctx context.Context, c InboxChoice) (InboxList, error) {
	l := InboxList{Items: []InboxItem{}, Failures: []InboxFailure{}}
	users, err := chooseUsers(ctx, ib.in, c.Users, c.All)
	if err != nil {
		return l, err
	}
	for _, u := range users {
		err := ib.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
			n, err := tx.Poison.Count(ctx)
			if err != nil {
				return err
			}
			found, err := tx.Poison.List(ctx, c.Activity, user.Poisoned{}, c.Limit-len(l.Items))
			if err != nil {
				return err
			}
			l.Poison += n
			for _, p := range found {
				l.Items = append(l.Items, describeItem(u, InboxPoison, p.URI, p.Raw, p.CreatedAt, p.Reason))
			}
			return nil
		})
		if err != nil {
			l.Failures = append(l.Failures, InboxFailure{User: u, Error: err.Error(), Hint: fault.Hint(err)})
		}
		n, err := ib.in.DB.Instance.Journal.CountWaiting(ctx, u)
		if err != nil {
			return l, err
		}
		l.Waiting += n
		err = ib.eachWaiting(ctx, u, c.Activity, func(w dbinstance.Waiting) (bool, error) {
			if len(l.Items) >= c.Limit {
				return false, nil
			}
			l.Items = append(l.Items, describeItem(u, InboxWaiting, "", w.Raw, w.ReceivedAt, ""))
			return true, nil
		})
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

// describeItem returns an activity in the form that commands show. For a malformed activity the
// item has no type and no actor. It has an id only if the activity was set aside.
func describeItem(u vocab.Username, state string, id vocab.ID, raw []byte, since time.Time, reason string) InboxItem {
	i := InboxItem{User: u, State: state, Activity: id, Since: since, Reason: reason}
	if a, err := vocab.ParseActivity(raw); err == nil {
		i.Activity, i.Type, i.Actor = a.ID, a.Type, a.Actor
	}
	return i
}

// eachWaiting calls the function see for each activity that waits for u, in order, until that
// function returns false. If the parameter only is not empty, eachWaiting skips activities with
// another id.
func (ib Inboxes) eachWaiting(ctx context.Context, u vocab.Username, only vocab.ID, see func(dbinstance.Waiting) (more bool, err error)) error {
	for after := int64(0); ; {
		page, err := ib.in.DB.Instance.Journal.ListWaiting(ctx, u, after, inboxPage, 16<<20)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, w := range page {
			after = w.Seq
			if a, err := vocab.ParseActivity(w.Raw); only != "" && (err != nil || !a.ID.Same(only)) {
				continue
			}
			if more, err := see(w); err != nil || !more {
				return err
			}
		}
	}
}

// Retry moves activities that were set aside back to the journal, from which the serving process
// applies them. An activity that fails again is set aside again. Retry does not touch activities
// that wait in the journal, because the serving process applies them anyway.
func (ib Inboxes) Retry(ctx context.Context, c InboxChoice) (InboxReport, error) {
	r := InboxReport{Failures: []InboxFailure{}, DryRun: c.DryRun}
	users, err := chooseUsers(ctx, ib.in, c.Users, c.All)
	if err != nil {
		return r, err
	}
	in := ib.in.NewInbox(nil)
	for _, u := range users {
		ib.eachPoison(ctx, u, c, &r, func(p user.Poisoned) error {
			err := in.Retry(ctx, u, p)
			if err == nil {
				r.Retried++
			}
			return err
		})
	}
	return r, checkMatched(c, r)
}

// Drop deletes activities for good. The database keeps the ids of activities that were set
// aside, so that these activities are not accepted again.
func (ib Inboxes) Drop(ctx context.Context, c InboxChoice) (InboxReport, error) {
	r := InboxReport{Failures: []InboxFailure{}, DryRun: c.DryRun}
	users, err := chooseUsers(ctx, ib.in, c.Users, c.All)
	if err != nil {
		return r, err
	}
	for _, u := range users {
		if c.State != InboxWaiting {
			ib.eachPoison(ctx, u, c, &r, func(p user.Poisoned) error {
				err := ib.in.DB.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error { return tx.Poison.Drop(ctx, p) })
				if err == nil {
					r.Dropped++
				}
				return err
			})
		}
		if c.State != InboxPoison {
			if err := ib.dropWaiting(ctx, u, c, &r); err != nil {
				return r, err
			}
		}
	}
	return r, checkMatched(c, r)
}

// eachPoison calls the function do for each activity that was set aside for u, and records
// failures in r. It ignores activities that are set aside in the meantime, such as those that fail
// again.
func (ib Inboxes) eachPoison(ctx context.Context, u vocab.Username, c InboxChoice, r *InboxReport, do func(user.Poisoned) error) {
	failed := func(id vocab.ID, err error) {
		r.Failures = append(r.Failures, InboxFailure{User: u, Activity: id, Error: err.Error(), Hint: fault.Hint(err)})
	}
	var left int
	err := ib.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		left, err = tx.Poison.Count(ctx)
		return err
	})
	if c.Activity != "" {
		left = min(left, 1)
	}
	for last := (user.Poisoned{}); left > 0 && err == nil; {
		var page []user.Poisoned
		err = ib.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			page, err = tx.Poison.List(ctx, c.Activity, last, min(left, inboxPage))
			return err
		})
		if err != nil || len(page) == 0 {
			break
		}
		left, last = left-len(page), page[len(page)-1]
		r.Matched += len(page)
		for _, p := range page {
			if c.DryRun {
				continue
			}
			if err := do(p); err != nil {
				failed(p.URI, err)
			}
		}
	}
	if err != nil {
		failed("", err)
	}
}

// dropWaiting deletes activities that wait for u.
func (ib Inboxes) dropWaiting(ctx context.Context, u vocab.Username, c InboxChoice, r *InboxReport) error {
	return ib.eachWaiting(ctx, u, c.Activity, func(w dbinstance.Waiting) (bool, error) {
		r.Matched++
		if c.DryRun {
			return true, nil
		}
		n, err := ib.in.DB.Instance.Journal.FinishWaiting(ctx, u, []dbinstance.IntakeRow{w.IntakeRow})
		r.Dropped += n
		return true, err
	})
}

// checkMatched returns the fault NotFound when c names one activity and no such activity exists.
func checkMatched(c InboxChoice, r InboxReport) error {
	if c.Activity == "" || r.Matched > 0 || len(r.Failures) > 0 {
		return nil
	}
	return fault.New(fault.NotFound, fmt.Sprintf("nothing set aside or waiting has the id %.200q", c.Activity)).WithHint("lightweb inbox list --all")
}
