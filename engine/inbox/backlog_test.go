package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// bulk returns a Listen of 4 MiB. The actor named by the parameter by sends it to the actor named
// by the parameter to.
func bulk(by, to string, n int) string {
	return fmt.Sprintf(`{"id":"%[1]s/listens/%[3]d","type":"Listen","actor":"%[1]s","to":"%[2]s","object":"p:/songs/1","song":"%[4]s"}`, by, to, n, strings.Repeat("x", 4<<20))
}

// fill sends activities of 4 MiB to alice until one is refused. The parameter by names their
// actor. fill returns the number of accepted activities.
func fill(t *testing.T, s *peertest.Scene, by string) (taken int) {
	t.Helper()
	for ; ; taken++ {
		err := s.Send(by, mine, bulk(by, "us:/alice", taken))
		if err == nil && taken < 20 {
			continue
		}
		if fault.KindOf(err) != fault.Unavailable || fault.Of(err).RetryAfter == 0 {
			t.Fatalf("after %d: %v; want to be told to come again", taken, err)
		}
		return taken
	}
}

// PAY-06: the engine refuses further activities of a domain that fills the journal for a user. It
// still accepts activities of other domains.
func TestWhatWaitsForAUserIsShared(t *testing.T) {
	if testing.Short() {
		t.Skip("it sends thousands of what others send a few of")
	}
	alice, bob := two(t)
	bob.Follows("p:/carol")
	bob.Down(t, bob.Alice)
	taken := fill(t, bob, "p:/carol")
	if taken != 11 {
		t.Errorf("%d were taken, want less than 48 MiB", taken)
	}
	if err := bob.Send("q:/dave", mine, bulk("q:/dave", "us:/alice", 0)); err != nil {
		t.Errorf("another domain is refused: %v", err)
	}
	both := bulk("p:/carol", string(alice.ID("us:/alice"))+`","cc":"`+string(bob.ID("us:/alice")), 100)
	if err := alice.Send("p:/carol", shared, both); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("what is for somebody else, too: %v; want to be told to come again", err)
	}
	has := func(s *peertest.Scene) bool {
		return len(s.Column(t, s.Alice, `SELECT id FROM activities WHERE uri = $1`, s.ID("p:/carol/listens/100"))) == 1
	}
	eventually(t, "alice has what bob cannot take", func() bool { return has(alice) })
	want := journal(t, bob).Waiting
	if n, bytes := bob.Inbox.Backlog(bob.Alice); int(n) != want || want != taken+1 || bytes < int64(want)*4<<20 {
		t.Errorf("counted are %d with %d bytes, and %d wait; want %d", n, bytes, want, taken+1)
	}

	if err := bob.Inbox.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	next := inbox.New(bob.Deps) // New counts the activities that already wait in the journal
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := next.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	send := func() error {
		return next.Receive(t.Context(), alice.Request("p:/carol", shared, both), []byte(alice.Long(both)), vocab.Username{})
	}
	if err := send(); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("after a restart: %v; want to be told to come again", err)
	}
	// makes the domain's waiting activities fewer than its share beside another domain
	const dropped = 4
	dropFor(t, bob, dropped)
	if err := next.Recount(); err != nil {
		t.Fatal(err)
	}
	if err := send(); err != nil {
		t.Errorf("after an administrator has made room: %v", err)
	}
	bob.Up(t, bob.Alice)
	eventually(t, "the journal is empty", func() bool { return !next.Stalled(bob.Alice) && journal(t, bob).Rows == 0 })
	if n, bytes := next.Backlog(bob.Alice); n != 0 || bytes != 0 || !has(bob) {
		t.Errorf("afterwards %d with %d bytes are counted, want none; bob has the last: %t", n, bytes, has(bob))
	}
	if got := bob.Column(t, bob.Alice, `SELECT id FROM activities WHERE type = 'Listen'`); len(got) != taken-dropped+2 {
		t.Errorf("bob has %d, want all that were taken but those that were dropped", len(got))
	}
}

// dropFor removes the first n activities that wait for the scene's user.
func dropFor(t *testing.T, s *peertest.Scene, n int) {
	t.Helper()
	page, err := s.Store.Instance.Journal.ListWaiting(t.Context(), s.Alice, 0, n, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var rows []instance.IntakeRow
	for _, w := range page {
		rows = append(rows, w.IntakeRow)
	}
	if got, err := s.Store.Instance.Journal.FinishWaiting(t.Context(), s.Alice, rows); got != n || err != nil {
		t.Fatalf("FinishWaiting = %d, %v", got, err)
	}
}
