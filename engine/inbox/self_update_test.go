package inbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// An Update by which an actor changes itself may be applied twice: a process that takes over the
// journal applies it again to all its recipients, and a peer may send it again. One event tells of
// it. Takahē sends all such Updates under one id, and each that changes the actor causes an event.
func TestAnEventTellsOnceOfAnUpdateOfAnActor(t *testing.T) {
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for name, to := range map[string]string{"to the user's inbox": mine, "to the shared inbox": shared} {
		t.Run(name, func(t *testing.T) {
			s := stage.Scene(t)
			s.Follows("p:/carol")
			for n, step := range []struct {
				name, id string
				want     int // the events so far
			}{
				{"Caroline", "p:/carol#update", 1},
				{"Caroline", "p:/carol#update", 1},
				{"Carola", "p:/carol#update", 2},
				{"Carola", "p:/carol#update", 2},
				{"Carola", "p:/carol#other", 3}, // another Update may tell of a member that is not stored
			} {
				s.Actor("p:/carol").Doc["name"] = step.name
				s.Actor("p:/carol").Show()
				s.Later(2 * time.Minute) // the engine fetches an actor at most once a minute
				s.MustSend("p:/carol", to, `{"id":"`+step.id+`","type":"Update","actor":"p:/carol","object":{"id":"p:/carol","type":"Person","name":"`+step.name+`"}}`)
				if got := s.Column(t, s.Alice, `SELECT seq::text FROM event_outbox WHERE type = 'update.received'`); len(got) != step.want {
					t.Errorf("after Update %d as %q there are %d events, want %d", n+1, step.name, len(got), step.want)
				}
				if got := s.Column(t, s.Alice, `SELECT raw ->> 'name' FROM actors WHERE uri = $1`, s.ID("p:/carol")); len(got) != 1 || got[0] != step.name {
					t.Errorf("after Update %d alice knows her as %q, want %q", n+1, got, step.name)
				}
			}
		})
	}
}

// The server of an actor uses one id for all Updates by which the actor changes itself, and does
// not answer when such an Update comes. The event tells of the Update although the user's copy of
// the actor is renewed only later.
func TestAnEventTellsOfAnUpdateWhoseActorIsFetchedLater(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	update := `{"id":"p:/carol#update","type":"Update","actor":"p:/carol","object":"p:/carol"}`
	expect := func(when, name string, want int) {
		t.Helper()
		if got := s.Column(t, s.Alice, `SELECT seq::text FROM event_outbox WHERE type = 'update.received'`); len(got) != want {
			t.Errorf("%s there are %d events, want %d", when, len(got), want)
		}
		if got := s.Column(t, s.Alice, `SELECT raw ->> 'name' FROM actors WHERE uri = $1`, s.ID("p:/carol")); len(got) != 1 || got[0] != name {
			t.Errorf("%s alice knows her as %q, want %q", when, got, name)
		}
	}
	carol := s.Actor("p:/carol")
	carol.Doc["name"] = "Caroline"
	carol.Show()
	s.Later(2 * time.Minute) // the engine fetches an actor at most once a minute
	s.MustSend("p:/carol", mine, update)
	expect("after the first Update", "Caroline", 1)

	s.Later(2 * time.Minute)
	s.Answer("p:/carol", http.StatusServiceUnavailable)
	s.MustSend("p:/carol", mine, update)
	expect("after an Update whose actor cannot be fetched", "Caroline", 2)

	s.Later(2 * time.Minute)
	carol.Doc["name"] = "Carola"
	carol.Show()
	s.Inbox.RenewAll()
	s.Later(2 * time.Minute)
	s.MustSend("p:/carol", mine, update)
	expect("after the renewal, and the same Update again,", "Carola", 2)
}
