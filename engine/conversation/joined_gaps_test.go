package conversation

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// endless is a host whose log has no end. Each page of the log has one message.
type endless struct {
	Hosts
	group *mlstest.Group
	by    *mlstest.Device
	asked int
	broke bool // its answer makes the reader panic
}

func (h *endless) Ask(_ context.Context, q transport.Question) (*transport.Reply, error) {
	h.asked++
	if h.broke {
		panic("an answer that nobody tested")
	}
	u, err := url.Parse(string(q.URL))
	if err != nil {
		return nil, err
	}
	after, err := strconv.Atoi(u.Query().Get("after"))
	if err != nil {
		return nil, err
	}
	body, err := vocab.Marshal(map[string]any{"more": true, "items": []any{
		map[string]any{"seq": after + 1, "epoch": 1, "sender": h.by.Identity, "content": h.group.Message(), "at": time.Now()}}})
	return &transport.Reply{Status: 200, Body: body}, err
}

// here has one user and no keys. It knows no other actors.
type here struct {
	Local
	People
}

// open refuses no actor.
var open = policy.NewGate(func() policy.Lists { return policy.Lists{} }, policy.Open, "us.example")

func (here) ID(vocab.Username) vocab.ID                            { return "https://us.example/users/bob" }
func (here) User(vocab.Username) registry.User                     { return registry.DefaultUser() }
func (here) Owner(vocab.ID) (u vocab.Username, is bool)            { return u, false }
func (here) Keys(vocab.Username) (k transport.Keys, err error)     { return k, nil }
func (here) Known(context.Context, vocab.ID) (*vocab.Actor, error) { return nil, nil }

// behind returns three things: a host, the gaps that fill bob's copy of a conversation of that
// host, and the key of the copy. The host's actor is dora. The copy lacks almost a million
// entries.
func behind(t *testing.T, confirmed bool) (*endless, *gaps, copyKey) {
	t.Helper()
	store, now := dbtest.New(t), time.Now()
	u := dbtest.User(t, store, "bob")
	dora := mlstest.NewDevice("https://peer.example/users/dora", now)
	h := &endless{group: mlstest.NewGroup(dora), by: dora}
	_, h.group = h.group.Commit(dora, mlstest.Change{})
	j := user.JoinedConversation{ID: uuid.New(), URI: vocab.ID(dora.Identity + "/conversations/" + uuid.NewString()), Host: vocab.ID(dora.Identity), GroupID: h.group.ID,
		Epoch: 1, LastSeq: 1_000_000, WholeSeq: 1, Status: user.StatusActive, Confirmed: confirmed}
	if err := store.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error { return tx.Joined.Add(ctx, j, now) }); err != nil {
		t.Fatal(err)
	}
	d := MemberDeps{Store: store, Local: here{}, Hosts: h, Keys: here{}, People: here{}, Gate: open, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	d.Registry = NewRegistry(Deps{Store: store, Actors: nobody{}, Rules: here{}, Log: d.Log, Now: d.Now})
	return h, NewMembers(d).gaps, copyKey{u, j.ID}
}

// The engine reads an endless log only as fast as its rate limit for the host permits. If none of
// the user's devices has joined, it reads only one page.
func TestALogWithoutAnEndIsReadWithinBounds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		confirmed bool
		asked     int
		limited   bool
	}{"joined": {true, policy.LogPages.Rate.Burst, true}, "not joined": {false, 1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, g, of := behind(t, tt.confirmed)
			err := g.fill(of)
			if limited := fault.KindOf(err) == fault.RateLimited; limited != tt.limited || err != nil && !limited {
				t.Errorf("it ends with %v", err)
			}
			if h.asked != tt.asked {
				t.Errorf("the host was asked %d times, want %d", h.asked, tt.asked)
			}
		})
	}
}

// A host's answer makes the reader panic. The copy stays incomplete, and its place is free again.
func TestALogThatMakesTheReaderPanicEndsOnlyItsReading(t *testing.T) {
	t.Parallel()
	h, g, of := behind(t, true)
	h.broke = true
	g.begin(of, "https://peer.example/users/dora")
	g.work.Wait()
	if h.asked != 1 || len(g.running) != 0 || g.places.Used() != 0 || g.asking.Used() != 0 {
		t.Errorf("the host was asked %d times, %d copies are being filled, %d places are taken; want 1, 0 and 0", h.asked, len(g.running), g.places.Used())
	}
}

// PAY-04: entries that the engine reads from a host's log are charged to the budget of the host's
// domain, as deliveries are. If the budget is spent and none of the user's devices has joined, the
// engine reads the other entries only after a device joins.
func TestWhatIsStoredOfLogsIsCharged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		confirmed bool
		kind      fault.Kind
	}{"joined": {true, fault.RateLimited}, "not joined": {false, fault.Internal}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, g, of := behind(t, tt.confirmed)
			one := policy.NewLimiter(policy.Rate{PerSecond: 1e-9, Burst: 1}, g.Now, 10)
			g.unjoined, g.joined = one, one
			var err error
			for range 3 {
				err = g.fill(of)
			}
			if h.asked != 1 || fault.KindOf(err) != tt.kind || (err != nil) != tt.confirmed {
				t.Errorf("the host was asked %d times, and then %v", h.asked, err)
			}
		})
	}
}

// PAY-01: slow hosts of one domain do not occupy all places for reads of logs.
func TestNoDomainHasAllPlacesOfLogsThatAreRead(t *testing.T) {
	t.Parallel()
	h, g, of := behind(t, false)
	for g.asking.Take("slow.example", 1) {
	}
	if err := g.fill(of); err != nil || h.asked != 1 {
		t.Errorf("%v, and the host was asked %d times, want once", err, h.asked)
	}
}

// stuck is a store that does not answer.
type stuck struct{ Store }

func (stuck) Look(ctx context.Context, _ vocab.Username, _ func(context.Context, *user.Tx) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// PAY-01: waiting conversations of one domain use at most three quarters of the places for
// conversations with gaps.
func TestNoDomainHasAllPlacesOfConversationsThatAreBehind(t *testing.T) {
	t.Parallel()
	_, g, of := behind(t, true)
	g.Registry.Store = stuck{}
	for n := range 2 * policy.LogGaps.Pool {
		g.begin(copyKey{of.user, uuid.New()}, vocab.ID(fmt.Sprintf("https://s%d.slow.example/users/mallory", n)))
	}
	g.begin(of, "https://peer.example/users/dora")
	g.mu.Lock()
	slow := len(g.running) - 1
	_, begun := g.running[of]
	g.mu.Unlock()
	if !begun || slow > int(policy.LogGaps.Pool)*3/4 {
		t.Errorf("%d conversations of one domain are filled, and that of another one: %v", slow, begun)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := g.places.Used(); left != 0 || len(g.running) != 0 {
		t.Errorf("%d places are held of conversations that nobody fills", left)
	}
}

// MOD-02: a message of a log is marked if the operator refuses its sender, and no event tells of
// it.
func TestWhatARefusedActorSaidIsMarkedInALog(t *testing.T) {
	t.Parallel()
	h, g, of := behind(t, true)
	g.Gate = policy.NewGate(func() policy.Lists { return policy.Lists{Suspended: []vocab.ID{vocab.ID(h.by.Identity)}} }, policy.Open, "us.example")
	if _, err := g.fillPage(of); err != nil {
		t.Fatal(err)
	}
	var marked, told int
	d := dbtest.SQL(t, g.Store.(*db.Cluster), of.user)
	if err := d.QueryRow(`SELECT (SELECT count(*) FROM mls_inbox WHERE blocked), (SELECT count(*) FROM event_outbox)`).Scan(&marked, &told); err != nil {
		t.Fatal(err)
	}
	if marked != 1 || told != 0 {
		t.Errorf("%d messages are marked and %d events tell of them, want 1 and 0", marked, told)
	}
}
