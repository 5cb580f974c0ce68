package socket_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ofUser is the number of sockets that a user may have in these tests.
const ofUser = 100

type runner interface{ Run() int }

// leakless runs the tests. It fails if they leave goroutines.
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

// local stands for the local users, whose host is here.example.
type local struct{}

const here = "https://here.example/users/"

func (local) ID(u vocab.Username) vocab.ID { return vocab.ID(here + u.String()) }

func (local) Owner(id vocab.ID) (vocab.Username, bool) {
	name, isHere := strings.CutPrefix(string(id), here)
	u, err := vocab.ParseUsername(name)
	return u, isHere && err == nil
}

// profiles holds the permissions of users. A user who is not in it has the default permissions.
type profiles struct{ all sync.Map }

func (p *profiles) User(u vocab.Username) registry.User {
	c := registry.DefaultUser()
	if own, ok := p.all.Load(u); ok {
		c.Permissions = own.(registry.Permissions)
	}
	return c
}

// rig is a hub and an emitter with a real database and a real Redis.
type rig struct {
	*testing.T
	redis *redistest.Server
	store *db.Cluster
	keys  *keyspace.Keyspace
	hub   *socket.Hub
	rules profiles
	keep  int
	now   atomic.Int64 // nanoseconds that are added to the real time
	count atomic.Int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, redis: redistest.Start(t), store: dbtest.New(t), keep: 10_000}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	keys, err := keyspace.Open(keyspace.Config{CacheURL: r.redis.URL(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r.keys = keys
	now := func() time.Time { return time.Now().Add(time.Duration(r.now.Load())) }
	emitter := event.NewEmitter(event.Deps{Store: r.store, Users: r.store.Instance.Users, Streams: keys.Events, Keep: r.keep, Memory: 64 << 20, Log: log, Now: now})
	r.hub = socket.NewHub(socket.Deps{Store: r.store, Streams: keys.Events, Tokens: r.store.Instance.Tokens, Local: local{}, Profiles: &r.rules, Log: log, Now: now, OfUser: ofUser})
	r.store.Subscribe(user.Subscriber{Name: "emitter", Committed: emitter.Committed}, user.Subscriber{Name: "sockets", Committed: r.hub.Committed})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { emitter.Run(ctx) })
	all.Go(func() { keys.Watch(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// add commits n events of the user in one transaction.
func (r *rig) add(u vocab.Username, n int) {
	r.Helper()
	err := r.store.Write(r.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		for range n {
			if err := tx.Events.Add(ctx, r.event("create.received")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.Error(err)
	}
}

func (r *rig) event(kind string) user.Event {
	return user.Event{Type: kind, Source: "ap", At: time.Now(), Payload: fmt.Appendf(nil, `{"eventId":"%s","n":%d}`, uuid.Must(uuid.NewV7()), r.count.Add(1))}
}

// numbers returns the numbers of the events in the user's database.
func (r *rig) numbers(u vocab.Username) (all []uint64) {
	r.Helper()
	err := r.store.Read(r.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 100_000)
		for _, e := range events {
			all = append(all, uint64(e.Seq))
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// token returns the id of a new token of the user.
func (r *rig) token(u vocab.Username, expires *time.Time) uuid.UUID {
	r.Helper()
	_, digest := token.New(token.API, u)
	t := instance.Token{ID: uuid.New(), User: u, Scopes: []string{instance.ScopeRead}, CreatedAt: time.Now(), ExpiresAt: expires}
	if err := r.store.Instance.Tokens.Add(r.Context(), t, digest); err != nil {
		r.Fatal(err)
	}
	return t.ID
}

// patience is the longest wait for a frame. A busy machine may need that long.
const patience = 2 * time.Minute

// client is a program that has a socket.
type client struct {
	left atomic.Bool
	*socket.Socket
	r   *rig
	ids []keyspace.ID // the ids of the events that the program received
	was []socket.Frame
}

// open opens a socket and waits for hello. The socket begins after the event with the id after. If
// after is nil, it begins with the next event.
func (r *rig) open(u vocab.Username, after *keyspace.ID) *client {
	r.Helper()
	return r.openAs(socket.Request{User: u, Kind: socket.SSE, After: after})
}

func (r *rig) openAs(q socket.Request) *client {
	r.Helper()
	s, err := r.hub.Open(q)
	if err != nil {
		r.Fatal(err)
	}
	c := &client{Socket: s, r: r}
	r.Cleanup(c.leave)
	c.next()
	return c
}

// leave closes the socket, as a program that hangs up does. Further calls have no effect.
func (c *client) leave() {
	if c.left.CompareAndSwap(false, true) {
		c.Close()
	}
}

// next returns the next frames. It fails the test if none come.
func (c *client) next() []socket.Frame {
	c.r.Helper()
	frames, err := c.Next(c.r.Context(), patience)
	if err != nil || len(frames) == 0 {
		c.r.Fatalf("no frames came: %v", err)
	}
	for _, f := range frames {
		if f.ID != (keyspace.ID{}) {
			c.ids = append(c.ids, f.ID)
		}
	}
	c.was = append(c.was, frames...)
	return frames
}

// await reads frames until the program has received n events.
func (c *client) await(n int) {
	c.r.Helper()
	for len(c.ids) < n {
		c.next()
	}
}

// settle fails the test unless the program has received all events. After settle the socket is
// live.
func (c *client) settle() {
	c.r.Helper()
	if frames, err := c.Next(c.r.Context(), time.Millisecond); len(frames) > 0 || err != nil {
		c.r.Fatalf("more came: %v, %v", frames, err)
	}
}

// wantNumbers fails the test unless the program has received exactly the events with these
// numbers, in order.
func (c *client) wantNumbers(want []uint64) {
	c.r.Helper()
	got := make([]uint64, len(c.ids))
	for n, id := range c.ids {
		got[n] = id.Seq
	}
	if !slices.Equal(got, want) {
		c.r.Errorf("the program got events %v, want %v", got, want)
	}
}

// closing waits until the socket ends. It returns the reason.
func (c *client) closing() error {
	for {
		if frames, err := c.Next(c.r.Context(), patience); err != nil || len(frames) == 0 {
			return err
		}
	}
}
