package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	resolveAfter = 3 // attempts that failed, after which it is looked up where an inbox is
	maxAsked     = 8 // actors behind one inbox that is gone
)

// heard says what an attempt tells about the host.
type heard uint8

const (
	nothing  heard = iota // it was not asked
	answered              // something got through to it
	silence               // nothing did, or its software is broken
	asked                 // it wants to be left alone for a while
)

// result is how an attempt ended.
type result struct {
	outcome db.Outcome
	heard   heard
	pause   time.Duration // how long the host asked to be left alone
	cut     bool          // the dispatcher stopped meanwhile: nothing is known of the outcome
	gone    []vocab.ID    // targets that are no more, as their own server says
}

// attempt makes one attempt at r. What goes wrong in it ends this delivery only.
func (d *Dispatcher) attempt(ctx context.Context, r *row) {
	defer d.under.Done()
	res := d.try(ctx, r)
	if !res.cut {
		d.report(ctx, r, res.outcome)
	}
	d.finish(r, res)
}

func (d *Dispatcher) try(ctx context.Context, r *row) (res result) {
	defer func() {
		if p := recover(); p != nil {
			d.Log.ErrorContext(ctx, "delivery panicked", "activity", r.Activity, "inbox", r.Inbox, "err", p, "stack", string(debug.Stack()))
			res = result{outcome: db.Outcome{Delivery: r.ID, Status: db.DeliveryFailed, Spent: true, Error: fmt.Sprint("panic: ", p)}}
		}
	}()
	if len(r.Body) == 0 { // withdrawn while a process had its lease
		return result{outcome: db.Outcome{Delivery: r.ID, Status: db.DeliverySkipped, Error: "the post was deleted or edited since"}}
	}
	if r.Host == "" {
		return d.hand(ctx, r)
	}
	if r.Attempts >= resolveAfter {
		if inbox, ok := d.moved(ctx, r); ok {
			o := put(r.Delivery, d.Now(), "the inbox is another one now", d.Now())
			o.Inbox = inbox
			return result{outcome: o}
		}
	}
	return d.post(ctx, r)
}

// hand gives the activity to a user of this server.
func (d *Dispatcher) hand(ctx context.Context, r *row) result {
	to, ok := d.InboxOwner(r.Inbox)
	err := error(fault.New(fault.NoUser, "no such local inbox"))
	start := d.Now()
	if ok {
		err = d.Local.Deliver(ctx, r.user.name, to, r.Body)
	}
	if err != nil && ctx.Err() != nil {
		return result{cut: true}
	}
	took := transport.Attempt{Took: d.Now().Sub(start)}
	if err == nil {
		took.Status = http.StatusAccepted
	}
	return result{outcome: judge(r.Delivery, took, err, d.Now())}
}

func (d *Dispatcher) post(ctx context.Context, r *row) result {
	if err := Permitted(d.Gate, r.Host, r.Targets); err != nil {
		return result{outcome: judge(r.Delivery, transport.Attempt{}, err, d.Now())}
	}
	keys, err := d.keys(r)
	if d.unsigned.change(signer(r), err) && err != nil && !fault.IsLogged(err) {
		d.Log.ErrorContext(ctx, "keys could not be read", "user", signer(r), "err", err, "hint", "lightweb deliver status "+r.user.name.String()+" shows what waits for them")
	}
	if err != nil {
		return result{outcome: put(r.Delivery, d.Now().Add(keysWait), "the keys that sign it cannot be read: "+fault.Public(err), d.Now())}
	}
	a, err := d.Poster.Post(ctx, transport.Post{Inbox: r.Inbox, Body: r.Body, As: keys, Ed25519: d.takesEd25519(ctx, r),
		IdempotencyKey: r.IdempotencyKey(), Synchronization: d.synchronization(r.user.name, r.Delivery)})
	if err != nil && ctx.Err() != nil {
		return result{cut: true}
	}
	res := result{outcome: judge(r.Delivery, a, err, d.Now()), heard: hears(a, err), pause: a.RetryAfter}
	if err == nil && a.Status == http.StatusGone {
		res.gone = d.gone(ctx, r)
	}
	return res
}

// hears says what an attempt tells about the host.
func hears(a transport.Attempt, err error) heard {
	switch {
	case errors.Is(err, transport.ErrPaused), fault.KindOf(err) == fault.Forbidden && err != nil, fault.KindOf(err) == fault.Invalid && err != nil:
		return nothing
	case err != nil:
		return silence
	case a.RetryAfter > 0 && (a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable):
		return asked
	case a.Status/100 == 5:
		return silence
	}
	return answered
}

// signer returns the user who signs r, nobody when that is the instance.
func signer(r *row) vocab.Username {
	if r.Instance {
		return vocab.Username{}
	}
	return r.user.name
}

func (d *Dispatcher) keys(r *row) (transport.Keys, error) {
	if u := signer(r); !u.IsZero() {
		return d.Keys.Keys(u)
	}
	return d.Keys.Instance()
}

// moved returns where the targets take deliveries now, when that is elsewhere: what is for followers stays shared, what is meant
// for one goes to that one. Several who are not reached as followers had one inbox; where each has it now, one delivery
// cannot tell.
func (d *Dispatcher) moved(ctx context.Context, r *row) (vocab.ID, bool) {
	shared := len(r.Targets) > 1
	if len(r.Targets) == 0 || shared && len(r.FollowersDigest) == 0 {
		return "", false
	}
	a, err := d.Actors.Fresh(ctx, r.Targets[0])
	if err != nil || r.Inbox.Same(a.Inbox) || r.Inbox.Same(a.SharedInbox) {
		return "", false // the attempt will tell
	}
	inbox := a.Inbox
	if shared {
		inbox = a.SharedInbox
	}
	return inbox, inbox != ""
}

// gone asks the server of an inbox that is gone about the targets behind it, and returns who is gone, too.
func (d *Dispatcher) gone(ctx context.Context, r *row) (gone []vocab.ID) {
	for _, t := range r.Targets[:min(len(r.Targets), maxAsked)] {
		if _, err := d.Actors.Fresh(ctx, t); fault.KindOf(err) == fault.Gone && err != nil {
			gone = append(gone, t)
		}
	}
	return gone
}

// takesEd25519 tells whether the server behind an inbox is known to verify Ed25519 signatures. Every server verifies RSA
// ones, so when nothing is known the answer is no: an attempt waits for no other fetch.
func (d *Dispatcher) takesEd25519(ctx context.Context, r *row) bool {
	if len(r.Targets) == 0 {
		return false
	}
	a, err := d.Actors.Known(ctx, r.Targets[0])
	if err != nil {
		d.Log.WarnContext(ctx, "recipient could not be looked up", "actor", r.Targets[0], "err", err)
	}
	return a != nil && a.TakesEd25519()
}

// report counts an outcome, and logs a sample.
func (d *Dispatcher) report(ctx context.Context, r *row, o db.Outcome) {
	name := o.Status
	if o.Status == db.DeliveryPending {
		name = "retry"
		if !o.Spent {
			name = "waiting"
		}
	}
	d.metrics.attempts.WithLabelValues(name).Inc()
	if o.Spent {
		d.metrics.took.Observe(o.Latency.Seconds())
	}
	d.log(ctx, r, o)
}
