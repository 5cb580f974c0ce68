package socket_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// An actor of another server signals to a user once a second, and twice at once. Other actors and
// other users have signals of their own.
func TestAPairHasASignalASecond(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const uri, carol, dave = vocab.ID("https://peer.example/users/host/conversations/1"), vocab.ID("https://peer.example/users/carol"), vocab.ID("https://peer.example/users/dave")
	var clock atomic.Int64 // in nanoseconds; it stands still but for the test
	clock.Store(time.Now().UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	r.hub = socket.NewHub(socket.Deps{Store: r.store, Streams: r.keys.Events, Tokens: r.store.Instance.Tokens, Local: local{}, Profiles: &r.rules, Log: slog.New(slog.DiscardHandler), Now: now, OfUser: ofUser})
	bob, anna := dbtest.User(t, r.store, "bob"), dbtest.User(t, r.store, "anna")
	programs := map[vocab.Username]*program{}
	for _, u := range []vocab.Username{bob, anna} {
		for _, actor := range []vocab.ID{carol, dave} {
			r.relate(u, actor, user.Accepted, user.Accepted)
		}
		r.converse(u, uri, false, local{}.ID(u), carol, dave)
		programs[u] = r.program(u, maySignal)
	}
	send := func(by vocab.ID, to vocab.Username, n int) {
		t.Helper()
		for range n {
			clock.Add(int64(time.Millisecond))
			body := fmt.Appendf(nil, `{"type":"read","conversation":%q,"seq":1,"timestamp":%q}`, uri, now().UTC().Format(time.RFC3339Nano))
			if err := r.hub.Arrive(t.Context(), r.store.Read, to, by, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(what string, u vocab.Username, n int) {
		t.Helper()
		if got := programs[u].count("read"); got != n {
			t.Errorf("after %s %s is told %d signals, want %d", what, u, got, n)
		}
	}
	send(carol, bob, 10)
	want("ten at once", bob, 2)
	send(dave, bob, 10)
	want("ten of another actor", bob, 4)
	send(carol, anna, 10)
	want("ten for another user", anna, 2)
	for n := range 3 {
		clock.Add(int64(time.Second))
		send(carol, bob, 10)
		want("a second more", bob, 5+n)
	}
}
