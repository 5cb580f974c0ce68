package delivery

import (
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// recountAfter is the time for which the count of a user's open deliveries is considered current.
const recountAfter = 10 * time.Second

// backlog holds the numbers of open deliveries, as the users' turns have counted them.
type backlog struct {
	open    map[vocab.Username][]user.OpenDeliveries
	counted map[vocab.Username]time.Time
}

func newBacklog() backlog {
	return backlog{open: map[vocab.Username][]user.OpenDeliveries{}, counted: map[vocab.Username]time.Time{}}
}

// isOutdated reports whether the next turn of u must count again.
func (b *backlog) isOutdated(u vocab.Username, now time.Time) bool {
	return now.Sub(b.counted[u]) >= recountAfter
}

// record stores how many open deliveries the turn t of u counted. If t did not count, but no
// delivery of u is due now or later, none was claimed and none is in memory, then none is pending,
// and record forgets the count of pending deliveries. The parameter held is the number of
// deliveries of u in memory.
func (b *backlog) record(u vocab.Username, t turn, got turnResult, held int) {
	switch {
	case t.count:
		b.open[u], b.counted[u] = got.open, t.now
	case got.next == nil && len(got.rows) == 0 && len(got.passed) == 0 && held == 0:
		b.open[u] = slices.DeleteFunc(b.open[u], func(o user.OpenDeliveries) bool { return o.Status == user.DeliveryPending })
	}
}

// snapshot is the state of hosts and users at one moment, for the metrics.
type snapshot struct {
	hosts  map[string]int           // the number of hosts by state
	open   map[string]int           // the number of open deliveries by status; nil when no user's database can be read
	oldest map[string]time.Duration // the age of the oldest open delivery by status
}

// takeSnapshot counts hosts and open deliveries. A user whose database cannot be read is not
// counted.
func (l *loop) takeSnapshot(now time.Time) snapshot {
	s := snapshot{hosts: map[string]int{}, oldest: map[string]time.Duration{}}
	for _, h := range l.queues.hosts {
		s.hosts[h.stateName(now)]++
	}
	if len(l.schedule.users) == 0 {
		s.open = map[string]int{}
	}
	for name, u := range l.schedule.users {
		if u.failures > 0 {
			continue
		}
		if s.open == nil {
			s.open = map[string]int{}
		}
		for _, o := range l.backlog.open[name] {
			s.open[o.Status] += o.Count
			s.oldest[o.Status] = max(s.oldest[o.Status], now.Sub(o.Oldest))
		}
	}
	return s
}
