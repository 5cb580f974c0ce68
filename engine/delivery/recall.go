package delivery

import (
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// memories holds everything that the instance database stores about deliveries.
type memories struct {
	hosts  []instance.Host
	parked []instance.Parked
	owing  []instance.Due
	isAll  bool // everything could be read
}

// recall restores the state that was read from the instance database, at the beginning or as
// soon as it can be read.
func (l *loop) recall(m memories, now time.Time) {
	l.hasRecalled, l.hasAll = true, m.isAll
	for _, h := range m.hosts {
		l.recallHost(h, now)
	}
	for _, p := range m.parked {
		l.parking.addParked(p.Host, p.User)
	}
	for host := range l.parking.parked { // the host may be back although not all its parked deliveries were resumed
		if h := l.queues.hosts[host]; h == nil || !h.isInactive() {
			l.resumeHost(host)
		}
	}
	l.recallOwing(m.owing)
}

// recallHost restores the stored state of a host.
func (l *loop) recallHost(stored instance.Host, now time.Time) {
	h := l.queues.host(stored.Host)
	h.breaker = newBreaker(stored)
	if stored.ChangedAt != nil && stored.ChangedAt.After(l.ledger.seen) {
		l.ledger.seen = *stored.ChangedAt
	}
	l.emptyIfOpen(h, now)
	l.queues.list(h)
}

// recallOwing requests an immediate turn for each user in owing, and records the mark that the
// instance database has for the user (see setMark).
func (l *loop) recallOwing(owing []instance.Due) {
	for _, o := range owing {
		l.ledger.setMark(o.User, o.Was)
		l.requestTurn(o.User, atOnce)
	}
}

// recallChanges restores the hosts that other processes have changed, and requests turns for
// users that are due. It also forgets idle hosts, and probes inactive ones.
func (l *loop) recallChanges(changed []instance.Host, owing []instance.Due, now time.Time) {
	for _, h := range changed {
		l.recallHost(h, now)
		if h.InactiveAt == nil && h.PausedAt == nil {
			l.resumeHost(h.Host)
			l.resumeForAll(h.Host)
		}
	}
	for _, h := range l.queues.hosts {
		l.forgetIdle(h, now)
	}
	l.probeInactiveHosts(now)
	l.recallOwing(owing)
}

// takeBatch returns the changes to write to the instance database now.
func (l *loop) takeBatch(now time.Time) batch {
	return l.ledger.takeBatch(now, func(u vocab.Username) *time.Time { return l.markOf(u, now) }, l.storedHost)
}

// markOf returns the time by which a user must have a turn, or nil if the user needs none. While
// this process has a turn to make or deliveries of the user in memory, that time is leaseTime from
// now. If the process is killed, the next serving process gives the user a turn by that time.
func (l *loop) markOf(name vocab.Username, now time.Time) *time.Time {
	at := now.Add(leaseTime)
	switch u := l.schedule.user(name); {
	case u.isRunning || len(l.leases.rows[name]) > 0 || u.place >= 0 && !u.due.After(now):
	case u.due.IsZero():
		return nil
	default:
		at = u.due
	}
	at = at.UTC().Truncate(time.Millisecond)
	return &at
}

func (l *loop) storedHost(name string) instance.Host {
	if h := l.queues.hosts[name]; h != nil {
		return h.storedHost(name)
	}
	return instance.Host{Host: name}
}

// endBatch records which parts of a batch could not be written, and requests turns for users
// whose marks another process has changed.
func (l *loop) endBatch(b, failed batch, marked []instance.Due) {
	if failed.due == nil {
		for _, d := range b.due {
			l.ledger.setMark(d.User, d.At)
		}
	}
	l.ledger.returnBatch(failed)
	l.recallOwing(marked) // another process has marked them, or the reply to an earlier change was lost
}
