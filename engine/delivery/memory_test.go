package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// memory is one user's queue in memory. It behaves as the database does, with the test's clock.
type memory struct {
	mu     sync.Mutex
	owner  vocab.Username
	rows   []*remembered
	turns  int
	fail   error // if set, every turn returns this error
	unsure int   // number of turns that commit and then return an error
	gone   bool  // whether the user is removed

	nobody bool // whether the list of users is empty

	away   error            // if set, the instance database returns this error
	lost   error            // MarkDue returns this error after it has succeeded
	others []vocab.Username // further users, without deliveries
	hosts  map[string]instance.Host
	due    *time.Time // the time in the instance database at which the user has due deliveries
	parked map[instance.Parked]bool
}

// ListDue implements Due.
func (m *memory) ListDue(_ context.Context, by time.Time) ([]instance.Due, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.due == nil || !by.IsZero() && m.due.After(by) {
		return nil, nil
	}
	return []instance.Due{{User: m.owner, At: m.due, Was: m.due}}, nil
}

// MarkDue implements Due.
func (m *memory) MarkDue(_ context.Context, all []instance.Due) ([]instance.Due, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range all {
		if (d.Was == nil) != (m.due == nil) || d.Was != nil && !d.Was.Equal(*m.due) {
			return []instance.Due{{User: m.owner, At: m.due, Was: m.due}}, nil
		}
		m.due = d.At
	}
	return nil, m.lost
}

// List implements Hosts.
func (m *memory) List(context.Context, bool) ([]instance.Host, error) {
	return m.known(func(instance.Host) bool { return true })
}

// ListChanged implements Hosts. Only tests set the time at which a host was changed.
func (m *memory) ListChanged(_ context.Context, since time.Time) ([]instance.Host, error) {
	return m.known(func(h instance.Host) bool { return h.ChangedAt != nil && h.ChangedAt.After(since) })
}

func (m *memory) known(which func(instance.Host) bool) (all []instance.Host, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.hosts {
		if which(h) {
			all = append(all, h)
		}
	}
	return all, m.away
}

// Save implements Hosts.
func (m *memory) Save(_ context.Context, all []instance.Host, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range all {
		before := m.hosts[h.Host]
		h.PausedAt, h.ChangedAt = before.PausedAt, before.ChangedAt
		m.hosts[h.Host] = h
	}
	return nil
}

// ListParked implements Due.
func (m *memory) ListParked(context.Context) (all []instance.Parked, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return nil, m.away
	}
	for p := range m.parked {
		all = append(all, p)
	}
	return all, nil
}

// MarkParked implements Due.
func (m *memory) MarkParked(_ context.Context, all []instance.Parked, resumed bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range all {
		if m.parked[p] = true; resumed {
			delete(m.parked, p)
		}
	}
	return nil
}

type remembered struct {
	user.Delivery
	status string
	next   time.Time
	leased bool
	last   user.Outcome
}

// add adds n deliveries to a host. Each has had a number of attempts. add returns the index of the
// first delivery.
func (m *memory) add(kind, host string, n, attempts int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, place := time.Now(), len(m.rows)
	for range n {
		id := int64(len(m.rows) + 1)
		inbox := vocab.ID("https://" + host + "/inbox")
		if host == "" {
			inbox = "https://here.example/users/bob/inbox"
		}
		r := &remembered{Delivery: user.Delivery{ID: id, Job: uuid.New(), Body: []byte("{}"), Type: kind, Activity: "https://here.example/a", Host: host, Inbox: inbox,
			Targets: []vocab.ID{"https://" + vocab.ID(host) + "/u"}, Created: now, Attempts: attempts}, status: user.DeliveryPending, next: now}
		m.rows = append(m.rows, r)
	}
	return place
}

func (m *memory) row(place int) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.rows[place]
}

func (m *memory) breakWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *memory) runTurn(_ context.Context, _ vocab.Username, t turn) (turnResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns++
	if m.fail != nil {
		return turnResult{}, m.fail
	}
	if t.takeOver {
		m.takeOver(t.now)
	}
	if t.recovers {
		m.recoverLeases(t)
	}
	m.write(t.entries)
	got := turnResult{resumed: map[string]int{}}
	for host, n := range t.resume {
		for _, r := range m.rows {
			if waits := r.status == user.DeliveryParked || n > 1 && r.status == user.DeliveryPending && r.next.After(t.now); waits && !r.leased && r.Host == host && got.resumed[host] < n {
				r.status, r.next = user.DeliveryPending, t.now
				got.resumed[host]++
			}
		}
	}
	got.parked = m.stillParked(t, got.resumed)
	var next *time.Time
	left := map[bool]int{false: t.claim.Most, true: t.claim.Forwarded}
	for _, r := range m.rows {
		switch due := r.status == user.DeliveryPending && !r.next.After(t.now); {
		case due && (slices.Contains(t.claim.Except, r.Host) || slices.Contains(t.claim.Except, "*."+policy.RegistrableDomain(r.Host)) || r.Forwarded && slices.Contains(t.claim.Crowded, r.Host)):
			got.passed = append(got.passed, r.Host)
		case due && left[r.Forwarded] > 0 && t.claim.Most > 0 && (r.Host == "" || !t.claim.Local):
			left[r.Forwarded]--
			r.next, r.leased = t.now.Add(leaseTime), true
			got.rows = append(got.rows, r.Delivery)
		}
		if r.status == user.DeliveryPending && r.next.After(t.now) && (next == nil || r.next.Before(*next)) {
			next = &r.next
		}
	}
	if next != nil {
		at := *next
		got.next = &at
	}
	if m.unsure > 0 {
		m.unsure--
		return turnResult{}, errors.New("the connection was lost during the commit")
	}
	return got, nil
}

func (m *memory) write(all []entry) {
	for _, e := range all {
		r := m.rows[e.delivery.ID-1]
		r.last, r.status, r.leased = e.outcome, e.outcome.Status, false
		r.next = e.outcome.NextAt
		if e.outcome.Inbox != "" {
			r.Inbox, r.Host = e.outcome.Inbox, e.outcome.Inbox.Host()
		}
		if e.outcome.Spent {
			r.Attempts++
		}
	}
}

func (m *memory) recoverLeases(t turn) {
	for _, r := range m.rows {
		if r.leased && r.status == user.DeliveryPending && !r.next.After(t.now.Add(leaseTime-settleTime)) && !slices.Contains(t.held, r.ID) {
			r.leased, r.next = false, t.now
		}
	}
}

func (m *memory) takeOver(now time.Time) {
	for _, r := range m.rows {
		if r.leased && r.status == user.DeliveryPending {
			r.leased, r.next = false, now
		}
	}
}

func (m *memory) release(_ context.Context, _ vocab.Username, all []entry, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.write(all)
	m.takeOver(now)
	return nil
}

func (m *memory) owingUsers(context.Context) ([]vocab.Username, error) {
	if m.nobody {
		return nil, nil
	}
	return append([]vocab.Username{m.owner}, m.others...), nil
}

// taken returns the number of turns that were taken so far.
func (m *memory) taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turns
}

// host returns the stored state of a host.
func (m *memory) host(name string) instance.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hosts[name]
}

func (m *memory) count(which func(*remembered) bool) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		if which(r) {
			n++
		}
	}
	return n
}

func (m *memory) in(status string) int {
	return m.count(func(r *remembered) bool { return r.status == status })
}

// peers records all posts. The function answer gives the result of each post.
type peers struct {
	answer func(ctx context.Context, p transport.Post) (transport.Attempt, error)

	mu    sync.Mutex
	posts []post
}

type post struct {
	host string
	at   time.Time
}

func (p *peers) Post(ctx context.Context, x transport.Post) (transport.Attempt, error) {
	p.mu.Lock()
	p.posts = append(p.posts, post{x.Inbox.Host(), time.Now()})
	p.mu.Unlock()
	return p.answer(ctx, x)
}

func (p *peers) count(host string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.posts {
		if x.host == host {
			n++
		}
	}
	return n
}

func (p *peers) all() []post {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.posts)
}

func status(code int) func(context.Context, transport.Post) (transport.Attempt, error) {
	return func(context.Context, transport.Post) (transport.Attempt, error) {
		return transport.Attempt{Status: code}, nil
	}
}

// deps implements the dispatcher's other dependencies. They return the errors that a test sets.
type deps struct {
	keys, local, gate atomic.Pointer[error]
	known             atomic.Pointer[vocab.Actor]
	suspended         atomic.Pointer[vocab.ID]
	hangs             atomic.Bool // Deliver does not return before its context ends
}

func fail(p *atomic.Pointer[error]) error {
	if err := p.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *deps) Instance() (transport.Keys, error) { return d.Keys(vocab.Username{}) }

func (d *deps) Keys(vocab.Username) (transport.Keys, error) {
	return transport.Keys{}, fail(&d.keys)
}
func (d *deps) Check(string) error { return fail(&d.gate) }
func (d *deps) CheckActor(id vocab.ID) error {
	if s := d.suspended.Load(); s != nil && id == *s {
		return fault.New(fault.Forbidden, "suspended")
	}
	return nil
}
func (d *deps) Deliver(ctx context.Context, _, _ vocab.Username, _ []byte) error {
	if d.hangs.Load() {
		<-ctx.Done()
		return fault.Wrap(fault.Busy, "time ran out", ctx.Err())
	}
	return fail(&d.local)
}
func (d *deps) Known(context.Context, vocab.ID) (*vocab.Actor, error) { return d.known.Load(), nil }
func (d *deps) Fresh(context.Context, vocab.ID) (*vocab.Actor, error) {
	if a := d.known.Load(); a != nil {
		return a, nil
	}
	return nil, fault.New(fault.Unavailable, "nobody answers")
}

// bench is a dispatcher that runs on the fake clock of a synctest bubble.
type bench struct {
	*Dispatcher
	m     *memory
	peers *peers
	deps  *deps
	stop  func() // stops Run and waits until Run has ended
	ended error  // the result of Run
}

var lastingTypes = []string{"Delete", "Move", "Undo"}

var alice = func() vocab.Username {
	u, err := vocab.ParseUsername("alice")
	if err != nil {
		panic(err)
	}
	return u
}()

func newBench(t *testing.T, answer func(context.Context, transport.Post) (transport.Attempt, error)) *bench {
	t.Helper()
	b := &bench{m: &memory{owner: alice, hosts: map[string]instance.Host{}, parked: map[instance.Parked]bool{}}, peers: &peers{answer: answer}, deps: &deps{}}
	b.Dispatcher = New(Deps{Lasting: lastingTypes, Poster: b.peers, Keys: b.deps, Actors: b.deps, Gate: b.deps, Local: b.deps, Owner: "me",
		InboxOwner: func(id vocab.ID) (vocab.Username, bool) { return alice, id.Host() == "here.example" },
		Drain:      20 * time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	b.users, b.Hosts, b.Due = b.m, b.m, b.m
	b.poll = time.Minute // as long as this, because tests simulate weeks
	return b
}

// wake notifies the dispatcher that a user has new deliveries.
func (b *bench) wake(u vocab.Username) {
	b.Committed(context.Background(), user.Commit{User: u, Owes: true})
}

// look calls f() with the state of the running dispatcher.
func (b *bench) look(f func(l *loop)) {
	ask(b.mail, func() bool { f(b.loop); return true })
}

func (b *bench) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if b.ended = b.Run(ctx); b.ended != nil && fault.KindOf(b.ended) != fault.Busy { // Busy: the test ended during an attempt
			t.Error(b.ended)
		}
	}()
	b.stop = func() { cancel(); <-done }
	t.Cleanup(b.stop)
	synctest.Wait()
}
