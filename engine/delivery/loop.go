package delivery

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	crowdedWait = time.Second      // the wait until the next turn of a user whose deliveries had no room
	turnTime    = 30 * time.Second // the longest time of one turn, including the wait for a connection
)

// loop is the state of a dispatcher, and decides how to react to each event. A loop never waits.
// The dispatcher passes the current time to it, and carries out its decisions.
type loop struct {
	deps     *Deps
	backoff  backoff
	schedule schedule
	queues   queues
	leases   leases
	parking  parking
	ledger   ledger
	backlog  backlog

	beside      int  // goroutines that the dispatcher has started and that have not ended
	hasRecalled bool // a first reading of the ledger has ended, with or without an error, so turns and attempts may begin
	hasAll      bool // the whole ledger was read
	isDraining  bool // no new attempt begins, and no turn that claims deliveries
}

func newLoop(deps *Deps) *loop {
	return &loop{deps: deps, backoff: backoff{deps.Lasting}, schedule: newSchedule(), queues: newQueues(deps), leases: newLeases(), parking: newParking(),
		ledger: newLedger(), backlog: newBacklog()}
}

// requestTurn makes sure that u has a turn no later than the time "at".
func (l *loop) requestTurn(u vocab.Username, at time.Time) {
	l.schedule.requestTurn(u, at)
	l.ledger.noteUser(u)
}

// leaseInAdvance returns the leases that a transaction which stores a job may take.
func (l *loop) leaseInAdvance(now time.Time) user.DeliveryLeases {
	if l.deps.Paused || l.isDraining {
		return user.DeliveryLeases{}
	}
	return l.leases.inAdvance(l.deps.Owner, l.queues.unavailable(now), now)
}

// beginTurn returns the user whose turn begins, and the turn. It returns nil if no turn may begin.
func (l *loop) beginTurn(now time.Time) (*scheduledUser, turn) {
	u := l.schedule.beginTurn(now)
	if u == nil {
		return nil, turn{}
	}
	own := l.leases.maxOwn()
	t := turn{now: now, takeOver: !u.hadTurn, entries: l.ledger.takeEntries(u.name), resume: l.planResume(u.name, now),
		claim:    user.ClaimBounds{Most: own, Forwarded: l.leases.maxForwarded(u.name, own), Local: l.deps.Paused},
		recovers: !u.doubted.IsZero(), postpone: map[string]time.Time{}, count: l.backlog.isOutdated(u.name, now)}
	if t.recovers {
		t.held = slices.Collect(maps.Keys(l.leases.rows[u.name]))
	}
	for _, h := range l.queues.hosts {
		if h.isCrowded() {
			t.claim.Crowded = append(t.claim.Crowded, h.name)
		}
		if !h.isRefusing(now) {
			continue
		}
		t.claim.Except = append(t.claim.Except, h.name)
		if h.isOpen(now) {
			t.postpone[h.name] = l.claimableAt(h.name, now)
		}
	}
	if t.claim.Most == 0 || t.claim.Forwarded == 0 {
		u.dueBy(now.Add(crowdedWait))
	}
	if own > 0 {
		t.claim.Except = append(t.claim.Except, l.leases.fullDomains(own)...)
	}
	return u, t
}

// beginWriting returns a user with outcomes to write while the loop drains, and a turn
// that writes them and claims nothing. It returns nil if no such turn may begin.
func (l *loop) beginWriting(now time.Time) (*scheduledUser, turn) {
	for name := range l.ledger.entries {
		if u := l.schedule.beginWriting(name); u != nil {
			return u, turn{now: now, entries: l.ledger.takeEntries(name), postpone: map[string]time.Time{}}
		}
	}
	return nil, turn{}
}

// claimableAt returns the time from which deliveries to a host that a turn left out can be claimed
// again.
func (l *loop) claimableAt(host string, now time.Time) time.Time {
	h := l.queues.hosts[host]
	switch {
	case h == nil || !h.isOpen(now):
		return now.Add(crowdedWait)
	case h.paused:
		return now.Add(pausedWait)
	}
	return h.closesAt()
}

// endTurn records the result of a user's turn, and queues the deliveries that it claimed.
func (l *loop) endTurn(name vocab.Username, t turn, got turnResult, err error, now time.Time) {
	u := l.schedule.user(name)
	defer l.ledger.noteUser(name)
	if err != nil {
		l.ledger.returnEntries(name, t.entries)
		for host := range t.resume {
			l.parking.askBack(host, name)
		}
		u.doubt(now) // the turn may have been committed
		l.schedule.failTurn(u, now)
		return
	}
	for _, e := range t.entries {
		l.leases.remove(name, e.delivery.ID)
	}
	l.backlog.record(name, t, got, len(l.leases.rows[name]))
	l.recordParked(name, got.parked)
	l.recordResumed(u, t, got)
	l.queueRows(name, got.rows, t.now, t.now.Add(leaseTime))
	if got.next != nil {
		u.dueBy(*got.next)
	}
	for _, host := range got.passed {
		u.dueBy(l.claimableAt(host, t.now))
		l.awaitHost(host, name, now)
	}
	u.settleDoubt(t.now)
	l.schedule.endTurn(u, t.hasMore(got.rows) || len(l.ledger.entries[name]) > 0)
}

// queueRows queues deliveries of u that were leased. If a delivery is in memory already, its
// lease had expired, and this claim has renewed the lease.
func (l *loop) queueRows(u vocab.Username, rows []user.Delivery, now, until time.Time) {
	bodies := map[uuid.UUID][]byte{}
	for _, delivery := range rows {
		if r := l.leases.rows[u][delivery.ID]; r != nil {
			r.until = until
			continue
		}
		if body, known := bodies[delivery.Job]; known {
			delivery.Body = body // all deliveries of a job share one copy of the body
		} else {
			bodies[delivery.Job] = delivery.Body
		}
		h := l.queues.host(delivery.Host)
		r := &row{Delivery: delivery, user: u, domain: h.domain, until: until}
		l.leases.add(r)
		if h.isParking(now) {
			l.postpone(r, h, now)
			continue
		}
		h.push(r)
		l.emptyIfOpen(h, now)
		l.queues.list(h)
	}
}

// beginAttempt returns the delivery to attempt next, or nil if no attempt may begin.
func (l *loop) beginAttempt(now time.Time) *row {
	for r := l.queues.beginAttempt(); r != nil; r = l.queues.beginAttempt() {
		if r.until.Sub(now) >= margin {
			return r
		}
		// The delivery has waited so long that its lease could expire during the attempt.
		l.queues.list(l.queues.endAttempt(r))
		l.record(r, l.backoff.postponeDelivery(r.Delivery, now, "", now))
	}
	return nil
}

// endAttempt records the result of an attempt.
func (l *loop) endAttempt(r *row, res result, now time.Time) {
	h := l.queues.endAttempt(r)
	wasAway := h.isAway()
	if h.recordReaction(res, now) {
		l.ledger.noteHost(h.name)
		if wasAway && !h.isAway() {
			l.resumeHost(h.name)
		}
	}
	if !res.cut {
		l.record(r, res.outcome, res.gone...)
	}
	l.emptyIfOpen(h, now)
	l.queues.list(h)
	l.forgetIdle(h, now)
}

// record stores an outcome, and the targets that are gone, in the ledger for the user's next
// turn.
func (l *loop) record(r *row, o user.Outcome, gone ...vocab.ID) {
	l.ledger.addEntry(r.user, entry{r.Delivery, o, gone})
	l.requestTurn(r.user, atOnce)
}

// emptyIfOpen postpones the deliveries in the queue of a host whose breaker is open.
func (l *loop) emptyIfOpen(h *hostQueue, now time.Time) {
	if !h.isOpen(now) {
		return
	}
	for _, r := range h.removeAll() {
		l.postpone(r, h, now)
	}
}

// postpone records that no attempt is made at a delivery, because nothing may be sent to its
// host now.
func (l *loop) postpone(r *row, h *hostQueue, now time.Time) {
	switch {
	case h.paused:
		l.record(r, l.backoff.postponeDelivery(r.Delivery, now, "the operator holds back deliveries to the host", now))
	case h.isInactive():
		l.record(r, l.backoff.parkDelivery(r.Delivery, h.inactive, now))
		if l.parking.addParked(h.name, r.user) {
			l.ledger.noteParked(h.name, r.user, true)
		}
	default:
		l.awaitHost(h.name, r.user, now)
		why := "the host is left alone for a while: " + cmp.Or(h.why, "it asked for that")
		l.record(r, l.backoff.postponeDelivery(r.Delivery, h.closesAt(), why, now))
	}
}

// forgetIdle removes a host if nothing about it has to be remembered.
func (l *loop) forgetIdle(h *hostQueue, now time.Time) {
	if h.isIdle(now) && len(l.parking.parked[h.name]) == 0 {
		delete(l.queues.hosts, h.name)
		delete(l.parking.waiting, h.name)
	}
}
