package event_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

type runner interface{ Run() int }

// leakless runs a package's tests, and fails if goroutines are left after them.
type leakless struct{ runner }

func (l leakless) Run() int {
	code := l.runner.Run()
	if err := goleak.Find(goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener")); err != nil && code == 0 {
		fmt.Println(err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) { dbtest.Main(leakless{m}) }

// rig is an emitter with a real database and a real Redis.
type rig struct {
	t      *testing.T
	redis  *redistest.Server
	store  *db.Cluster
	keys   *keyspace.Keyspace
	now    atomic.Int64 // nanoseconds by which the emitter's clock is ahead
	keep   int
	emits  *event.Emitter
	stop   func()
	events map[vocab.Username]int // number of added events, by user
	users  event.Users
	over   event.Store   // the emitter's store; nil: the field store
	limit  time.Duration // the longest wait for a database; 0: the default
	log    logged
	counts *prometheus.Registry // the metrics of the running emitter

	mu      sync.Mutex
	commits []user.Commit // commits that the emitter has not been notified of
}

func newRig(t *testing.T, args ...string) *rig {
	t.Helper()
	r := &rig{t: t, redis: redistest.Start(t, args...), store: dbtest.New(t), keep: 10_000, events: map[vocab.Username]int{}}
	r.users = r.store.Instance.Users
	r.store.Subscribe(user.Subscriber{Name: "rig", Committed: func(_ context.Context, c user.Commit) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.commits = append(r.commits, c)
	}})
	r.reach(r.redis.URL())
	return r
}

// reach opens the Redis at a URL for the rig.
func (r *rig) reach(url string) { r.t.Helper(); r.open(keyspace.Config{CacheURL: url}) }

func (r *rig) open(c keyspace.Config) {
	r.t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	keys, err := keyspace.Open(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.keys = keys
	r.t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			r.t.Error(err)
		}
	})
}

// start runs an emitter, as a serving process does. The emitter ends when stop is called or the
// test ends.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	over := event.Store(r.store)
	if r.over != nil {
		over = r.over
	}
	r.counts = prometheus.NewRegistry()
	r.emits = event.NewEmitter(event.Deps{Store: over, Users: r.users, Streams: r.keys.Events, Keep: r.keep, Memory: 64 << 20, Metrics: r.counts,
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(r.t.Output(), &r.log), nil)), Now: func() time.Time { return time.Now().Add(time.Duration(r.now.Load())) }})
	if r.limit > 0 {
		r.emits.LimitTransactions(r.limit)
	}
	var all sync.WaitGroup
	all.Go(func() { r.emits.Run(ctx) })
	all.Go(func() { r.keys.Watch(ctx) })
	r.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	r.t.Cleanup(r.stop)
}

// add commits n events of the user. If an emitter runs, add notifies it of the commit. The
// payloads are formatted as PostgreSQL formats JSON.
func (r *rig) add(u vocab.Username, n int) {
	r.t.Helper()
	var added []user.Event
	for range n {
		r.events[u]++
		added = append(added, user.Event{Type: "create.received", Source: "ap", At: time.Now(),
			Payload: fmt.Appendf(nil, `{"n": %d, "user": "%s", "eventId": "%s"}`, r.events[u], u, uuid.Must(uuid.NewV7()))})
	}
	r.commit(u, added...)
}

func (r *rig) commit(u vocab.Username, added ...user.Event) {
	r.t.Helper()
	err := r.store.Write(r.t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		for _, e := range added {
			if err := tx.Events.Add(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range r.takeCommits() {
		if r.emits != nil {
			r.emits.Committed(r.t.Context(), c)
		}
	}
}

func (r *rig) takeCommits() []user.Commit {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.commits
	r.commits = nil
	return all
}

// rows returns the entries that the user's stream should have. They are the events in the user's
// database.
func (r *rig) rows(u vocab.Username) (all []string) {
	r.t.Helper()
	err := r.store.Read(r.t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 100_000)
		for _, e := range events {
			all = append(all, fmt.Sprintf("%d-%d %s %s", e.Milli, e.Seq, e.Type, e.Payload))
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// stream returns the entries that the user's stream does have.
func (r *rig) stream(u vocab.Username) (all []string) {
	entries, err := r.keys.Events.Of(u).Range(r.t.Context(), event.Stream, keyspace.ID{}, 100_000)
	if err != nil {
		return nil // Redis does not answer
	}
	for _, e := range entries {
		all = append(all, fmt.Sprintf("%s %s %s", e.ID, e.Field("type"), e.Field("payload")))
	}
	return all
}

// emitted returns a rig with a running emitter, and the user alice. The emitter has emitted n of
// alice's events.
func emitted(t *testing.T, n int) (*rig, vocab.Username) {
	t.Helper()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	r.start()
	r.add(alice, n)
	r.wantSame(alice)
	return r, alice
}

// wantSame waits until the user's stream has the same events as the user's database.
func (r *rig) wantSame(u vocab.Username) {
	r.t.Helper()
	limit := time.After(20 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		rows, stream := r.rows(u), r.stream(u)
		if strings.Join(rows, "\n") == strings.Join(stream, "\n") {
			return
		}
		select {
		case <-limit:
			r.t.Fatalf("the stream of %s holds %d entries:\n%s\nwant %d:\n%s", u, len(stream), strings.Join(stream, "\n"), len(rows), strings.Join(rows, "\n"))
		case <-tick.C:
		}
	}
}

// setBack deletes the last three of a user's five events from the database. A failover that loses
// the last commits has this effect.
func (r *rig) setBack(u vocab.Username) {
	r.t.Helper()
	r.sql(u, `DELETE FROM event_outbox WHERE seq > 2`)
	r.sql(u, `ALTER SEQUENCE event_outbox_seq_seq RESTART WITH 3`)
}

func (r *rig) sql(u vocab.Username, statement string) {
	r.t.Helper()
	exec(r.t, dbtest.SQL(r.t, r.store, u), statement)
}

func exec(t *testing.T, d *sql.DB, statement string) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestEventsAreEmittedInTheirOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "bob")
	r.add(alice, 3) // no emitter runs yet
	r.start()
	r.wantSame(alice)
	for range 20 {
		r.add(alice, 1)
		r.add(bob, 2)
	}
	r.wantSame(alice)
	r.wantSame(bob)
	entries, err := r.keys.Events.Of(bob).NewestBefore(t.Context(), event.Stream, keyspace.ID{}, 1)
	if err != nil || len(entries) != 1 || entries[0].Field("source") != "ap" {
		t.Fatalf("the newest entry: %v, %v", entries, err)
	}
	if _, err := time.Parse(time.RFC3339Nano, entries[0].Field("timestamp")); err != nil || !strings.HasSuffix(entries[0].Field("timestamp"), "Z") {
		t.Errorf("timestamp %q", entries[0].Field("timestamp"))
	}
}

// The emitter emits the events of a commit without reading the database. It may be notified of
// events twice, late or in another order. It emits each event once, and in the order of the
// numbers.
func TestWhatIsToldIsEmitted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	r.add(alice, 6)
	r.start()
	r.wantSame(alice)
	quiet := r.emits
	r.emits = nil
	r.add(alice, 3)
	r.emits = quiet
	var all []user.Event
	if err := r.store.Read(t.Context(), alice, func(ctx context.Context, tx *user.Tx) (err error) {
		all, err = tx.Events.List(ctx, 0, 100)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r.emits.Committed(r.t.Context(), user.Commit{User: alice, Events: all[8:9]})
	r.emits.Committed(r.t.Context(), user.Commit{User: alice, Events: all[2:4]})
	r.emits.Committed(r.t.Context(), user.Commit{User: alice, Events: all[6:8]})
	r.wantSame(alice)
}

func TestStreamsAreContinued(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		meet func(r *rig, alice vocab.Username)
	}{
		{"after another process", func(r *rig, alice vocab.Username) {
			r.stop()
			r.emits = nil
			r.add(alice, 5)
			r.start()
		}},
		{"after a number that was never given", func(r *rig, alice vocab.Username) {
			r.sql(alice, `SELECT nextval('event_outbox_seq_seq')`)
			r.add(alice, 1)
		}},
		{"after Redis was emptied", func(r *rig, alice vocab.Username) {
			r.redis.Do("FLUSHALL")
			r.add(alice, 1)
		}},
		{"after Redis was emptied, without another event", func(r *rig, _ vocab.Username) { r.redis.Do("FLUSHALL") }},
		{"after Redis forgot its scripts", func(r *rig, alice vocab.Username) {
			r.redis.Do("SCRIPT", "FLUSH")
			r.add(alice, 1)
		}},
		{"after Redis lost all", func(r *rig, alice vocab.Username) {
			r.redis.Kill()
			r.add(alice, 4)
			r.redis.Restart()
		}},
		{"after Redis lost the last ones", func(r *rig, alice vocab.Username) {
			r.redis.Do("SAVE")
			r.add(alice, 4)
			r.wantSame(alice)
			r.redis.Kill()
			r.add(alice, 2)
			r.redis.Restart()
		}},
		{"after Redis lost the last ones, without another event", func(r *rig, alice vocab.Username) {
			r.redis.Do("SAVE")
			r.add(alice, 4)
			r.wantSame(alice)
			r.redis.Kill()
			r.redis.Restart()
		}},
		{"after Redis hung", func(r *rig, alice vocab.Username) {
			r.redis.Pause()
			for range 5 {
				r.add(alice, 1)
			}
			redistest.Eventually(r.t, "Redis counts as away", func() bool { return !r.keys.Events.IsUp() })
			r.redis.Resume()
		}},
		{"after the clock stepped back", func(r *rig, alice vocab.Username) {
			r.commit(alice, user.Event{Type: "x.sent", Source: "ap", Payload: []byte(`{}`), At: time.Now().Add(-time.Hour)})
			r.add(alice, 1)
		}},
		{"after the stream saw a later time", func(r *rig, alice vocab.Username) {
			r.sql(alice, `UPDATE event_outbox SET ms = 1000`)
			r.commit(alice, user.Event{Type: "x.sent", Source: "ap", Payload: []byte(`{}`), At: time.Unix(2, 0)})
			redistest.Eventually(r.t, "the event is emitted", func() bool { return strings.Contains(strings.Join(r.stream(alice), "\n"), "x.sent") })
			r.redis.Do("FLUSHALL") // the stream then gets the ids that the database has
		}},
		{"after the database's server was set back", func(r *rig, alice vocab.Username) {
			r.setBack(alice)
			r.add(alice, 1)
		}},
		{"after the database's server was set back, and one commit led past the stream", func(r *rig, alice vocab.Username) {
			r.setBack(alice)
			r.add(alice, 9)
		}},
		{"after the database's server was set back, and more happened than is told", func(r *rig, alice vocab.Username) {
			r.setBack(alice)
			r.add(alice, 300)
		}},
		{"after the database's server and the clock were set back", func(r *rig, alice vocab.Username) {
			r.setBack(alice)
			r.sql(alice, `UPDATE event_outbox SET ms = ms - 10`)
			for range 3 {
				r.commit(alice, user.Event{Type: "x.sent", Source: "ap", Payload: []byte(`{}`), At: time.Now().Add(-time.Hour)})
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, alice := emitted(t, 5)
			tt.meet(r, alice)
			r.wantSame(alice)
			r.add(alice, 1)
			r.wantSame(alice)
		})
	}
}

// After a restore, the database assigns numbers far above those in the stream. The stream keeps
// the events that readers have already read.
func TestAStreamIsContinuedAfterARestore(t *testing.T) {
	t.Parallel()
	r, alice := emitted(t, 5)
	seen := r.stream(alice)
	r.stop()
	r.sql(alice, `DELETE FROM event_outbox WHERE seq > 2`)
	r.sql(alice, `SELECT setval('event_outbox_seq_seq', 1000000002)`)
	r.start()
	if err := r.emits.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.add(alice, 2)
	redistest.Eventually(t, "new events are emitted", func() bool { return len(r.stream(alice)) == 7 })
	if now := r.stream(alice); strings.Join(now[:5], "\n") != strings.Join(seen, "\n") || !strings.Contains(now[5], "-1000000003 ") {
		t.Errorf("the stream is\n%s\nwas\n%s", strings.Join(now, "\n"), strings.Join(seen, "\n"))
	}
}

func TestAFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	url, primary, _ := redistest.Sentinel(t)
	r.reach(url)
	alice := dbtest.User(t, r.store, "alice")
	r.start()
	r.add(alice, 5)
	r.wantSame(alice)
	primary.Kill()
	for range 5 {
		r.add(alice, 1)
	}
	r.wantSame(alice)
}

func TestEventsStayUntilTheyAreEmitted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.keep = 500
	alice := dbtest.User(t, r.store, "alice")
	r.start()
	r.redis.Kill()
	for range 11 {
		r.add(alice, 250)
		r.tell(alice)
	}
	if n := len(r.rows(alice)); n != 2750 {
		t.Errorf("%d events are left while Redis is away, want 2750", n)
	}
	r.redis.Restart()
	redistest.Eventually(t, "all are emitted", func() bool { s := r.stream(alice); return len(s) > 0 && strings.Contains(s[len(s)-1], `"n": 2750`) })
	for range 2 {
		r.add(alice, 250)
		r.tell(alice)
	}
	redistest.Eventually(t, "old events are dropped", func() bool { return len(r.rows(alice)) <= 750 })
}

// tell notifies the emitter of the user's newest event.
func (r *rig) tell(u vocab.Username) {
	r.t.Helper()
	var newest []user.Event
	if err := r.store.Read(r.t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 100_000)
		newest = events[len(events)-1:]
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	r.emits.Committed(r.t.Context(), user.Commit{User: u, Events: newest})
}

func TestWithheldEventsAreToldOnceWithTheirWholeCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	r.start()
	for range 3 {
		if err := r.store.Write(t.Context(), alice, func(ctx context.Context, tx *user.Tx) error {
			tx.Events.Withhold(user.Event{Type: "events.withheld", Source: "ap", Payload: []byte(`{"count": 1, "eventId": "w"}`), At: time.Now()})
			return tx.Events.Add(ctx, user.Event{Type: "create.received", Source: "ap", Payload: []byte(`{}`), At: time.Now()})
		}); err != nil {
			t.Fatal(err)
		}
		r.emits.Committed(r.t.Context(), user.Commit{User: alice, Unknown: true})
	}
	redistest.Eventually(t, "the others are emitted", func() bool { return len(r.stream(alice)) == 3 })
	if all := strings.Join(r.stream(alice), "\n"); strings.Contains(all, "withheld") {
		t.Errorf("the stream tells what is still counted:\n%s", all)
	}
	r.now.Store(int64(61 * time.Minute))
	redistest.Eventually(t, "the count is emitted", func() bool {
		all := strings.Join(r.stream(alice), "\n")
		return strings.Count(all, "events.withheld") == 1 && strings.Contains(all, `"count": 3`)
	})
	r.wantSame(alice)
}
