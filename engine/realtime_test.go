package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
)

// converse writes an encrypted conversation into a user's database. It makes the user and the
// other members follow each other.
func converse(t *testing.T, u *enginetest.User, uri, host string, others ...string) {
	t.Helper()
	d := u.Home.SQL(t, "lightweb_"+u.Name)
	do := func(query string, args ...any) {
		t.Helper()
		if _, err := d.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	id := uuid.Must(uuid.NewV7()).String()
	do(`INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at) VALUES ($1, $2, 'encrypted', $3, $2, now())`, id, uri, host)
	for _, actor := range append(others, u.ID) {
		do(`INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq) VALUES ($1, $2, 'member', 0)`, id, actor)
	}
	follow(t, u, others...)
}

// follow makes a user and each of the actors follow each other.
func follow(t *testing.T, u *enginetest.User, actors ...string) {
	t.Helper()
	for _, actor := range actors {
		for _, kind := range []string{"follower", "following"} {
			_, err := u.Home.SQL(t, "lightweb_"+u.Name).ExecContext(t.Context(), `INSERT INTO relationships (id, actor_uri, type, status, activity_uri)
				VALUES (gen_random_uuid(), $1, $2, 'accepted', $1 || '/follow/' || $2)`, actor, kind)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// told is a signal as a client receives it.
type told struct {
	Type, From, Conversation string
	On                       *bool
	Seq                      int
}

func (r *rawSocket) nextSignal() (s told) {
	r.Helper()
	text := r.nextText()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		r.Fatalf("%q: %v", text, err)
	}
	return s
}

// Members of an encrypted conversation receive typing and read signals, even from members on
// another server. The engine ignores signals of other actors, and gives their senders the same
// answer. Nothing is stored.
func TestSignalsGoBetweenServers(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	alice, bob := a.CreateUser(t, "alice"), b.CreateUser(t, "bob")
	p := peertest.New(t, "127.0.0.2")
	carol, mallory, dave, erin := p.Actor("/carol"), p.Actor("/mallory"), p.Actor("/dave"), p.Actor("/erin")
	uri := alice.ID + "/conversations/" + uuid.NewString()
	converse(t, alice, uri, alice.ID, bob.ID, string(carol.ID))
	converse(t, bob, uri, alice.ID, alice.ID, string(carol.ID), string(dave.ID), string(erin.ID))
	follow(t, bob, string(mallory.ID))
	if _, err := b.SQL(t, "lightweb_bob").ExecContext(t.Context(), `UPDATE conversation_members SET left_seq = 1 WHERE actor_uri = $1`, string(dave.ID)); err != nil {
		t.Fatal(err)
	}
	from, _ := (&siege{T: t, home: a}).dialRaw(alice.Token)
	to, _ := (&siege{T: t, home: b}).dialRaw(bob.Token)
	stored := func() string {
		return fmt.Sprint(bob.Column(t, `SELECT (SELECT count(*) FROM event_outbox) + (SELECT count(*) FROM activities) + (SELECT count(*) FROM objects) + (SELECT count(*) FROM mls_log)`),
			alice.Column(t, `SELECT count(*) FROM deliveries`))
	}
	before := stored()

	from.write(frameText|frameLast, fmt.Appendf(nil, `{"type":"typing","conversation":%q,"on":true}`, uri))
	if got := to.nextSignal(); got.Type != "typing" || got.From != alice.ID || got.Conversation != uri || got.On == nil || !*got.On {
		t.Errorf("bob is told %+v, want that alice types", got)
	}
	from.write(frameText|frameLast, fmt.Appendf(nil, `{"type":"read","conversation":%q,"seq":7}`, uri))
	if got := to.nextSignal(); got.Type != "read" || got.From != alice.ID || got.Seq != 7 {
		t.Errorf("bob is told %+v, want that alice has read up to 7", got)
	}

	send := func(body string, by *peertest.Actor) *http.Request {
		return by.Post(t, bob.ID+"/realtime", "application/json", []byte(body), signature.RFC9421, time.Now())
	}
	answer := func(what string, r *http.Request, want int) {
		t.Helper()
		if got := enginetest.Send(t, r); got.Status != want {
			t.Errorf("%s is answered %d, want %d", what, got.Status, want)
		}
	}
	signal := func(seq int) string {
		return fmt.Sprintf(`{"type":"read","conversation":%q,"seq":%d,"timestamp":%q}`, uri, seq, time.Now().UTC().Format(time.RFC3339Nano))
	}
	first := signal(11)
	answer("a signal of a stranger", send(signal(1), mallory), 204)
	answer("a signal of a member that was removed", send(signal(2), dave), 204)
	answer("a signal about another conversation", send(strings.Replace(signal(3), uri, uri+"0", 1), carol), 204)
	answer("an old signal", send(`{"type":"read","conversation":"`+uri+`","seq":4,"timestamp":"2020-01-01T00:00:00Z"}`, carol), 204)
	answer("no signal", send(`[]`, carol), 400)
	answer("an unknown signal", send(`{"type":"explode","conversation":"`+uri+`"}`, carol), 400)
	answer("an oversized signal", send(signal(5)+strings.Repeat(" ", 4<<10), carol), 413)
	unsigned := send(signal(6), carol)
	unsigned.Header.Del("Signature")
	answer("an unsigned signal", unsigned, 401)
	changed := send(signal(7), carol)
	changed.Header.Set("Content-Digest", send(signal(8), carol).Header.Get("Content-Digest"))
	answer("a signal with another's digest", changed, 401)
	answer("a signal of a member", send(first, carol), 204)
	if got := to.nextSignal(); got.From != string(carol.ID) || got.Seq != 11 {
		t.Errorf("bob is told %+v, want that carol has read up to 11", got)
	}
	answer("a replayed signal", send(first, carol), 204)
	const many = 20
	for n := range many {
		answer("one of many signals", send(signal(100+n), carol), 204)
	}
	answer("the last signal", send(signal(12), erin), 204)
	passed := 0
	for got := to.nextSignal(); got.From != string(erin.ID); got = to.nextSignal() {
		if passed++; got.Seq < 100 {
			t.Errorf("bob is told %+v", got)
		}
	}
	if passed == many {
		t.Errorf("bob is told all of %d signals that came at once", many)
	}
	if after := stored(); after != before {
		t.Errorf("stored were %s, and are %s after the signals", before, after)
	}
}
