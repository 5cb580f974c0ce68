package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Inboxes are the activities that were accepted for users who do not have them yet.
type Inboxes struct{ in *instance.Instance }

// The states of an accepted activity that a user does not have.
const (
	InboxPoison  = "poison"  // it could not be applied, and was set aside
	InboxWaiting = "waiting" // it is in the journal until the user's database can be used
)

// InboxChoice says which activities are meant, of those that were accepted and that users do not
// have.
type InboxChoice struct {
	Users    []vocab.Username
	All      bool // users, but those deleted
	State    string
	Activity vocab.ID // empty: every one
	Limit    int      // of those listed
	DryRun   bool     // change nothing
}

// InboxItem is an activity that a user does not have.
type InboxItem struct {
	User     vocab.Username `json:"user"`
	State    string         `json:"state"` // poison or waiting
	Activity vocab.ID       `json:"activity"`
	Type     string         `json:"type"`
	Actor    vocab.ID       `json:"actor"`
	Since    time.Time      `json:"since"`
	Reason   string         `json:"reason"` // why it was set aside
}

// InboxFailure is what could not be looked at or done.
type InboxFailure struct {
	User     vocab.Username `json:"user"`
	Activity vocab.ID       `json:"activity,omitempty"` // empty: the user's database cannot be used
	Error    string         `json:"error"`
	Hint     string         `json:"-"`
}

// InboxList is what users do not have.
type InboxList struct {
	Items    []InboxItem    `json:"items"`   // as many as were asked for
	Poison   int            `json:"poison"`  // how many there are
	Waiting  int            `json:"waiting"` // the same
	Failures []InboxFailure `json:"failures"`
}

// InboxReport says what became of activities.
type InboxReport struct {
	Matched  int            `json:"matched"`
	Retried  int            `json:"retried"`
	Dropped  int            `json:"dropped"`
	Failures []InboxFailure `json:"failures"`
	DryRun   bool           `json:"dry_run"`
}

const inboxPage = 100 // activities in memory at once

// List lists what was accepted for users that they do not have, per user: what was set aside, then
// what waits, each the oldest first. The fault is NoUser when somebody named is no user.
func (ib Inboxes) List(ctx context.Context, c InboxChoice) (InboxList, error) {
	l := InboxList{Items: []InboxItem{}, Failures: []InboxFailure{}}
	users, err := chooseUsers(ctx, ib.in, c.Users, c.All)
	if err != nil {
		return l, err
	}
	for _, u := range users {
		err := ib.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
			n, err := tx.CountPoison(ctx)
			if err != nil {
				return err
			}
			found, err := tx.Poisoned(ctx, c.Activity, db.Poisoned{}, c.Limit-len(l.Items))
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
		n, err := ib.in.DB.CountWaiting(ctx, u)
		if err != nil {
			return l, err
		}
		l.Waiting += n
		err = ib.eachWaiting(ctx, u, c.Activity, func(w db.Waiting) (bool, error) {
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

// describeItem shows an activity as far as it can be read.
func describeItem(u vocab.Username, state string, id vocab.ID, raw []byte, since time.Time, reason string) InboxItem {
	i := InboxItem{User: u, State: state, Activity: id, Since: since.UTC(), Reason: reason}
	if a, err := vocab.ParseActivity(raw); err == nil {
		i.Activity, i.Type, i.Actor = a.ID, a.Type, a.Actor
	}
	return i
}

// eachWaiting shows what waits for u, in order, until see has seen enough.
func (ib Inboxes) eachWaiting(ctx context.Context, u vocab.Username, only vocab.ID, see func(db.Waiting) (more bool, err error)) error {
	for after := int64(0); ; {
		page, err := ib.in.DB.WaitingFor(ctx, u, after, inboxPage, 16<<20)
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

// Retry gives back what was set aside: it waits in the journal until the engine that serves, now
// or later, applies it. What fails stays set aside. What waits anyway is not touched: it is tried
// again by itself.
func (ib Inboxes) Retry(ctx context.Context, c InboxChoice) (InboxReport, error) {
	r := InboxReport{Failures: []InboxFailure{}, DryRun: c.DryRun}
	users, err := chooseUsers(ctx, ib.in, c.Users, c.All)
	if err != nil {
		return r, err
	}
	in := ib.in.NewInbox(nil)
	for _, u := range users {
		ib.eachPoison(ctx, u, c, &r, func(p db.Poisoned) error {
			err := in.Retry(ctx, u, p)
			if err == nil {
				r.Retried++
			}
			return err
		})
	}
	return r, checkMatched(c, r)
}

// Drop forgets activities for good. The ids of what was set aside stay taken: it is not accepted
// again.
func (ib Inboxes) Drop(ctx context.Context, c InboxChoice) (InboxReport, error) {
	r := InboxReport{Failures: []InboxFailure{}, DryRun: c.DryRun}
	users, err := chooseUsers(ctx, ib.in, c.Users, c.All)
	if err != nil {
		return r, err
	}
	for _, u := range users {
		if c.State != InboxWaiting {
			ib.eachPoison(ctx, u, c, &r, func(p db.Poisoned) error {
				err := ib.in.DB.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error { return tx.DropPoison(ctx, p) })
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

// eachPoison does something with what was set aside of u, and notes in r what failed. What is set
// aside meanwhile, such as what fails once more, is not looked at.
func (ib Inboxes) eachPoison(ctx context.Context, u vocab.Username, c InboxChoice, r *InboxReport, do func(db.Poisoned) error) {
	failed := func(id vocab.ID, err error) {
		r.Failures = append(r.Failures, InboxFailure{User: u, Activity: id, Error: err.Error(), Hint: fault.Hint(err)})
	}
	var left int
	err := ib.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		left, err = tx.CountPoison(ctx)
		return err
	})
	if c.Activity != "" {
		left = min(left, 1)
	}
	for last := (db.Poisoned{}); left > 0 && err == nil; {
		var page []db.Poisoned
		err = ib.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
			page, err = tx.Poisoned(ctx, c.Activity, last, min(left, inboxPage))
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

func (ib Inboxes) dropWaiting(ctx context.Context, u vocab.Username, c InboxChoice, r *InboxReport) error {
	return ib.eachWaiting(ctx, u, c.Activity, func(w db.Waiting) (bool, error) {
		r.Matched++
		if c.DryRun {
			return true, nil
		}
		n, err := ib.in.DB.FinishWaiting(ctx, u, []db.IntakeRow{w.IntakeRow})
		r.Dropped += n
		return true, err
	})
}

// checkMatched returns the fault NotFound when one activity was meant and there is none.
func checkMatched(c InboxChoice, r InboxReport) error {
	if c.Activity == "" || r.Matched > 0 || len(r.Failures) > 0 {
		return nil
	}
	return fault.New(fault.NotFound, fmt.Sprintf("nothing set aside or waiting has the id %.200q", c.Activity)).WithHint("lightweb inbox list --all")
}
