package delivery

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// soon is the time before a mark at which the mark is corrected if it is too early. A mark is the
// time by which a user is due, as the instance database has it. Without the correction, a process
// that looks for due users would find the user without need.
const soon = ledgerPoll + time.Second

// ledger holds all changes that must be written. A user's next turn writes the outcomes of that
// user's deliveries. The next batch writes the changes of users, hosts and parking to the instance
// database.
type ledger struct {
	entries map[vocab.Username][]entry
	marks   map[vocab.Username]*time.Time // the times by which users are due, as the instance database has them

	// The next batch contains the changes in these fields.
	users   userSet                  // users whose marks are to be written
	hosts   map[string]bool          // hosts whose breakers are to be written
	parking map[instance.Parked]bool // the value says whether the user has parked deliveries to the host

	news chan struct{} // signals that the next batch has something to write
	seen time.Time     // the time at which the operator made the newest change that this process has read
}

// entry is a delivery with its outcome, and with the targets of the delivery that are gone for
// good.
type entry struct {
	delivery user.Delivery
	outcome  user.Outcome
	gone     []vocab.ID
}

// batch holds the changes that are written to the instance database together.
type batch struct {
	due             []instance.Due
	hosts           []instance.Host
	parked, resumed []instance.Parked
	seen            time.Time
}

func newLedger() ledger {
	return ledger{entries: map[vocab.Username][]entry{}, marks: map[vocab.Username]*time.Time{}, users: userSet{},
		hosts: map[string]bool{}, parking: map[instance.Parked]bool{}, news: make(chan struct{}, 1)}
}

func (l *ledger) addEntry(u vocab.Username, e entry) { l.entries[u] = append(l.entries[u], e) }

// takeEntries returns the entries that a turn of u has to write.
func (l *ledger) takeEntries(u vocab.Username) []entry {
	all := l.entries[u]
	delete(l.entries, u)
	return all
}

// returnEntries puts back the entries that a turn of u could not write, in front of those that
// were added since.
func (l *ledger) returnEntries(u vocab.Username, all []entry) {
	if len(all) > 0 {
		l.entries[u] = append(all, l.entries[u]...)
	}
}

// isParking reports whether the next turn of u will park a delivery to a host.
func (l *ledger) isParking(u vocab.Username, host string) bool {
	return slices.ContainsFunc(l.entries[u], func(e entry) bool {
		return e.outcome.Status == user.DeliveryParked && e.delivery.Host == host
	})
}

func (l *ledger) noteHost(name string) {
	l.hosts[name] = true
	l.announceNews()
}

func (l *ledger) noteUser(name vocab.Username) {
	l.users[name] = true
	l.announceNews()
}

func (l *ledger) noteParked(host string, u vocab.Username, isParked bool) {
	l.parking[instance.Parked{Host: host, User: u}] = isParked
	l.announceNews()
}

func (l *ledger) announceNews() {
	select {
	case l.news <- struct{}{}:
	default: // a signal is pending already
	}
}

// takeBatch returns the changes to write now. The function mark returns the time by which a
// user is due, and the function host returns the state of a host in the form that is stored.
func (l *ledger) takeBatch(now time.Time, mark func(vocab.Username) *time.Time, host func(string) instance.Host) batch {
	b := batch{seen: l.seen}
	for u := range l.users {
		if at := mark(u); !mayStay(l.marks[u], at, now) {
			b.due = append(b.due, instance.Due{User: u, At: at, Was: l.marks[u]})
		}
	}
	slices.SortFunc(b.due, func(a, b instance.Due) int { return strings.Compare(a.User.String(), b.User.String()) })
	for name := range l.hosts {
		b.hosts = append(b.hosts, host(name))
	}
	for p, isParked := range l.parking {
		if isParked {
			b.parked = append(b.parked, p)
		} else {
			b.resumed = append(b.resumed, p)
		}
	}
	clear(l.users)
	clear(l.hosts)
	clear(l.parking)
	return b
}

// mayStay reports whether the instance database may keep the mark in the parameter marked,
// although the right mark is now the one in the parameter mark. A mark that is too early may stay
// until it is so near that a process would look for the user without need.
func mayStay(marked, mark *time.Time, now time.Time) bool {
	if marked == nil || mark == nil {
		return marked == mark
	}
	return !marked.After(*mark) && (marked.After(now.Add(soon)) || !mark.After(now.Add(soon)))
}

// setMark records that the time "at" is the mark of u in the instance database, or that u has none
// if at is nil.
func (l *ledger) setMark(u vocab.Username, at *time.Time) {
	if l.marks[u] = at; at == nil {
		delete(l.marks, u)
	}
}

// returnBatch adds the changes of b, which could not be written, to the next batch. Newer changes
// take precedence.
func (l *ledger) returnBatch(b batch) {
	for _, d := range b.due {
		l.users[d.User] = true
	}
	for _, h := range b.hosts {
		l.hosts[h.Host] = true
	}
	later := maps.Clone(l.parking)
	for _, p := range b.parked {
		l.parking[p] = true
	}
	for _, p := range b.resumed {
		l.parking[p] = false
	}
	maps.Copy(l.parking, later)
}
