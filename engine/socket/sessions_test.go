package socket_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/socket"
)

// Redis loses the session of a socket. The socket then ends. While Redis does not answer, the
// socket stays open.
func TestASocketEndsWithALostSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	key := r.token(alice, nil)
	open := func(session string) *client {
		return r.openAs(socket.Request{User: alice, Kind: socket.SSE, Token: key, Session: session})
	}
	var texts []keyspace.Text
	for _, name := range []string{"session:kept", "session:lost"} {
		texts = append(texts, keyspace.Text{Key: name, Value: "a", While: time.Hour})
	}
	of := r.keys.Events.Of(alice)
	if err := of.SetTexts(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	ofToken, kept, lost := open(""), open("session:kept"), open("session:lost")
	check := func(when string, isLost bool) {
		t.Helper()
		r.hub.CheckTokens(t.Context())
		for c, want := range map[*client]bool{ofToken: false, kept: false, lost: isLost} {
			_, err := c.Next(t.Context(), time.Millisecond)
			if ended := errors.Is(err, socket.Revoked); ended != want || !ended && err != nil {
				t.Errorf("%s: %v, want it ended: %v", when, err, want)
			}
		}
	}
	check("at first", false)
	if _, err := of.Delete(t.Context(), "session:lost"); err != nil {
		t.Fatal(err)
	}
	r.redis.Pause()
	check("Redis does not answer", false)
	r.redis.Resume()
	redistest.Eventually(t, "Redis answers", func() bool { return r.keys.Events.Ask(t.Context()) == nil })
	check("one is lost", true)
}
