package delivery

import (
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// awaitHost remembers that deliveries of u wait for a host whose breaker is open.
func (l *loop) awaitHost(host string, u vocab.Username, now time.Time) {
	if h := l.queues.hosts[host]; h != nil && h.isOpen(now) {
		l.parking.addWaiting(host, u)
	}
}

// planResume returns how many deliveries of u come back in its turn, by host: of those to an
// inactive host one that probes it, of others as many as there is room for.
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
		case h != nil && h.isOpen(now): // they are asked back when the breaker closes
			l.parking.addWaiting(host, u)
		default:
			plan[host] = resumeBatch
		}
	}
	return plan
}

// recordResumed takes in how many deliveries came back in a turn of u.
func (l *loop) recordResumed(u *scheduledUser, t turn, got turnResult) {
	for host, asked := range t.resume {
		switch n := got.resumed[host]; {
		case n < asked && !l.ledger.isParking(u.name, host): // they were the last
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

// resumeHost asks back the deliveries that are parked for a host, and those that wait for it.
func (l *loop) resumeHost(host string) {
	for u := range l.parking.askAllBack(host) {
		l.requestTurn(u, atOnce)
	}
}

// resumeForAll asks back the deliveries to a host of every user who has a turn to come: other
// processes may have postponed them.
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

// probeInactiveHosts asks back one delivery to each inactive host that may be probed now.
func (l *loop) probeInactiveHosts(now time.Time) {
	for host, users := range l.parking.parked {
		if h := l.queues.hosts[host]; h == nil || !h.isInactive() || h.isOpen(now) || h.waiting()+h.inflight > 0 {
			continue
		}
		for u := range users { // any of them
			l.resumeForUser(host, u)
			break
		}
	}
}
