package admin

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// RetryableStates returns the values of RetryChoice.States.
func RetryableStates() []string {
	return []string{user.DeliveryFailed, user.DeliveryParked, user.DeliveryPending}
}

// RetryChoice selects deliveries to retry, and says how.
type RetryChoice struct {
	DeliveryChoice
	States        []string      // pending, parked, failed
	Most          int           // the greatest number of deliveries to retry; no limit if 0
	ResetAttempts bool          // restart the retry schedule from now
	DryRun        bool          // only count
	Wait          bool          // this process, not the serving one, delivers to other servers
	Concurrency   int           // how many hosts get deliveries in parallel; only used with Wait
	WaitLock      time.Duration // time to wait for another process that retries
	Progress      func(done, all int)
}

// RetryReport is the result of Retry. While federation.mode is paused, deliveries to other servers
// wait.
type RetryReport struct {
	Matched        int              `json:"matched"`
	Requeued       int              `json:"requeued"`
	Delivered      int              `json:"delivered"`
	Failed         int              `json:"failed"`          // failed attempts; some are repeated later
	Skipped        int              `json:"skipped"`         // not tried any more, because the inbox is gone
	SkippedBlocked int              `json:"skipped_blocked"` // deliveries to hosts that the policy refuses
	Paused         int              `json:"paused"`          // matched deliveries to hosts that the operator has paused; they wait for Hosts.Resume
	AllPaused      bool             `json:"all_paused"`      // federation.mode is paused
	Hosts          []RetriedHost    `json:"hosts"`
	Failures       deliveryFailures `json:"failures"`
	DryRun         bool             `json:"dry_run"`
}

// RetriedHost is the result for one user's deliveries to one host.
type RetriedHost struct {
	User      vocab.Username `json:"user"`
	Host      string         `json:"host"` // empty for this server
	Matched   int            `json:"matched"`
	Delivered int            `json:"delivered"`
	Failed    int            `json:"failed"`
	Skipped   int            `json:"skipped"`
	Error     string         `json:"last_error,omitempty"`
	NextAt    *time.Time     `json:"next_attempt_at,omitempty"`
	Blocked   bool           `json:"blocked,omitempty"`
	Paused    bool           `json:"paused,omitempty"`

	parked bool // some deliveries are parked, that is, not attempted for now, so one delivery tests the host first
}

// Retry makes deliveries due now, so that the serving process sends them within seconds. If c.Wait
// is true, Retry itself sends the deliveries to other servers. Deliveries to a host that is paused
// when Retry begins become due, too, but nobody sends them before Hosts.Resume. The faults are
// Busy when another process retries, NoUser when a named user does not exist or is deleted, and
// Unavailable when c.Wait is true and federation.mode is paused.
func (ds Deliveries) Retry(ctx context.Context, c RetryChoice) (r RetryReport, err error) {
	r = RetryReport{AllPaused: ds.in.IsPaused(), Hosts: []RetriedHost{}, Failures: deliveryFailures{}, DryRun: c.DryRun}
	users, err := chooseUsers(ctx, ds.in, c.Users, c.All)
	if err != nil {
		return r, err
	}
	if !c.DryRun {
		release, err := ds.in.DB.Instance.Locks.Retry(ctx, c.WaitLock)
		if err != nil {
			return r, err
		}
		defer release()
	}
	run := retry{in: ds.in, c: c, r: &r}
	if run.paused, err = ds.findPaused(ctx); err != nil {
		return r, err
	}
	for _, u := range users {
		if c.Most > 0 && r.Matched-r.SkippedBlocked >= c.Most {
			break
		}
		if err := r.Failures.recordFailure(ctx, u, run.matchUser(ctx, u)); err != nil {
			return r, err
		}
	}
	if c.DryRun {
		return r, nil
	}
	if c.Wait {
		return r, run.sendAll(ctx)
	}
	return r, run.requeueHosts(ctx)
}

// findPaused returns the hosts that the operator has paused.
func (ds Deliveries) findPaused(ctx context.Context) (map[string]bool, error) {
	hosts, err := ds.in.DB.Instance.Hosts.List(ctx, true)
	paused := map[string]bool{}
	for _, h := range hosts {
		paused[h.Host] = h.PausedAt != nil
	}
	return paused, err
}

// retry is one run of Deliveries.Retry.
type retry struct {
	in     *instance.Instance
	c      RetryChoice
	r      *RetryReport
	paused map[string]bool // by host

	mu     sync.Mutex // guards r while several goroutines send
	sender *delivery.Dispatcher
}

// matchUser finds the deliveries of one user that the choice selects.
func (t *retry) matchUser(ctx context.Context, u vocab.Username) error {
	var chosen []user.ChosenHost
	err := t.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		chosen, err = tx.Deliveries.CountChosen(ctx, user.DeliveryChoice{DeliveryFilter: t.c.DeliveryFilter, States: t.c.States}, t.in.Now())
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
		paused := !blocked && t.paused[h.Host]
		switch {
		case blocked:
			t.r.SkippedBlocked += n
		case paused:
			t.r.Paused += n
		}
		t.r.Hosts = append(t.r.Hosts, RetriedHost{User: u, Host: h.Host, Matched: n, Error: h.Error, Blocked: blocked, Paused: paused, parked: h.Parked > 0})
	}
	return err
}

// requeueHosts makes the matched deliveries due.
func (t *retry) requeueHosts(ctx context.Context) error {
	for i := range t.r.Hosts {
		h := &t.r.Hosts[i]
		if h.Blocked {
			continue
		}
		if err := t.r.Failures.recordFailure(ctx, h.User, t.requeueHost(ctx, h)); err != nil {
			return err
		}
	}
	return nil
}

// matchedChoice selects the matched deliveries of a user to a host, except those with the ids in
// the parameter but.
func (t *retry) matchedChoice(h *RetriedHost, but []int64) user.DeliveryChoice {
	c := user.DeliveryChoice{DeliveryFilter: t.c.DeliveryFilter, States: t.c.States, But: but}
	c.Hosts = []string{h.Host}
	return c
}

// requeueHost makes a user's deliveries to a host due, and notifies the serving process. If the
// notification is lost, that process finds the deliveries when it next checks all users.
func (t *retry) requeueHost(ctx context.Context, h *RetriedHost) error {
	for left, after := h.Matched, int64(0); left > 0; {
		var rows []user.Requeued
		err := t.in.DB.Write(ctx, h.User, func(ctx context.Context, tx *user.Tx) (err error) {
			rows, err = tx.Deliveries.Requeue(ctx, t.matchedChoice(h, nil), t.c.ResetAttempts, after, min(left, deliveryPage), t.in.Now())
			return err
		})
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.r.Requeued += len(rows)
		t.mu.Unlock()
		if len(rows) == 0 {
			break
		}
		left, after = left-len(rows), rows[len(rows)-1].ID
	}
	if err := t.in.DB.Instance.Hosts.Probe(ctx, []string{h.Host}); err != nil {
		return err
	}
	return t.in.DB.Instance.Deliveries.Want(ctx, []vocab.Username{h.User})
}
