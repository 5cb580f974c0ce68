package inbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
)

// deletesCarol returns a Delete by which carol deletes herself. The number n makes its id unique.
func deletesCarol(n int) string {
	return fmt.Sprintf(`{"id":"p:/deletes/%d","type":"Delete","actor":"p:/carol","object":"p:/carol"}`, n)
}

// forge sends a body of carol's to the shared inbox with an invalid signature.
func forge(s *peertest.Scene, body string) error {
	r := s.Request("p:/carol", shared, body)
	r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), ":", ":AAAA", 1))
	return s.Receive(r, shared, body)
}

// reached returns how many activities have reached the writers of users.
func reached(t *testing.T, metrics *prometheus.Registry) int {
	t.Helper()
	return int(counted(t, metrics, "lightweb_inbox_activities_total", ""))
}

// IDN-03: Deletes of a deleted account reach users at most once an hour. Anybody can send such
// Deletes, with any id and without a key.
func TestDeletesOfAnAccountThatIsGoneReachUsersOnceAnHour(t *testing.T) {
	for name, send := range map[string]func(*peertest.Scene, string) error{
		"that nobody signed":         forge,
		"that another one passes on": func(s *peertest.Scene, body string) error { return s.Send("q:/erin", shared, body) },
		"to the own inbox of a user": func(s *peertest.Scene, body string) error { return s.Send("p:/carol", mine, body) },
	} {
		t.Run(name, func(t *testing.T) {
			metrics := prometheus.NewRegistry()
			alice, bob := two(t, func(d *inbox.Deps) { d.Metrics = metrics })
			alice.MustSend("p:/carol", shared, note(1, "hi"))
			settled(t, alice, bob)
			alice.Answer("p:/carol", http.StatusGone)
			// until the engine may ask carol's server again
			alice.Later(25 * time.Hour)
			before := reached(t, metrics)
			sendAll := func(from int) int {
				t.Helper()
				for n := range 10 {
					if err := send(alice, deletesCarol(from+n)); err != nil {
						t.Fatal(err)
					}
				}
				settled(t, alice, bob)
				return reached(t, metrics) - before
			}
			if n := sendAll(0); n != 2 {
				t.Errorf("10 Deletes reached users %d times, want alice and bob once", n)
			}
			for _, s := range []*peertest.Scene{alice, bob} {
				if left := s.Column(t, s.Alice, `SELECT uri FROM objects WHERE raw ->> 'type' <> 'Tombstone'`); len(left) > 0 {
					t.Errorf("left of the account: %q", left)
				}
			}
			alice.Later(time.Hour)
			if n := sendAll(10); n != 4 {
				t.Errorf("with those of an hour later they reached users %d times, want twice", n)
			}
		})
	}
}

// The engine refuses a Delete that it could not write to the journal. The Delete takes effect when
// it is sent again.
func TestADeleteOfAnAccountThatIsGoneCountsOnceItIsAccepted(t *testing.T) {
	alice, bob := two(t)
	alice.MustSend("p:/carol", shared, note(1, "hi"))
	settled(t, alice, bob)
	alice.Answer("p:/carol", http.StatusGone)
	alice.Later(25 * time.Hour)
	alice.Instance(t, `ALTER TABLE intake ADD CONSTRAINT ill CHECK (seq < 0) NOT VALID`)
	if err := forge(alice, deletesCarol(1)); err == nil {
		t.Error("accepted although the journal cannot be written")
	}
	alice.Instance(t, `ALTER TABLE intake DROP CONSTRAINT ill`)
	if err := forge(alice, deletesCarol(1)); err != nil {
		t.Fatal(err)
	}
	settled(t, alice, bob)
	if left := bob.Column(t, bob.Alice, `SELECT uri FROM objects WHERE raw ->> 'type' <> 'Tombstone'`); len(left) > 0 {
		t.Errorf("left of the account: %q", left)
	}
}
