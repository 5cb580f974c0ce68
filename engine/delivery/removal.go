package delivery

import (
	"maps"
	"slices"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// forgetUser ends the turn of a removed user, and forgets everything about the user. An attempt in
// progress requests another turn when it ends, after which the user is forgotten again.
func (l *loop) forgetUser(u vocab.Username) {
	l.schedule.forgetUser(u)
	l.ledger.forgetUser(u)
	l.parking.forgetUser(u)
	l.backlog.forgetUser(u)
	for id, r := range l.leases.rows[u] {
		if h := l.queues.hosts[r.Host]; h != nil {
			h.removeUser(u)
		}
		l.leases.remove(u, id)
	}
}

// forgetUser ends the turn in progress of a user, and drops requests for another one.
func (s *schedule) forgetUser(u vocab.Username) {
	s.running--
	delete(s.users, u)
}

func (l *ledger) forgetUser(u vocab.Username) {
	delete(l.entries, u)
	delete(l.marks, u)
	delete(l.users, u)
	maps.DeleteFunc(l.parking, func(p instance.Parked, _ bool) bool { return p.User == u })
}

func (p *parking) forgetUser(u vocab.Username) {
	delete(p.asked, u)
	for _, sets := range []map[string]userSet{p.parked, p.waiting} {
		for host, users := range sets {
			if delete(users, u); len(users) == 0 {
				delete(sets, host)
			}
		}
	}
}

func (b *backlog) forgetUser(u vocab.Username) {
	delete(b.open, u)
	delete(b.counted, u)
}

// removeUser removes a user's deliveries from the queue.
func (h *hostQueue) removeUser(u vocab.Username) {
	for _, line := range []*[]*row{&h.fresh, &h.retries, &h.forwarded} {
		*line = slices.DeleteFunc(*line, func(r *row) bool { return r.user == u })
	}
}
