package admin

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// RetryChoice says which deliveries are tried again, and how.
type RetryChoice struct {
	DeliveryChoice
	States        []string      // pending, parked, failed
	Most          int           // deliveries; 0: all
	ResetAttempts bool          // they begin anew, as if they were owed from now on
	DryRun        bool          // only count
	Wait          bool          // send them in this process; else the one that serves does
	Concurrency   int           // with Wait: hosts at once
	WaitLock      time.Duration // how long to wait for another process that does the same
	Progress      func(done, all int)
}

// RetryReport says what became of deliveries that were to be tried again.
type RetryReport struct {
	Matched        int              `json:"matched"`
	Requeued       int              `json:"requeued"`
	Delivered      int              `json:"delivered"`
	Failed         int              `json:"failed"`          // an attempt at them, which may be made again
	SkippedBlocked int              `json:"skipped_blocked"` // the policy refuses their hosts
	Hosts          []RetriedHost    `json:"hosts"`
	Failures       deliveryFailures `json:"failures"`
	DryRun         bool             `json:"dry_run"`
}

// RetriedHost says the same of one user's deliveries to one host.
type RetriedHost struct {
	User      vocab.Username `json:"user"`
	Host      string         `json:"host"` // empty: this server
	Matched   int            `json:"matched"`
	Delivered int            `json:"delivered"`
	Failed    int            `json:"failed"`
	Error     string         `json:"last_error,omitempty"`
	NextAt    *time.Time     `json:"next_attempt_at,omitempty"`
	Blocked   bool           `json:"blocked,omitempty"`

	parked bool // some of them are, so the host is tried with one first
}

// Retry makes deliveries due now, which the process that serves finds within seconds; or sends
// them itself. The faults are Busy when another process does the same, and NoUser when somebody
// named is no user.
func (ds Deliveries) Retry(ctx context.Context, c RetryChoice) (r RetryReport, err error) {
	r = RetryReport{Hosts: []RetriedHost{}, Failures: deliveryFailures{}, DryRun: c.DryRun}
	users, err := chooseUsers(ctx, ds.in, c.Users, c.All)
	if err != nil {
		return r, err
	}
	if !c.DryRun {
		release, err := ds.in.DB.LockRetry(ctx, c.WaitLock)
		if err != nil {
			return r, err
		}
		defer release()
	}
	run := retry{in: ds.in, c: c, r: &r, began: ds.in.Now()}
	for _, u := range users {
		if c.Most > 0 && r.Matched-r.SkippedBlocked >= c.Most {
			break
		}
		if err := r.Failures.record(ctx, u, run.match(ctx, u)); err != nil {
			return r, err
		}
	}
	if c.DryRun {
		return r, nil
	}
	if c.Wait {
		return r, run.wait(ctx)
	}
	return r, run.send(ctx)
}

// retry is one run of Deliveries.Retry.
type retry struct {
	in    *instance.Instance
	c     RetryChoice
	r     *RetryReport
	began time.Time

	mu     sync.Mutex // over r while several send
	sender *delivery.Dispatcher
}

// match looks for what is meant of one user's.
func (t *retry) match(ctx context.Context, u vocab.Username) error {
	var chosen []db.ChosenHost
	err := t.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		chosen, err = tx.ChosenDeliveries(ctx, db.DeliveryChoice{DeliveryFilter: t.c.filter(), States: t.c.States}, t.began)
		return err
	})
	for _, h := range chosen {
		blocked := h.Host != "" && t.in.Gate.Check(h.Host) != nil
		n := h.Count
		if left := t.c.Most - (t.r.Matched - t.r.SkippedBlocked); t.c.Most > 0 && !blocked {
			n = min(n, left)
		}
		if n == 0 {
			continue
		}
		t.r.Matched += n
		if blocked {
			t.r.SkippedBlocked += n
		}
		t.r.Hosts = append(t.r.Hosts, RetriedHost{User: u, Host: h.Host, Matched: n, Error: h.Error, Blocked: blocked, parked: h.Parked > 0})
	}
	return err
}

// send makes due what was matched.
func (t *retry) send(ctx context.Context) error {
	for i := range t.r.Hosts {
		h := &t.r.Hosts[i]
		if h.Blocked {
			continue
		}
		if err := t.r.Failures.record(ctx, h.User, t.requeue(ctx, h)); err != nil {
			return err
		}
	}
	return nil
}

// choice are the deliveries of a user to a host that were matched and not touched since.
func (t *retry) choice(h *RetriedHost) db.DeliveryChoice {
	c := db.DeliveryChoice{DeliveryFilter: t.c.filter(), States: t.c.States, Before: t.began}
	c.Hosts = []string{h.Host}
	return c
}

// requeue makes a user's deliveries to a host due, and tells the process that serves. Should it
// not hear of it, it looks at everybody now and then.
func (t *retry) requeue(ctx context.Context, h *RetriedHost) error {
	for left := h.Matched; left > 0; {
		var rows []db.Requeued
		err := t.in.DB.Write(ctx, h.User, func(ctx context.Context, tx *db.Tx) (err error) {
			rows, err = tx.RequeueDeliveries(ctx, t.choice(h), t.c.ResetAttempts, 0, min(left, deliveryPage), t.in.Now())
			return err
		})
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.r.Requeued += len(rows)
		t.mu.Unlock()
		left -= len(rows)
		if len(rows) == 0 {
			break
		}
	}
	if err := t.in.DB.ProbeHosts(ctx, []string{h.Host}); err != nil {
		return err
	}
	return t.in.DB.WantDeliveries(ctx, []vocab.Username{h.User})
}
