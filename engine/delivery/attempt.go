package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	lookAfter = 3 // after so many failures, the target actor is fetched to learn its current inbox
	maxAsked  = 8 // at most so many actors are fetched when their common inbox is gone
)

// reaction is what an attempt shows about the state of the host.
type reaction uint8

const (
	noReaction reaction = iota // the attempt shows nothing about the host
	answered                   // the host answered
	silent                     // the host did not answer, or answered with a 5xx other than 501
	deferring                  // the host asked not to be contacted for a while
)

// result is the result of an attempt.
type result struct {
	outcome  user.Outcome
	reaction reaction
	pause    time.Duration // how long the host asked not to be contacted
	cut      bool          // the context ended during the attempt, so the outcome is unknown
	gone     []vocab.ID    // targets that are gone, according to their own server
}

// sender makes attempts.
type sender struct {
	*Deps
	backoff  backoff
	metrics  metrics
	samples  logSamples
	unsigned unsigned
}

func newSender(deps *Deps, m metrics) *sender {
	return &sender{Deps: deps, backoff: backoff{deps.Lasting}, metrics: m, samples: newLogSamples(deps.Now)}
}

// attempt makes one attempt at r, counts it and logs its outcome. If the attempt panics, only this
// delivery fails.
func (s *sender) attempt(ctx context.Context, r *row) result {
	res := s.attemptUnreported(ctx, r)
	if !res.cut {
		s.countOutcome(res.outcome)
		s.logOutcome(ctx, r, res.outcome)
	}
	return res
}

func (s *sender) attemptUnreported(ctx context.Context, r *row) (res result) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.ErrorContext(ctx, "delivery panicked", "activity", r.Activity, "inbox", r.Inbox, "err", p, "stack", string(debug.Stack()))
			res = result{outcome: user.Outcome{Delivery: r.ID, Status: user.DeliveryFailed, Spent: true, Error: fmt.Sprint("panic: ", p)}}
		}
	}()
	if len(r.Body) == 0 { // the delivery was withdrawn while a process had leased it
		return result{outcome: user.Outcome{Delivery: r.ID, Status: user.DeliverySkipped, Error: "the post was deleted or edited since"}}
	}
	if r.Host == "" {
		return s.handOver(ctx, r)
	}
	if r.Attempts >= lookAfter {
		if inbox, moved := s.findMovedInbox(ctx, r); moved {
			o := s.backoff.postponeDelivery(r.Delivery, s.Now(), "the inbox is another one now", s.Now())
			o.Inbox = inbox
			return result{outcome: o}
		}
	}
	return s.post(ctx, r)
}

// handOver delivers the activity to a user of this server. The delivery needs no signature. But it
// waits until the sender's keys can be read, because the document of the sender's actor contains
// keys, too. The hand-over is given up after margin, even if a database does not answer.
func (s *sender) handOver(ctx context.Context, r *row) result {
	if _, err := s.loadKeys(ctx, r); err != nil {
		return s.awaitKeys(r, err)
	}
	to, ok := s.InboxOwner(r.Inbox)
	err := error(fault.New(fault.NoUser, "no such local inbox"))
	start := s.Now()
	if ok {
		within, cancel := context.WithTimeout(ctx, margin)
		defer cancel()
		err = s.Local.Deliver(within, r.user, to, r.Body)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return result{cut: true}
	case isOwnOutage(err):
		return result{outcome: s.backoff.awaitRecovery(r.Delivery, err, s.Now())}
	}
	took := transport.Attempt{Took: s.Now().Sub(start)}
	if err == nil {
		took.Status = http.StatusAccepted
	}
	return result{outcome: s.backoff.judgeAttempt(r.Delivery, took, err, s.Now())}
}

// post sends the activity to another server.
func (s *sender) post(ctx context.Context, r *row) result {
	if err := CheckInbox(s.Gate, r.Host, r.Targets); err != nil {
		return result{outcome: s.backoff.judgeAttempt(r.Delivery, transport.Attempt{}, err, s.Now())}
	}
	keys, err := s.loadKeys(ctx, r)
	if err != nil {
		return s.awaitKeys(r, err)
	}
	a, err := s.Poster.Post(ctx, transport.Post{Inbox: r.Inbox, Body: r.Body, As: keys, Ed25519: s.mayUseEd25519(ctx, r),
		IdempotencyKey: r.IdempotencyKey(), TakesBack: s.backoff.isLasting(r.Delivery), Synchronization: s.synchronizationField(r)})
	if err != nil && ctx.Err() != nil {
		return result{cut: true}
	}
	res := result{outcome: s.backoff.judgeAttempt(r.Delivery, a, err, s.Now()), reaction: judgeHost(a, err), pause: a.RetryAfter}
	if err == nil && a.Status == http.StatusGone {
		res.gone = s.findGoneTargets(ctx, r)
	}
	return res
}

// judgeHost returns what an attempt shows about the state of the host.
func judgeHost(a transport.Attempt, err error) reaction {
	switch {
	case errors.Is(err, transport.ErrPaused), errors.Is(err, transport.ErrHalted), fault.KindOf(err) == fault.Forbidden, fault.KindOf(err) == fault.Invalid:
		return noReaction
	case err != nil:
		return silent
	case a.RetryAfter > 0 && (a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable):
		return deferring
	case a.Status/100 == 5 && a.Status != http.StatusNotImplemented:
		return silent
	}
	return answered
}

// signerOf returns the user who signs r, or the zero user when the instance actor signs it.
func signerOf(r *row) vocab.Username {
	if r.Instance {
		return vocab.Username{}
	}
	return r.user
}

// loadKeys returns the keys that sign r. If the keys cannot be read, it logs this only once, until
// the reason changes or the keys can be read again.
func (s *sender) loadKeys(ctx context.Context, r *row) (keys transport.Keys, err error) {
	u := signerOf(r)
	if u.IsZero() {
		keys, err = s.Keys.Instance()
	} else {
		keys, err = s.Keys.Keys(u)
	}
	if s.unsigned.record(u, err) && err != nil && !fault.IsLogged(err) {
		s.Log.ErrorContext(ctx, "keys could not be read", "user", u, "err", err, "hint", "lightweb deliver status "+r.user.String()+" shows what waits for them")
	}
	return keys, err
}

// awaitKeys returns the result of a delivery whose keys cannot be read, because of err.
func (s *sender) awaitKeys(r *row, err error) result {
	why := "the keys that sign it cannot be read: " + fault.Public(err)
	return result{outcome: s.backoff.postponeDelivery(r.Delivery, s.Now().Add(keysWait), why, s.Now())}
}

// findMovedInbox returns the inbox at which the targets accept deliveries now, and true if it
// differs from r.Inbox. For a single target, it returns the target's own inbox. For several
// targets of a delivery with a followers digest, it returns the new shared inbox of the first
// target, which is the shared inbox of their server. For several targets without a digest, it
// returns false, because they may have moved to different inboxes, which one delivery cannot
// reach.
func (s *sender) findMovedInbox(ctx context.Context, r *row) (vocab.ID, bool) {
	shared := len(r.Targets) > 1
	if len(r.Targets) == 0 || shared && len(r.FollowersDigest) == 0 {
		return "", false
	}
	a, err := s.Actors.Fresh(ctx, r.Targets[0])
	if err != nil || r.Inbox.Same(a.Inbox) || r.Inbox.Same(a.SharedInbox) {
		// The inbox has not moved, or the actor could not be fetched. The attempt goes to
		// r.Inbox.
		return "", false
	}
	inbox := a.Inbox
	if shared {
		inbox = a.SharedInbox
	}
	return inbox, inbox != ""
}

// findGoneTargets fetches up to maxAsked targets behind an inbox that is gone, and returns those
// that are gone, too.
func (s *sender) findGoneTargets(ctx context.Context, r *row) (gone []vocab.ID) {
	for _, t := range r.Targets[:min(len(r.Targets), maxAsked)] {
		if _, err := s.Actors.Fresh(ctx, t); fault.KindOf(err) == fault.Gone {
			gone = append(gone, t)
		}
	}
	return gone
}

// recallTime is the longest time that an attempt waits for the stored copy of its recipient.
const recallTime = time.Second

// mayUseEd25519 reports whether the stored actor shows that the server behind the inbox verifies
// Ed25519 signatures. It fetches nothing. When nothing is stored it reports false, since every
// server verifies RSA signatures.
func (s *sender) mayUseEd25519(ctx context.Context, r *row) bool {
	if len(r.Targets) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	a, err := s.Actors.Known(ctx, r.Targets[0])
	if err != nil {
		s.Log.WarnContext(ctx, "recipient could not be looked up", "actor", r.Targets[0], "err", err)
	}
	return a != nil && a.TakesEd25519()
}

func (s *sender) countOutcome(o user.Outcome) {
	name := o.Status
	if o.Status == user.DeliveryPending {
		name = "retry"
		if !o.Spent {
			name = "waiting"
		}
	}
	s.metrics.attempts.WithLabelValues(name).Inc()
	if o.Spent {
		s.metrics.took.Observe(o.Latency.Seconds())
	}
}
