package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
)

// poisoned returns the activities that are set aside for alice.
func poisoned(t *testing.T, s *peertest.Scene) (all []user.Poisoned) {
	t.Helper()
	err := s.Store.Read(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) (err error) {
		all, err = tx.Poison.List(ctx, "", user.Poisoned{}, 100)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// retry gives an activity that was set aside back to alice, and waits until it has left the
// journal.
func retry(t *testing.T, s *peertest.Scene, p user.Poisoned) {
	t.Helper()
	if err := s.Inbox.Retry(t.Context(), s.Alice, p); err != nil {
		t.Fatal(err)
	}
	if err := s.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
}

// healable registers a handler for activities of type Sicken. The handler fails while *ill is
// true.
func healable(ill *bool) func(*inbox.Deps) {
	return func(d *inbox.Deps) {
		d.Handlers.Register(handler.Key{Type: "Sicken"}, handler.Handler{Received: func(context.Context, *user.Tx, *handler.Received) (handler.Effects, error) {
			if *ill {
				return handler.Effects{}, errors.New("a bug that the next release mends")
			}
			return handler.Effects{}, nil
		}})
	}
}

func TestWhatWasSetAsideIsGivenBack(t *testing.T) {
	ill := true
	s := newScene(t, healable(&ill))
	const body = `{"id":"p:/sickens/1","type":"Sicken","actor":"p:/carol"}`
	s.MustSend("p:/carol", mine, body)
	aside := poisoned(t, s)
	if len(aside) != 1 || aside[0].Reason == "" || aside[0].URI != s.ID("p:/sickens/1") {
		t.Fatalf("set aside: %+v, want the one", aside)
	}

	// A retry that fails midway leaves the activity set aside.
	s.Instance(t, `ALTER TABLE intake_waiting ADD CONSTRAINT ill CHECK (seq < 0)`)
	if err := s.Inbox.Retry(t.Context(), s.Alice, aside[0]); err == nil {
		t.Error("Retry = nil although the journal cannot be written")
	}
	s.Instance(t, `ALTER TABLE intake_waiting DROP CONSTRAINT ill`)
	if got := poisoned(t, s); len(got) != 1 {
		t.Errorf("after a retry that failed there is %+v, want it set aside as before", got)
	}
	expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", mine, body) })

	ill = false
	retry(t, s, poisoned(t, s)[0])
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); !slices.Equal(got, []string{"sicken.received"}) || len(poisoned(t, s)) != 0 {
		t.Errorf("events: %q, set aside: %+v; want the one applied", got, poisoned(t, s))
	}
}

// An administrator can retry a change of an actor that was set aside, even if an earlier change
// took effect under the same id. Some servers send all changes of an actor under one id (see
// TestAnActorChangesUnderOneIDAgainAndAgain).
func TestAChangeOfAnActorUnderAUsedIDIsGivenBack(t *testing.T) {
	s := newScene(t)
	s.Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
	carol := s.Actor("p:/carol")
	for _, name := range []string{"first", "second"} {
		if name == "second" {
			s.Column(t, s.Alice, `ALTER TABLE actors ADD CONSTRAINT ill CHECK (raw ->> 'name' <> 'second')`)
		}
		carol.Doc["name"] = name
		carol.Show()
		s.Later(10 * time.Minute)
		s.MustSend("p:/carol", mine, `{"id":"p:/carol#update","type":"Update","actor":"p:/carol","to":"us:/alice","object":"p:/carol"}`)
	}
	s.Column(t, s.Alice, `ALTER TABLE actors DROP CONSTRAINT ill`)
	aside := poisoned(t, s)
	if len(aside) != 1 {
		t.Fatalf("set aside: %+v, want the second change", aside)
	}
	retry(t, s, aside[0])
	if got := s.Column(t, s.Alice, `SELECT raw ->> 'name' FROM actors`); !slices.Equal(got, []string{"second"}) {
		t.Errorf("after the retry the name is %q", got)
	}
}

// A retry can cause a drain that sets the activity aside again before the retry ends. When the
// retry ends, it keeps the new entry.
func TestWhatIsSetAsideAgainStaysThere(t *testing.T) {
	ill := true
	s := newScene(t, healable(&ill))
	s.MustSend("p:/carol", mine, `{"id":"p:/sickens/1","type":"Sicken","actor":"p:/carol"}`)
	before := poisoned(t, s)[0]
	retry(t, s, before)
	if err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error { return tx.Poison.Drop(ctx, before) }); err != nil {
		t.Fatal(err)
	}
	if got := poisoned(t, s); len(got) != 1 || !got[0].CreatedAt.After(before.CreatedAt) {
		t.Errorf("set aside: %+v, want the one again", got)
	}
}

// A retry died before its end, but its activity was applied. When the retry is repeated, the
// activity does not take effect twice.
func TestWhatWasAppliedAlreadyIsNotGivenBack(t *testing.T) {
	ill := true
	s := newScene(t, healable(&ill))
	s.MustSend("p:/carol", mine, `{"id":"p:/sickens/1","type":"Sicken","actor":"p:/carol"}`)
	before := poisoned(t, s)[0]
	ill = false
	for range 2 {
		retry(t, s, before)
	}
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); !slices.Equal(got, []string{"sicken.received"}) {
		t.Errorf("events: %q, want one", got)
	}
}

func TestWhatCannotBeReadIsNotGivenBack(t *testing.T) {
	s := newScene(t)
	if err := s.Inbox.Retry(t.Context(), s.Alice, user.Poisoned{URI: "https://p.example/1", Raw: []byte(`{`)}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("err = %v, want Invalid", err)
	}
}

// An activity was set aside for alice, who follows its author but is not addressed. The retry does
// not turn it into an activity that addresses alice.
func TestARetryMeansNobodyWhoWasNotMeant(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	s.MustSend("p:/carol", shared, `{"id":"p:/acts/1","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/1","type":"Note","to":"as:Public","content":"for all"}}`)
	for n, object := range []string{"p:/notes/1", "p:/notes/2"} {
		id := fmt.Sprintf("p:/updates/%d", n)
		raw := s.Long(`{"id":"` + id + `","type":"Update","actor":"p:/carol","to":"p:/dave","object":{"id":"` + object + `","type":"Note","attributedTo":"p:/carol","to":"p:/dave","content":"for dave"}}`)
		if err := s.Inbox.Retry(t.Context(), s.Alice, user.Poisoned{URI: s.ID(id), Raw: []byte(raw)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	if got := s.Column(t, s.Alice, `SELECT raw ->> 'content' FROM objects`); !slices.Equal(got, []string{"for all"}) {
		t.Errorf("alice has %q, want what was for all", got)
	}
}
