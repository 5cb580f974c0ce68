package inbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// ages stores old copies of the named actors for alice, and queues the actors for renewal.
func ages(s *peertest.Scene, names ...string) {
	for n, name := range names {
		s.MustSend(name, mine, fmt.Sprintf(`{"id":"%s/waves/%d","type":"Wave","actor":%[1]q}`, name, n))
	}
	s.Later(25 * time.Hour)
	for _, name := range names {
		s.Inbox.Renew(s.ID(name))
	}
}

// If a domain's server never answers, actors of other domains are renewed without delay.
func TestADomainThatNeverAnswersHoldsUpNoOthersRenewal(t *testing.T) {
	s := newScene(t)
	var silent []string
	for n := range 12 {
		silent = append(silent, fmt.Sprintf("p:/carol%d", n))
	}
	ages(s, append(silent, "q:/mallory")...)
	stop, asked := make(chan struct{}), make(chan struct{}, 100)
	for _, name := range silent {
		s.Handle(name, func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-stop })
	}
	before := s.Asked("q:/mallory")
	round := make(chan struct{})
	go func() { defer close(round); s.Inbox.RenewAll() }()
	<-asked
	eventually(t, "the other one is renewed while they are silent", func() bool { return s.Inbox.Renewing() == int64(len(silent)) })
	if n := len(asked); n > 1 {
		t.Errorf("%d more of the silent ones were asked before the other one was renewed", n)
	}
	if n := s.Asked("q:/mallory") - before; n != 1 {
		t.Errorf("the other one was asked %d times, want once", n)
	}
	close(stop)
	<-round
}

// In each round, the renewals of a domain have a limited time. The next round continues with the
// domain's next actor.
func TestADomainHasSoMuchTimeOfARound(t *testing.T) {
	s := newScene(t)
	names := []string{"p:/carol", "p:/dave", "p:/erin"}
	ages(s, names...)
	var total atomic.Int64
	for _, name := range names {
		s.Handle(name, func(w http.ResponseWriter, _ *http.Request) {
			total.Add(1)
			s.Later(11 * time.Second)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
	}
	for round := 1; round <= len(names); round++ {
		s.Inbox.RenewAll()
		if n := total.Load(); n != int64(round) {
			t.Fatalf("after round %d %d actors were asked, want one each", round, n)
		}
	}
	for _, name := range names {
		if s.Asked(name) == 0 {
			t.Errorf("%s was not asked", name)
		}
	}
}

// If an actor's server answers 410 or 404, the engine does not ask for the actor again.
func TestAnActorThatIsGoneIsNotAskedForEver(t *testing.T) {
	s := newScene(t)
	ages(s, "p:/carol", "p:/dave")
	s.Answer("p:/carol", http.StatusGone)
	s.Answer("p:/dave", http.StatusNotFound)
	s.Inbox.RenewAll()
	if n := s.Inbox.Renewing(); n != 0 {
		t.Errorf("%d actors wait, want none", n)
	}
}

// A user's broken database does not delay the renewal of copies for other users, and does not
// cause a second fetch.
func TestABrokenDatabaseHoldsUpNoOthersRenewal(t *testing.T) {
	alice, bob := two(t)
	carol := alice.ID("p:/carol")
	alice.Later(2 * time.Minute)
	alice.Answer("p:/carol", http.StatusServiceUnavailable)
	alice.MustSend("p:/carol", mine, `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":"p:/carol"}`)
	alice.Later(2 * time.Minute)
	actor := alice.Actor("p:/carol")
	actor.Doc["name"] = "Caroline"
	actor.Show()
	before := alice.Asked("p:/carol")
	names := func(s *peertest.Scene) string {
		return strings.Join(s.Column(t, s.Alice, `SELECT coalesce(raw->>'name', '') FROM actors WHERE uri = $1`, carol), " ")
	}

	alice.Down(t, alice.Alice) // alice's name comes before bob's
	alice.Inbox.RenewAll()
	if got := names(bob); got != "Caroline" {
		t.Errorf("bob knows her as %q while alice's database is down, want as Caroline", got)
	}
	if n := alice.Inbox.Renewing(); n != 0 || !alice.Actors.IsStale(carol) {
		t.Errorf("%d actors wait to be fetched, and she counts as stale: %t; want none, and true", n, alice.Actors.IsStale(carol))
	}

	alice.Up(t, alice.Alice)
	if _, err := bob.DB(t, bob.Alice).ExecContext(t.Context(), `UPDATE actors SET raw = jsonb_set(raw::jsonb, '{name}', '"as it was"') WHERE uri = $1`, carol); err != nil {
		t.Fatal(err)
	}
	alice.Inbox.RenewAll()
	if hers, his := names(alice), names(bob); hers != "Caroline" || his != "as it was" {
		t.Errorf("then alice knows her as %q and bob as %q, want as Caroline and what he had", hers, his)
	}
	if n := alice.Asked("p:/carol") - before; n != 1 || alice.Actors.IsStale(carol) {
		t.Errorf("her server was asked %d times, and she counts as stale: %t; want once, and false", n, alice.Actors.IsStale(carol))
	}
}

// The actors of one domain cannot fill all places in the queue. Each actor has one place.
func TestRenewalsHaveShares(t *testing.T) {
	s := newScene(t)
	for n := range 10_000 {
		s.Inbox.Renew(s.ID(fmt.Sprintf("p:/actors/%d", n)))
	}
	took := s.Inbox.Renewing()
	if took >= 10_000 {
		t.Errorf("one domain has all %d places", took)
	}
	for range 2 {
		s.Inbox.Renew(s.ID("q:/mallory"))
	}
	if n := s.Inbox.Renewing() - took; n != 1 {
		t.Errorf("another domain's actor has %d places, want one", n)
	}
}

// FRS-01: an Update without a valid signature does not mark an actor as stale. The mark would be
// costly: every post to a stale actor's followers waits for the actor's server.
func TestAnUpdateThatNobodyProvedLeavesNoMark(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/carol", mine, listen)
	s.Later(2 * time.Minute)
	s.Answer("p:/carol", http.StatusServiceUnavailable)
	if err := forge(s, `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":"p:/carol"}`); err == nil {
		t.Fatal("a forged Update was accepted")
	}
	row, err := s.Store.Instance.Actors.Find(t.Context(), s.ID("p:/carol"))
	if err != nil || row == nil || row.FetchedAt.Unix() <= 0 || s.Actors.HasStale() {
		t.Errorf("the actor is stored as %+v, %v, and counts as stale: %t; want as before", row, err, s.Actors.HasStale())
	}
	s.Actor("p:/carol").Show()
	s.Later(2 * time.Minute)
	s.MustSend("p:/carol", mine, `{"id":"p:/updates/2","type":"Update","actor":"p:/carol","object":"p:/carol"}`)
}
