package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
)

// recount is how long the counts of what a user owes are believed.
const recount = 10 * time.Second

// plan makes up what the next turn of u has to do. The caller holds mu.
func (d *Dispatcher) plan(u *user, now time.Time) turn {
	u.busy, u.again = true, false
	d.turns++
	most := d.mayClaim()
	t := turn{now: now, takeBack: !u.tookBack, ended: u.ended, unpark: d.unparks(u), claim: db.ClaimBounds{Most: most, Forwarded: d.mayForward(u, most), Local: d.Paused},
		putOff: map[string]time.Time{}, count: now.Sub(u.counted) >= recount}
	u.ended = nil
	u.due = time.Time{}
	for _, h := range d.hosts {
		if h.crowded() {
			t.claim.Crowded = append(t.claim.Crowded, h.name)
		}
		if !h.refuses(now) {
			continue
		}
		t.claim.Except = append(t.claim.Except, h.name)
		if h.rests(now) {
			t.putOff[h.name] = d.opens(h.name, now)
		}
	}
	if t.claim.Most == 0 || t.claim.Forwarded == 0 {
		u.by(now.Add(crowded))
	}
	if most > 0 {
		t.claim.Except = append(t.claim.Except, d.fullDomains(most)...)
	}
	return t
}

// mayClaim returns how many deliveries of a user's own a turn may claim: all turns under way as many as one domain may have
// which has none, and each a handful. The caller holds mu.
func (d *Dispatcher) mayClaim() int {
	share := int(d.rows.Share())
	return min(batch, max(share/maxTurns, min(share, handful)))
}

// mayForward returns how many more deliveries of what others said may be claimed for u, beside most of its own. They never take the places of
// users' own. The caller holds mu.
func (d *Dispatcher) mayForward(u *user, most int) int {
	return max(0, min(most/4, maxForwardedOfUser-u.forwarded, maxForwarded-d.forwarded))
}

// full tells whether a turn claimed as many as it might, so that there may be more.
func (t turn) full(claimed []db.Delivery) bool {
	forwarded := 0
	for _, r := range claimed {
		if r.Forwarded {
			forwarded++
		}
	}
	return t.claim.Most > 0 && (len(claimed)-forwarded == t.claim.Most || forwarded > 0 && forwarded == t.claim.Forwarded)
}

// unparks takes what is to come back of the parked deliveries of u: one to find out whether a host is back, then as many
// as there is room for. What is asked for from now on is for another turn. The caller holds mu.
func (d *Dispatcher) unparks(u *user) map[string]int {
	n := map[string]int{}
	for host := range u.resume {
		switch h := d.hosts[host]; {
		case h != nil && h.inactive.IsZero() && h.rests(d.Now()): // again: it is resumed when it is back
			h.waiters = with(h.waiters, u)
		case h == nil || h.inactive.IsZero() && h.waiting() < full:
			n[host] = unpark
		case !h.inactive.IsZero():
			n[host] = 1
		default:
			continue
		}
		delete(u.resume, host)
	}
	return n
}

// by makes u due by then.
func (u *user) by(at time.Time) {
	if u.due.IsZero() || at.Before(u.due) {
		u.due = at
	}
}

// turn takes a turn, and queues what was claimed.
func (d *Dispatcher) turn(ctx context.Context, u *user, t turn) {
	defer d.under.Done()
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	got, err := d.queue.turn(ctx, u.name, t)
	if err != nil {
		d.Log.WarnContext(ctx, "deliveries could not be claimed", "user", u.name, "err", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turns--
	u.busy = false
	if err != nil {
		u.ended = append(t.ended, u.ended...)
		for host := range t.unpark {
			u.resume[host] = true
		}
		u.due = d.Now().Add(min(broken, brokenAt<<min(u.failures, 10)))
		u.failures++
	} else {
		u.failures, u.tookBack = 0, true
		for _, e := range t.ended {
			d.forget(u, e.delivery.ID)
		}
		d.count(u, t, got)
		d.unparked(u, t, got)
		d.take(u, got.rows, t.now, t.now.Add(deliveryLease))
		if got.next != nil {
			u.by(*got.next)
		}
		for _, host := range got.passed {
			u.by(d.opens(host, t.now))
			d.waits(host, u)
		}
		if u.again || t.full(got.rows) || len(u.ended) > 0 {
			u.due = atOnce
		}
	}
	d.remark(u)
	if !u.due.IsZero() {
		d.schedule(u, u.due)
	}
	d.nudge()
}

// count takes in what a turn says of how much is owed. The caller holds mu.
func (d *Dispatcher) count(u *user, t turn, got taken) {
	for _, since := range got.waited {
		d.metrics.first.Observe(t.now.Sub(since).Seconds())
	}
	switch {
	case t.count:
		u.open, u.counted = got.open, t.now
	case got.next == nil && len(got.rows) == 0 && len(got.passed) == 0 && len(u.held) == 0:
		u.open = slices.DeleteFunc(u.open, func(o db.OpenDeliveries) bool { return o.Status == db.DeliveryPending })
	}
}

// unparked takes in how many deliveries came back. The caller holds mu.
func (d *Dispatcher) unparked(u *user, t turn, got taken) {
	for host, asked := range t.unpark {
		switch n := got.unparked[host]; {
		case n < asked && !u.parks(host):
			d.resumes(host, u)
		case n == asked && asked > 1:
			u.resume[host] = true
		}
	}
	if len(u.resume) > 0 {
		u.by(t.now.Add(crowded))
	}
}

// waits remembers that deliveries of u wait for a host that is left alone. The caller holds mu.
func (d *Dispatcher) waits(host string, u *user) {
	h := d.hosts[host]
	if h == nil || !h.rests(d.Now()) {
		return
	}
	h.waiters = with(h.waiters, u)
}

func with(users map[*user]bool, u *user) map[*user]bool {
	if users == nil {
		users = map[*user]bool{}
	}
	users[u] = true
	return users
}

// parks tells whether a delivery of u to a host is about to be parked.
func (u *user) parks(host string) bool {
	return slices.ContainsFunc(u.ended, func(e ended) bool { return e.outcome.Status == db.DeliveryParked && e.delivery.Host == host })
}

// opens returns when more can be claimed for a host that was passed over. The caller holds mu.
func (d *Dispatcher) opens(host string, now time.Time) time.Time {
	h := d.hosts[host]
	if h == nil || !h.rests(now) {
		return now.Add(crowded)
	}
	if h.paused {
		return now.Add(pausedWait)
	}
	return h.until()
}

// forget ends the hold on a delivery whose outcome is stored. The caller holds mu.
func (d *Dispatcher) forget(u *user, id int64) {
	if r, held := u.held[id]; held {
		delete(u.held, id)
		d.rows.Give(r.domain, 1)
		if r.Forwarded {
			u.forwarded--
			d.forwarded--
		}
	}
}

// take queues what was claimed. What is held already had outlived its lease, which this claim renewed. The caller holds
// mu.
func (d *Dispatcher) take(u *user, rows []db.Delivery, now, until time.Time) {
	bodies := map[uuid.UUID][]byte{}
	for _, delivery := range rows {
		if r := u.held[delivery.ID]; r != nil {
			r.lease = until
			continue
		}
		if body, known := bodies[delivery.Job]; known {
			delivery.Body = body // one copy for all inboxes
		} else {
			bodies[delivery.Job] = delivery.Body
		}
		h := d.host(delivery.Host)
		r := &row{Delivery: delivery, user: u, domain: h.domain, lease: until}
		u.held[r.ID] = r
		d.rows.Spend(r.domain, 1)
		if r.Forwarded {
			u.forwarded++
			d.forwarded++
		}
		if h.parks(now, h.waiting()+h.inflight) {
			d.set(r, h, now)
			continue
		}
		h.push(r)
		d.putOff(h, now)
		d.list(h)
	}
}

// users is a heap, the first due on top.
type users []*user

func (q users) Len() int           { return len(q) }
func (q users) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q users) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push is heap.Interface's.
func (q *users) Push(x any) {
	u := x.(*user)
	u.place = len(*q)
	*q = append(*q, u)
}

// Pop is heap.Interface's.
func (q *users) Pop() any {
	last := len(*q) - 1
	u := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	u.place = -1
	return u
}
