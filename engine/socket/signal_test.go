package socket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// friends makes the users alice and bob. They follow each other.
func (r *rig) friends() (alice, bob vocab.Username) {
	r.Helper()
	alice, bob = dbtest.User(r.T, r.store, "alice"), dbtest.User(r.T, r.store, "bob")
	r.relate(alice, local{}.ID(bob), user.Accepted, user.Accepted)
	r.relate(bob, local{}.ID(alice), user.Accepted, user.Accepted)
	return alice, bob
}

// relate stores two follows between u and an actor: a follow by the actor and a follow by u, each
// with its status. A follow whose status is empty is not stored.
func (r *rig) relate(u vocab.Username, actor vocab.ID, follower, following string) {
	r.Helper()
	err := r.store.Write(r.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		for kind, status := range map[string]string{user.Follower: follower, user.Following: following} {
			if status == "" {
				continue
			}
			rel := user.Relationship{Actor: actor, Type: kind, Status: status, Activity: vocab.ID(fmt.Sprint("https://here.example/", uuid.New()))}
			if err := tx.Relationships.Set(ctx, rel, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// program is a program with a WebSocket. It reads signals.
type program struct {
	*socket.Socket
	r    *rig
	left bool
	all  []signalFrame // the signals that arrived
}

// signalFrame holds the members of a signal that tests check.
type signalFrame struct{ Type, From, Object, State, Error string }

func (r *rig) program(u vocab.Username, q socket.Request) *program {
	r.Helper()
	q.User, q.Kind = u, socket.WebSocket
	s, err := r.hub.Open(q)
	if err != nil {
		r.Fatal(err)
	}
	p := &program{Socket: s, r: r}
	r.Cleanup(p.leave)
	for len(p.all) == 0 {
		p.read(time.Minute)
	}
	p.read(time.Millisecond) // after this read the socket is live
	return p
}

func (p *program) leave() {
	if !p.left {
		p.left = true
		p.Close()
	}
}

// read reads the frames that arrive within a time.
func (p *program) read(within time.Duration) {
	p.r.Helper()
	frames, err := p.Next(p.r.Context(), within)
	if err != nil {
		p.r.Fatal(err)
	}
	for _, f := range frames {
		var s signalFrame
		if err := json.Unmarshal(f.Body, &s); err != nil {
			p.r.Fatal(err)
		}
		p.all = append(p.all, s)
	}
}

// last waits for a frame of a type. It returns the last such frame that arrived.
func (p *program) last(kind string) (found signalFrame) {
	p.r.Helper()
	redistest.Eventually(p.r, "a frame of type "+kind, func() bool {
		p.read(10 * time.Millisecond)
		for _, s := range p.all {
			if s.Type == kind {
				found = s
			}
		}
		return found.Type != ""
	})
	return found
}

// count returns how many frames of a type have arrived. It need not wait: when Signal returns, all
// receivers have the signal.
func (p *program) count(kind string) (n int) {
	p.r.Helper()
	p.read(time.Millisecond)
	for _, s := range p.all {
		if s.Type == kind {
			n++
		}
	}
	return n
}

var maySignal = socket.Request{MaySignal: true}

// alice's rules decide which users get her presence and her read receipts. The rule for presence
// also applies to a program that connects later.
func TestSignalsFollowTheRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, fan, friend := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "fan"), dbtest.User(t, r.store, "friend")
	r.relate(alice, local{}.ID(fan), user.Accepted, user.Accepted)
	r.relate(fan, local{}.ID(alice), user.Accepted, user.Accepted)
	for _, pair := range [][2]vocab.Username{{alice, friend}, {friend, alice}} {
		r.befriend(pair[0], local{}.ID(pair[1]))
	}
	rules := registry.DefaultPermissions()
	rules.SeePresence = registry.Rule{Any: []string{vocab.FriendOf}}
	rules.SeeReadReceipts = registry.Rule{All: []string{vocab.FriendOf, "following"}}
	r.rules.all.Store(alice, rules)
	from, fans, friends := r.program(alice, maySignal), r.program(fan, maySignal), r.program(friend, maySignal)
	from.Signal(t.Context(), []byte(`{"type":"presence","state":"online"}`))
	for _, to := range []vocab.Username{fan, friend} {
		from.Signal(t.Context(), []byte(`{"type":"typing","on":true,"to":"`+string(local{}.ID(to))+`"}`))
		from.Signal(t.Context(), []byte(`{"type":"read","to":"`+string(local{}.ID(to))+`"}`))
	}
	later, friendLater := r.program(fan, maySignal), r.program(friend, maySignal)
	for name, got := range map[string][4]int{
		"fan":    {fans.count("presence"), fans.count("typing"), fans.count("read"), later.count("presence")},
		"friend": {friends.count("presence"), friends.count("typing"), friends.count("read"), friendLater.count("presence")},
	} {
		want := map[string][4]int{"friend": {1, 1, 0, 1}}[name]
		if got != want {
			t.Errorf("%s gets %v of presence, typing, read and presence later, want %v", name, got, want)
		}
	}
	r.rules.all.Delete(alice)
	from.Signal(t.Context(), []byte(`{"type":"presence","state":"away"}`))
	if fans.count("presence") != 1 || friends.count("presence") != 1 {
		t.Errorf("by the usual rules the fan got %d and the friend %d", fans.count("presence"), friends.count("presence"))
	}
}

// befriend makes an actor a friend of u.
func (r *rig) befriend(u vocab.Username, actor vocab.ID) {
	r.Helper()
	err := r.store.Write(r.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: actor, Type: user.FriendOf, Status: user.Accepted, Activity: actor + "/offer", Direction: user.Inbound}, time.Now())
	})
	if err != nil {
		r.Fatal(err)
	}
}

// PRV-18: alice's signals reach only users with a mutual follow: they follow her, and she follows
// them. They do not reach LLM engines or users that she blocks.
func TestSignalsReachMutualsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	from := r.program(alice, maySignal)
	for _, tt := range []struct {
		name                string
		follower, following string
		blocked             bool
		how                 socket.Request
		want                int
	}{
		{"mutual", user.Accepted, user.Accepted, false, socket.Request{}, 2},
		{"stranger", "", "", false, socket.Request{}, 0},
		{"follower", user.Accepted, "", false, socket.Request{}, 0},
		{"followed", "", user.Accepted, false, socket.Request{}, 0},
		{"asking", user.Pending, user.Accepted, false, socket.Request{}, 0},
		{"asked", user.Accepted, user.Pending, false, socket.Request{}, 0},
		{"blocked", user.Accepted, user.Accepted, true, socket.Request{}, 0},
		{"assistant", user.Accepted, user.Accepted, false, socket.Request{Assistant: true}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := dbtest.User(t, r.store, tt.name)
			r.relate(alice, local{}.ID(u), tt.follower, tt.following)
			if tt.blocked {
				err := r.store.Write(t.Context(), alice, func(ctx context.Context, tx *user.Tx) error {
					return tx.Blocks.Add(ctx, user.Block{Actor: local{}.ID(u), Direction: user.Outbound, Activity: "https://here.example/block"}, time.Now())
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			to := r.program(u, tt.how)
			defer to.leave()
			from.Signal(t.Context(), fmt.Appendf(nil, `{"type":"typing","to":%q,"on":true,"object":"https://here.example/notes/1"}`, local{}.ID(u)))
			from.Signal(t.Context(), fmt.Appendf(nil, `{"type":"read","to":%q,"object":"https://here.example/notes/1"}`, local{}.ID(u)))
			from.Signal(t.Context(), []byte(`{"type":"presence","state":"away"}`))
			if n := to.count("typing") + to.count("read"); n != tt.want {
				t.Errorf("%d of 2 signals came, want %d: %+v", n, tt.want, to.all)
			}
			if n := to.count("presence"); n != tt.want/2 {
				t.Errorf("presence came %d times, want %d", n, tt.want/2)
			}
			for _, s := range to.all {
				if s.Type == "typing" && (s.From != string(local{}.ID(alice)) || s.Object != "https://here.example/notes/1") {
					t.Errorf("the signal says %+v", s)
				}
			}
		})
	}
	if from.count("error") > 0 {
		t.Errorf("the sender is told who gets its signals: %+v", from.all)
	}
	if rows := len(r.numbers(alice)); rows > 0 {
		t.Errorf("%d events are stored", rows)
	}
}

func TestAMessageThatMeansNothingIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	for _, tt := range []struct {
		message string
		how     socket.Request
		want    string
	}{
		{`nonsense`, maySignal, "bad_frame"},
		{`[]`, maySignal, "bad_frame"},
		{`{"type":"explode"}`, maySignal, "unknown_frame"},
		{`{"type":"typing","to":"not a URI"}`, maySignal, "bad_frame"},
		{`{"type":"presence","state":"asleep"}`, maySignal, "bad_frame"},
		{`{"type":"presence","state":"online"}`, socket.Request{}, "insufficient_scope"},
	} {
		p := r.program(alice, tt.how)
		p.Signal(t.Context(), []byte(tt.message))
		if got := p.last("error"); got.Error != tt.want {
			t.Errorf("%s: %+v, want %s", tt.message, got, tt.want)
		}
		p.leave()
	}
	p := r.program(alice, maySignal)
	for range 60 {
		p.Signal(t.Context(), []byte(`{"type":"typing","to":"https://peer.example/users/bob"}`))
	}
	if got := p.last("error"); got.Error != "rate_limited" {
		t.Errorf("many signals: %+v", got)
	}
}

// alice is online until her last program leaves. If her programs do not renew her presence, it
// expires within 90 s. If Redis loses it, a program that connects afterwards does not get it.
func TestPresenceEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := r.friends()
	one, two := r.program(alice, maySignal), r.program(alice, maySignal)
	for _, p := range []*program{one, two} {
		p.Signal(t.Context(), []byte(`{"type":"presence","state":"online"}`))
	}
	early := r.program(bob, maySignal)
	if got := early.last("presence"); got.State != "online" || got.From != string(local{}.ID(alice)) {
		t.Errorf("a program that comes is told %+v, want that alice is online", got)
	}
	if ttl := r.redis.Do("TTL", "alice:presence"); ttl == "-1" || ttl == "-2" || len(ttl) > 2 {
		t.Errorf("presence lasts %s s, want up to 90", ttl)
	}
	r.redis.Do("PEXPIRE", "alice:presence", "5000")
	two.KeepPresent(t.Context())
	if ttl := r.redis.Do("TTL", "alice:presence"); !strings.HasPrefix(ttl, "8") && !strings.HasPrefix(ttl, "9") {
		t.Errorf("renewed, presence lasts %s s, want 90", ttl)
	}
	one.leave()
	if got := early.count("presence"); got != 1 {
		t.Errorf("bob is told %d times while a program of alice's is left", got)
	}
	r.redis.Do("FLUSHALL")
	late := r.program(bob, maySignal)
	if got := late.count("presence"); got != 0 {
		t.Errorf("after Redis lost everything a program is told %+v", late.all)
	}
	two.leave()
	if got := early.last("presence"); got.State != "offline" {
		t.Errorf("after the last program of alice's went, bob is told %+v", got)
	}
}

// A change of presence that cannot be stored is not sent. The next change is sent, even if that
// change is only that the program leaves.
func TestPresenceThatCouldNotBeShownIsShownLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := r.friends()
	p, early := r.program(alice, maySignal), r.program(bob, maySignal)
	p.Signal(t.Context(), []byte(`{"type":"presence","state":"online"}`))
	ended, end := context.WithCancel(t.Context())
	end()
	p.Signal(ended, []byte(`{"type":"presence","state":"offline"}`))
	if got := early.last("presence"); got.State != "online" {
		t.Fatalf("bob is told %s although it could not be stored", got.State)
	}
	p.leave()
	if got := early.last("presence"); got.State != "offline" {
		t.Errorf("after alice's program left, bob is told %s, want offline", got.State)
	}
}

// A user is online while at least one of the user's programs is online.
func TestPresenceIsThatOfAllPrograms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := r.friends()
	one, two := r.program(alice, maySignal), r.program(alice, maySignal)
	early := r.program(bob, maySignal)
	for _, tt := range []struct {
		name string
		do   func()
		want string
	}{
		{"one is online", func() { one.Signal(t.Context(), []byte(`{"type":"presence","state":"online"}`)) }, "online"},
		{"two is offline", func() { two.Signal(t.Context(), []byte(`{"type":"presence","state":"offline"}`)) }, "online"},
		{"two is away", func() { two.Signal(t.Context(), []byte(`{"type":"presence","state":"away"}`)) }, "online"},
		{"one has left", one.leave, "away"},
		{"two is offline, too", func() { two.Signal(t.Context(), []byte(`{"type":"presence","state":"offline"}`)) }, "offline"},
	} {
		tt.do()
		if got := early.last("presence"); got.State != tt.want {
			t.Errorf("%s: bob is told %s, want %s", tt.name, got.State, tt.want)
		}
		late, shown := r.program(bob, maySignal), "offline"
		if late.count("presence") > 0 {
			shown = late.last("presence").State
		}
		if shown != tt.want {
			t.Errorf("%s: a program that comes is shown %s, want %s", tt.name, shown, tt.want)
		}
		late.leave()
	}
}

// Signals in an encrypted conversation reach its members on this server, as far as the rules of
// sender and recipient permit. They do not reach a user who has left the conversation.
func TestSignalsOfAConversationReachItsMembers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uri := vocab.ID("https://peer.example/users/host/conversations/1")
	alice, bob := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "bob")
	gone, other := dbtest.User(t, r.store, "gone"), dbtest.User(t, r.store, "other")
	all := []vocab.Username{alice, bob, gone, other}
	for _, u := range all {
		for _, v := range all {
			if u != v {
				r.relate(u, local{}.ID(v), user.Accepted, user.Accepted)
			}
		}
	}
	for _, u := range []vocab.Username{alice, bob, gone} {
		r.converse(u, uri, u == gone, local{}.ID(alice), local{}.ID(bob), local{}.ID(gone))
	}
	from := r.program(alice, maySignal)
	programs := map[vocab.Username]*program{}
	for _, u := range all[1:] {
		programs[u] = r.program(u, maySignal)
	}
	rules := registry.DefaultPermissions()
	rules.SeeReadReceipts = registry.Rule{Any: []string{vocab.FriendOf}}
	r.rules.all.Store(bob, rules) // bob's rule also keeps alice's read receipts from him
	from.Signal(t.Context(), fmt.Appendf(nil, `{"type":"read","conversation":%q,"seq":1}`, uri))
	from.Signal(t.Context(), fmt.Appendf(nil, `{"type":"typing","conversation":%q,"on":true}`, uri))
	for u, p := range programs {
		want := 0
		if u == bob {
			want = 1
		}
		if n := p.count("typing"); n != want || p.count("read") != 0 {
			t.Errorf("%s is told %d times that alice types, want %d: %+v", u, n, want, p.all)
		}
	}
	for _, message := range []string{
		fmt.Sprintf(`{"type":"typing","conversation":%q,"to":%q}`, uri, local{}.ID(bob)), `{"type":"typing","conversation":"nonsense"}`,
		fmt.Sprintf(`{"type":"read","conversation":%q,"seq":-1}`, uri),
	} {
		p := r.program(alice, maySignal)
		p.Signal(t.Context(), []byte(message))
		if got := p.last("error"); got.Error != "bad_frame" {
			t.Errorf("%s: %+v", message, got)
		}
		p.leave()
	}
}

// converse stores an encrypted conversation in a user's database. If left is true, the user has
// left it.
func (r *rig) converse(u vocab.Username, uri vocab.ID, left bool, members ...vocab.ID) {
	r.Helper()
	c := user.Conversation{ID: uuid.Must(uuid.NewV7()), URI: uri, Mode: user.ModeEncrypted, Host: members[0], GroupID: string(uri), CreatedAt: time.Now()}
	err := r.store.Write(r.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Conversations.Add(ctx, c); err != nil {
			return err
		}
		if err := tx.Conversations.Join(ctx, c.ID, members, user.RoleMember, 0); err != nil || !left {
			return err
		}
		return tx.Conversations.Leave(ctx, c.ID, []vocab.ID{local{}.ID(u)}, 1)
	})
	if err != nil {
		r.Fatal(err)
	}
}
