package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	retryBatch  = 8 // how many deliveries to a host are leased together
	retryAtOnce = 2 // how many requests to a host run in parallel
	hopeless    = 5 // after this many attempts in a row without an answer the run skips a host

	// recordTime limits the time for storing the outcomes of attempts. It also applies when
	// the run's own time has run out.
	recordTime = 10 * time.Second
)

// sendAll sends the matched deliveries to other servers, and makes the deliveries to this server
// and to paused hosts due. It handles one user after another, so that at most retryAtOnce requests
// to a host run in parallel.
func (t *retry) sendAll(ctx context.Context) error {
	if t.r.AllPaused {
		return fault.New(fault.Unavailable, "federation is paused: nothing is sent to other servers").WithHint("set federation.mode to open")
	}
	t.sender = delivery.New(delivery.Deps{
		Store: t.in.DB, Users: t.in.DB.Instance.Users, Hosts: t.in.DB.Instance.Hosts, Due: t.in.DB.Instance.Deliveries, Poster: t.in.Client, Keys: t.in.Keys, Actors: t.in.Actors, InboxOwner: t.in.Local.InboxOwner, Gate: t.in.Gate,
		Lasting: handler.LastingTypes(), Owner: "cli:" + rand.Text(), Log: t.in.Log.With("component", "delivery"), Now: t.in.Now,
	})
	for from := 0; from < len(t.r.Hosts); {
		to := from
		for to < len(t.r.Hosts) && t.r.Hosts[to].User == t.r.Hosts[from].User {
			to++
		}
		if err := t.sendUser(ctx, t.r.Hosts[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// sendUser sends one user's deliveries to several hosts.
func (t *retry) sendUser(ctx context.Context, all []RetriedHost) error {
	u := all[0].User
	var g errgroup.Group
	g.SetLimit(t.c.Concurrency)
	for i := range all {
		h := &all[i]
		switch {
		case h.Blocked:
		case h.Host == "", h.Paused: // the serving process delivers to this server, and to a paused host after Hosts.Resume
			g.Go(func() error { return t.recordFailure(ctx, u, t.requeueHost(ctx, h)) })
		default:
			g.Go(func() error { return t.recordFailure(ctx, u, t.sendHost(ctx, h)) })
		}
	}
	err := g.Wait()
	last, cancel := postgres.Outlive(ctx, recordTime)
	defer cancel()
	back := t.in.DB.Write(last, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Deliveries.Release(ctx, t.sender.Owner, t.in.Now())
	})
	if err == nil {
		err = t.recordFailure(ctx, u, errors.Join(back, t.in.DB.Instance.Deliveries.Want(last, []vocab.Username{u}))) // tells the serving process when the rest is due
	}
	return err
}

// recordFailure records the error of one user.
func (t *retry) recordFailure(ctx context.Context, u vocab.Username, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.r.Failures.recordFailure(ctx, u, err)
}

// sendHost sends a user's matched deliveries to a host. It stops when the number of attempts in a
// row without an answer (see delivery.Attempted) has reached the constant hopeless. If some
// deliveries are parked, it first tests the host with one delivery, and sends the others only if
// that delivery succeeds.
func (t *retry) sendHost(ctx context.Context, h *RetriedHost) error {
	silent, probe := 0, h.parked
	var tried []int64 // deliveries that this run has attempted, and that could be chosen again
	for left := h.Matched; left > 0 && silent < hopeless; {
		n := min(left, retryBatch)
		if probe {
			n = 1
		}
		rows, err := t.claimBatch(ctx, h, tried, n)
		if err != nil || len(rows) == 0 {
			return err
		}
		ends, err := t.attemptBatch(ctx, h.User, rows)
		if err := t.recordBatch(ctx, h.User, ends); err != nil {
			return err
		}
		through := t.countAttempts(h, ends)
		if err != nil {
			return err
		}
		left -= len(rows)
		for _, a := range ends {
			if silent++; a.Answered {
				silent = 0
			}
			if s := a.Outcome.Status; s == user.DeliveryPending || s == user.DeliveryFailed {
				tried = append(tried, a.Outcome.Delivery)
			}
		}
		if probe && !through {
			return nil
		}
		if probe = false; through && h.parked { // Probe lets the serving process try the host without delay
			if err := t.in.DB.Instance.Hosts.Probe(ctx, []string{h.Host}); err != nil {
				return err
			}
			h.parked = false
		}
	}
	return nil
}

// recordBatch stores the outcomes of attempts, even if ctx has ended.
func (t *retry) recordBatch(ctx context.Context, u vocab.Username, ends []delivery.Attempted) error {
	ctx, cancel := postgres.Outlive(ctx, recordTime)
	defer cancel()
	return t.sender.Record(ctx, u, ends, t.in.Now())
}

// claimBatch leases deliveries for the longest time that their attempts can take, with two
// requests for each attempt. It leaves out the deliveries that the run has tried.
func (t *retry) claimBatch(ctx context.Context, h *RetriedHost, tried []int64, n int) (rows []user.Delivery, err error) {
	lease := time.Minute + 2*t.in.Config.Delivery.Timeout*retryBatch/retryAtOnce
	err = t.in.DB.Write(ctx, h.User, func(ctx context.Context, tx *user.Tx) (err error) {
		rows, err = tx.Deliveries.ClaimChosen(ctx, t.matchedChoice(h, tried), t.c.ResetAttempts, t.sender.Owner, lease, n, t.in.Now())
		return err
	})
	return rows, err
}

// attemptBatch sends the deliveries, and returns the attempts whose outcome is known.
func (t *retry) attemptBatch(ctx context.Context, u vocab.Username, rows []user.Delivery) (ends []delivery.Attempted, err error) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(retryAtOnce)
	for _, d := range rows {
		g.Go(func() error {
			a, known := t.sender.Attempt(ctx, u, d)
			if !known {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, a)
			return nil
		})
	}
	err = g.Wait()
	return ends, err
}

// countAttempts adds the outcomes to the report. It reports whether any delivery succeeded.
func (t *retry) countAttempts(h *RetriedHost, ends []delivery.Attempted) (through bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range ends {
		t.r.Requeued++
		switch a.Outcome.Status {
		case user.DeliveryDelivered:
			through = true
			t.r.Delivered++
			h.Delivered++
			continue
		case user.DeliverySkipped:
			t.r.Skipped++
			h.Skipped++
		default:
			t.r.Failed++
			h.Failed++
		}
		h.Error = a.Outcome.Error
		if at := a.Outcome.NextAt.UTC(); a.Outcome.Status == user.DeliveryPending && (h.NextAt == nil || at.Before(*h.NextAt)) {
			h.NextAt = &at
		}
	}
	if t.c.Progress != nil {
		t.c.Progress(t.r.Delivered+t.r.Failed+t.r.Skipped, t.r.Matched-t.r.SkippedBlocked-t.r.Paused)
	}
	return through
}
