package delivery

import (
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// awaitHost records that deliveries of u wait for a host, if its breaker is open.
func (l *loop) awaitHost(host string, u vocab.Username, now time.Time) {
	if h := l.queues.hosts[host]; h != nil && h.isOpen(now) {
		l.parking.addWaiting(host, u)
	}
}

// planResume returns, by host, the greatest number of deliveries that the next turn of u makes due
// again. For an inactive host the number is one, and that delivery probes the host. For a host
// whose breaker is closed the number is resumeBatch. The plan leaves out all other hosts, and
// hosts whose queue is full.
func (l *loop) planResume(u vocab.Username, now time.Time) map[string]int {
	plan := map[string]int{}
	hosts := l.parking.takeAsked(u, func(host string) bool {
		h := l.queues.hosts[host]
		return h == nil || h.isInactive() || h.isOpen(now) || h.waiting() < maxQueued
	})
	for _, host := range hosts {
		switch h := l.queues.hosts[host]; {
		case h != nil && h.isInactive():
			plan[host] = 1
		case h != nil && h.isOpen(now): // the deliveries become due again when the breaker closes
			l.parking.addWaiting(host, u)
		default:
			plan[host] = resumeBatch
		}
	}
	return plan
}

// recordParked records that deliveries of u to these hosts are parked, as a turn has found. Those
// to a host that is not inactive are made due again.
func (l *loop) recordParked(u vocab.Username, hosts []string) {
	for _, host := range hosts {
		if l.parking.addParked(host, u) {
			l.ledger.noteParked(host, u, true)
		}
		if h := l.queues.hosts[host]; h == nil || !h.isInactive() {
			l.parking.askBack(host, u)
		}
	}
}

// recordResumed records how many deliveries a turn of u made due again. It requests another turn
// for those that are left.
func (l *loop) recordResumed(u *scheduledUser, t turn, got turnResult) {
	for host, asked := range t.resume {
		switch n := got.resumed[host]; {
		case n < asked && !l.ledger.isParking(u.name, host) && !slices.Contains(got.parked, host): // no more are left
			l.parking.removeParked(host, u.name)
			l.ledger.noteParked(host, u.name, false)
		case n == asked && asked > 1:
			l.parking.askBack(host, u.name)
		}
	}
	if l.parking.isAsked(u.name) {
		u.dueBy(t.now.Add(crowdedWait))
	}
}

// resumeHost requests turns in which the deliveries that are parked for a host, or wait for it,
// become due again.
func (l *loop) resumeHost(host string) {
	for u := range l.parking.askAllBack(host) {
		l.requestTurn(u, atOnce)
	}
}

// resumeForAll makes the deliveries to a host due again for every user who waits for a turn,
// because other processes may have postponed these deliveries.
func (l *loop) resumeForAll(host string) {
	for name, u := range l.schedule.users {
		if !u.due.IsZero() {
			l.resumeForUser(host, name)
		}
	}
}

func (l *loop) resumeForUser(host string, u vocab.Username) {
	l.parking.askBack(host, u)
	l.requestTurn(u, atOnce)
}

// probeInactiveHosts requests one delivery for each inactive host that may be probed now.
func (l *loop) probeInactiveHosts(now time.Time) {
	for host, users := range l.parking.parked {
		if h := l.queues.hosts[host]; h == nil || !h.isInactive() || h.isOpen(now) || h.waiting()+h.inflight > 0 {
			continue
		}
		for u := range users { // any user will do
			l.resumeForUser(host, u)
			break
		}
	}
}
