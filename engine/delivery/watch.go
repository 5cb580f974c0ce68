package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	polled  = 2 * time.Second        // how late is noticed what other processes have changed
	flushed = 250 * time.Millisecond // how late is remembered what happened
	soon    = polled + time.Second   // a user who is marked as due by then would be found in vain
)

// ledger is what the instance database remembers of deliveries: who owes any, how the hosts are, and whose are parked.
type ledger interface {
	Owing(ctx context.Context, by time.Time) ([]db.Due, error)
	MarkDue(ctx context.Context, all []db.Due) ([]db.Due, error)
	Hosts(ctx context.Context, troubled bool) ([]db.Host, error)
	HostsChanged(ctx context.Context, since time.Time) ([]db.Host, error)
	SaveHosts(ctx context.Context, all []db.Host, seen time.Time) error
	Parked(ctx context.Context) ([]db.Parked, error)
	MarkParked(ctx context.Context, all []db.Parked, resumed bool) error
}

// begin takes in what is remembered. What cannot be read now is read later, and nothing waits for it.
func (d *Dispatcher) begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	hosts, err := d.ledger.Hosts(ctx, true)
	d.warn(ctx, "hosts not read", err)
	parked, err2 := d.ledger.Parked(ctx)
	d.warn(ctx, "parked deliveries not read", err2)
	owing, err3 := d.ledger.Owing(ctx, time.Time{})
	d.warn(ctx, "users who owe deliveries not read", err3)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = errors.Join(err, err2, err3) == nil
	for _, h := range hosts {
		d.adopt(h)
	}
	for _, p := range parked {
		d.isParked(p.Host, p.User)
	}
	for host := range d.parked { // those of a host that is back were not all resumed
		if h := d.hosts[host]; h == nil || h.inactive.IsZero() {
			d.resume(host)
		}
	}
	d.found(owing)
}

func (d *Dispatcher) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		d.Log.WarnContext(ctx, what, "err", err)
	}
}

// adopt takes in what is remembered of a host. The caller holds mu.
func (d *Dispatcher) adopt(stored db.Host) {
	h := d.host(stored.Host)
	h.health = healthOf(stored)
	if stored.ChangedAt != nil && stored.ChangedAt.After(d.seen) {
		d.seen = *stored.ChangedAt
	}
	d.putOff(h, d.Now())
	d.list(h)
}

// found takes in who owes something. The caller holds mu.
func (d *Dispatcher) found(owing []db.Due) {
	for _, o := range owing {
		u := d.user(o.User)
		u.marked = o.Was
		d.schedule(u, atOnce)
	}
	d.nudge()
}

// watch remembers what happens, and notices what other processes change, until ctx ends.
func (d *Dispatcher) watch(ctx context.Context) {
	defer d.under.Done()
	poll := time.NewTicker(d.poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			d.look(ctx)
		case <-d.news:
			if !wait(ctx, flushed) {
				return
			}
		}
		d.flush(ctx)
	}
}

// look notices what other processes have changed, and for which hosts it is time to find out whether they are back.
func (d *Dispatcher) look(ctx context.Context) {
	d.mu.Lock()
	seen, begun := d.seen, d.begun
	d.mu.Unlock()
	if !begun {
		d.begin(ctx)
	}
	now := d.Now()
	changed, err := d.ledger.HostsChanged(ctx, seen)
	d.warn(ctx, "hosts not read", err)
	owing, err := d.ledger.Owing(ctx, now)
	d.warn(ctx, "users who owe deliveries not read", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range changed {
		d.adopt(h)
		if h.InactiveAt == nil && h.PausedAt == nil {
			d.resume(h.Host)
			d.all(h.Host)
		}
	}
	for _, h := range d.hosts {
		d.drop(h, now)
	}
	for host, users := range d.parked {
		if h := d.hosts[host]; h != nil && !h.inactive.IsZero() && !h.rests(now) && h.waiting()+h.inflight == 0 {
			for u := range users { // any of them
				owner := d.user(u)
				owner.resume[host] = true
				d.schedule(owner, atOnce)
				break
			}
		}
	}
	d.found(owing)
}

// all makes what anybody owes to a host due, whoever it was that put it off. The caller holds mu.
func (d *Dispatcher) all(host string) {
	for _, u := range d.users {
		if !u.due.IsZero() {
			u.resume[host] = true
			d.schedule(u, atOnce)
		}
	}
}

// resume makes what is parked for a host, and what waits for it, due again. The caller holds mu.
func (d *Dispatcher) resume(host string) {
	owners := map[*user]bool{}
	for u := range d.parked[host] {
		owners[d.user(u)] = true
	}
	if h := d.hosts[host]; h != nil {
		maps.Copy(owners, h.waiters)
		h.waiters = nil
	}
	for u := range owners {
		u.resume[host] = true
		d.schedule(u, atOnce)
	}
}

// parks says that a delivery of u to a host is parked. The caller holds mu.
func (d *Dispatcher) parks(host string, u *user) {
	if d.isParked(host, u.name) {
		p := db.Parked{Host: host, User: u.name}
		d.park[p] = true
		delete(d.resumed, p)
		d.tell()
	}
}

func (d *Dispatcher) isParked(host string, u vocab.Username) (news bool) {
	if d.parked[host] == nil {
		d.parked[host] = map[vocab.Username]bool{}
	}
	news = !d.parked[host][u]
	d.parked[host][u] = true
	return news
}

// resumes says that no delivery of u to a host is parked any more. The caller holds mu.
func (d *Dispatcher) resumes(host string, u *user) {
	if delete(d.parked[host], u.name); len(d.parked[host]) == 0 {
		delete(d.parked, host)
	}
	p := db.Parked{Host: host, User: u.name}
	d.resumed[p] = true
	delete(d.park, p)
	d.tell()
}

// remember has it stored how a host is. The caller holds mu.
func (d *Dispatcher) remember(host string) {
	d.changed[host] = true
	d.tell()
}

// remark has it stored by when u is due. The caller holds mu.
func (d *Dispatcher) remark(u *user) {
	d.unmarked[u] = true
	d.tell()
}

func (d *Dispatcher) tell() {
	select {
	case d.news <- struct{}{}:
	default: // it knows
	}
}

// mark returns by when somebody has to look at what u owes: while this process does, in case that it is killed.
func (u *user) mark(now time.Time) *time.Time {
	switch {
	case u.busy || len(u.held) > 0 || u.place >= 0 && !u.due.After(now):
		return pointer(now.Add(deliveryLease).UTC().Truncate(time.Millisecond))
	case u.due.IsZero():
		return nil
	}
	return pointer(u.due.UTC().Truncate(time.Millisecond))
}

// current tells whether what is marked may stay: too early does no harm as long as nobody looks in vain.
func current(marked, mark *time.Time, now time.Time) bool {
	if marked == nil || mark == nil {
		return marked == mark
	}
	return !marked.After(*mark) && (marked.After(now.Add(soon)) || !mark.After(now.Add(soon)))
}

// flush stores what is to be remembered. What cannot be stored now is tried again with what comes next.
func (d *Dispatcher) flush(ctx context.Context) {
	d.mu.Lock()
	now, seen := d.Now(), d.seen
	var due []db.Due
	for u := range d.unmarked {
		if m := u.mark(now); !current(u.marked, m, now) {
			due = append(due, db.Due{User: u.name, At: m, Was: u.marked})
		}
	}
	var hosts []db.Host
	for name := range d.changed {
		stored := db.Host{Host: name}
		if h := d.hosts[name]; h != nil {
			stored = h.stored(name)
		}
		hosts = append(hosts, stored)
	}
	parked, resumed := keys(d.park), keys(d.resumed)
	clear(d.unmarked)
	clear(d.changed)
	clear(d.park)
	clear(d.resumed)
	d.mu.Unlock()

	d.markDue(ctx, due)
	if len(hosts) > 0 {
		if err := d.ledger.SaveHosts(ctx, hosts, seen); err != nil {
			d.warn(ctx, "hosts not remembered", err)
			d.again(func() {
				for _, h := range hosts {
					d.changed[h.Host] = true
				}
			})
		}
	}
	d.markParked(ctx, parked, false, d.park)
	d.markParked(ctx, resumed, true, d.resumed)
}

func (d *Dispatcher) markDue(ctx context.Context, due []db.Due) {
	if len(due) == 0 {
		return
	}
	slices.SortFunc(due, func(a, b db.Due) int { return strings.Compare(a.User.String(), b.User.String()) })
	changed, err := d.ledger.MarkDue(ctx, due)
	d.warn(ctx, "who owes deliveries is not remembered", err)
	d.again(func() {
		for _, m := range due {
			if u := d.users[m.User]; err != nil {
				d.unmarked[u] = true
			} else {
				u.marked = m.At
			}
		}
		d.found(changed) // somebody wants them looked at, or the answer to an earlier change was lost
	})
}

func (d *Dispatcher) markParked(ctx context.Context, all []db.Parked, resumed bool, set map[db.Parked]bool) {
	if len(all) == 0 {
		return
	}
	if err := d.ledger.MarkParked(ctx, all, resumed); err != nil {
		d.warn(ctx, "parked deliveries not remembered", err)
		d.again(func() {
			for _, p := range all {
				set[p] = true
			}
		})
	}
}

// again takes in what became of storing something.
func (d *Dispatcher) again(learn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	learn()
}

func keys(of map[db.Parked]bool) []db.Parked {
	all := make([]db.Parked, 0, len(of))
	for p := range of {
		all = append(all, p)
	}
	return all
}
