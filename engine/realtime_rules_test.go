package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// signaller sends signals to bob, by the socket of a user of another server or as a peer.
type signaller struct {
	*testing.T
	bob  *enginetest.User
	told *rawSocket // bob's
}

// post sends a signal of an actor elsewhere, and checks the status of the answer.
func (s *signaller) post(by *peertest.Actor, what, body string, want int) http.Header {
	s.Helper()
	return s.postTo(by, "/realtime", "application/json", what, body, want)
}

func (s *signaller) postTo(by *peertest.Actor, path, kind, what, body string, want int) http.Header {
	s.Helper()
	got := enginetest.Send(s, by.Post(s, s.bob.ID+path, kind, []byte(body), signature.RFC9421, time.Now()))
	if got.Status != want {
		s.Errorf("%s is answered %d, want %d", what, got.Status, want)
	}
	return got.Header
}

func signalOf(kind, conversation string, seq int) string {
	return fmt.Sprintf(`{"type":%q,"conversation":%q,"on":true,"seq":%d,"timestamp":%q}`, kind, conversation, seq, time.Now().UTC().Format(time.RFC3339Nano))
}

// wantNext checks that the next signal that bob is told is this one: all before it were dropped.
func (s *signaller) wantNext(what, kind, from string, seq int) {
	s.Helper()
	if got := s.told.nextSignal(); got.Type != kind || got.From != from || kind == "read" && got.Seq != seq {
		s.Errorf("%s: bob is told %+v, want %s of %s", what, got, kind, from)
	}
}

// permit gives a user rules, and waits until they are in force.
func permit(t *testing.T, u *enginetest.User, rules string) {
	t.Helper()
	name := uuid.NewString()
	u.Configure(t, fmt.Sprintf(`{"profile":{"name":%q},"permissions":%s}`, name, rules))
	enginetest.Eventually(t, "the rules of "+u.Name+" are read", func() bool {
		return strings.Contains(string(u.Ask(t, http.MethodGet, "/api/me", nil).Body), name)
	})
}

// Signals between two servers, in secure mode: the rules of both users hold, only encrypted
// conversations have them, the rates are those of inboxes, and nothing is stored.
func TestSignalsBetweenServersHaveTheRulesOfBoth(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t, "LIGHTWEB_FEDERATION_SECURE_MODE=true", "LIGHTWEB_LIMITS_INBOX_RATE=", "LIGHTWEB_LIMITS_INBOX_ACTOR_RATE=1/min burst 8", "LIGHTWEB_LIMITS_INBOX_HOST_RATE=1/s burst 1000")
	alice, anna, bob := a.CreateUser(t, "alice"), a.CreateUser(t, "anna"), b.CreateUser(t, "bob")
	p := peertest.New(t, "127.0.0.2")
	carol, dave, erin, frank := p.Actor("/carol"), p.Actor("/dave"), p.Actor("/erin"), p.Actor("/frank")
	uri := alice.ID + "/conversations/" + uuid.NewString()
	open := alice.ID + "/conversations/" + uuid.NewString()
	all := []string{string(carol.ID), string(dave.ID), string(erin.ID), string(frank.ID)}
	converse(t, alice, uri, alice.ID, bob.ID)
	converse(t, anna, uri, alice.ID, bob.ID)
	converse(t, bob, uri, alice.ID, append(all, alice.ID, anna.ID)...)
	for _, u := range []*enginetest.User{alice, bob} { // with the same members, but in the open
		db := u.Home.SQL(t, "lightweb_"+u.Name)
		if _, err := db.ExecContext(t.Context(), `WITH c AS (INSERT INTO conversations (id, uri, mode, host_uri, created_at) VALUES (gen_random_uuid(), $1, 'federated', $2, now()) RETURNING id)
			INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq) SELECT c.id, m.actor_uri, m.role, 0 FROM c, conversation_members m`, open, alice.ID); err != nil {
			t.Fatal(err)
		}
	}
	permit(t, anna, `{"see_presence":{}}`)
	from, _ := (&siege{T: t, home: a}).dialRaw(alice.Token)
	to, _ := (&siege{T: t, home: b}).dialRaw(bob.Token)
	s := &signaller{T: t, bob: bob, told: to}
	stored := func() string {
		const rows = `SELECT concat_ws(' ', (SELECT count(*) FROM event_outbox), (SELECT count(*) FROM activities), (SELECT count(*) FROM objects), (SELECT count(*) FROM mls_log), (SELECT count(*) FROM mls_inbox), (SELECT count(*) FROM deliveries))`
		return fmt.Sprint(alice.Column(t, rows), bob.Column(t, rows))
	}
	before := stored()
	types := func(as *rawSocket, conversation string) {
		as.write(frameText|frameLast, fmt.Appendf(nil, `{"type":"typing","conversation":%q,"on":true}`, conversation))
	}

	s.post(carol, "a signal of a conversation in the open", signalOf("read", open, 1), 204)
	s.post(dave, "a signal of the encrypted one", signalOf("read", uri, 2), 204)
	s.wantNext("in the open", "read", string(dave.ID), 2)
	types(from, open)
	types(from, uri)
	s.wantNext("in the open, from a server", "typing", alice.ID, 0)

	hers, _ := (&siege{T: t, home: a}).dialRaw(anna.Token)
	types(hers, uri)
	hers.write(frameText|frameLast, fmt.Appendf(nil, `{"type":"read","conversation":%q,"seq":4}`, uri))
	s.wantNext("anna's rule", "read", anna.ID, 4)

	permit(t, bob, `{"see_read_receipts":{}}`)
	s.post(erin, "a signal that bob's rule forbids", signalOf("read", uri, 3), 204)
	s.post(erin, "a signal that bob's rule permits", signalOf("typing", uri, 0), 204)
	s.wantNext("bob's rule", "typing", string(erin.ID), 0)

	for n := range 8 {
		s.post(frank, "one of many signals", signalOf("read", uri, 10+n), 204)
	}
	if h := s.post(frank, "one more than the rate of inboxes permits", signalOf("read", uri, 20), 429); h.Get("Retry-After") == "" {
		t.Error("the answer does not tell when to come again")
	}
	s.postTo(frank, "/inbox", vocab.ActivityJSON, "an activity of the same actor", `{"type":"Like","id":"`+string(frank.ID)+`/1","actor":"`+string(frank.ID)+`","object":"`+bob.ID+`/objects/1"}`, 429)
	if after := stored(); after != before {
		t.Errorf("stored were %s, and are %s after the signals", before, after)
	}
}
