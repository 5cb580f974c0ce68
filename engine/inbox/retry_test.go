package inbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
)

// poisoned returns what was set aside of alice.
func poisoned(t *testing.T, s *peertest.Scene) (all []db.Poisoned) {
	t.Helper()
	err := s.Store.Read(t.Context(), s.Alice, func(ctx context.Context, tx *db.Tx) (err error) {
		all, err = tx.Poisoned(ctx, "", 100)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// healable fails for activities of type Sicken until it is healed.
func healable(ill *bool) func(*inbox.Deps) {
	return func(d *inbox.Deps) {
		d.Handlers.Register(handler.Key{Type: "Sicken"}, handler.Handler{Received: func(context.Context, handler.Tx, *handler.Received) error {
			if *ill {
				return errors.New("a bug that the next release mends")
			}
			return nil
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

	// A retry that dies before its transaction ends leaves the activity set aside, whoever drains meanwhile.
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
	if err := s.Inbox.Retry(t.Context(), s.Alice, aside[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); !slices.Equal(got, []string{"sicken.received"}) || len(poisoned(t, s)) != 0 {
		t.Errorf("events: %q, set aside: %+v; want the one applied", got, poisoned(t, s))
	}
}

// A drain that finds the row while the retry's transaction is open waits for the id, and takes effect.
func TestADrainThatIsFasterThanTheRetryWaits(t *testing.T) {
	ill := true
	s := newScene(t, healable(&ill))
	s.MustSend("p:/carol", mine, `{"id":"p:/sickens/1","type":"Sicken","actor":"p:/carol"}`)
	ill = false
	// The open transaction ends once the drain waits for it.
	if _, err := s.DB(t, s.Alice).Exec(`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			FOR n IN 1..2000 LOOP
				PERFORM pg_stat_clear_snapshot();
				EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database()));
				PERFORM pg_sleep(0.01);
			END LOOP; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER dawdle AFTER DELETE ON poison DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Inbox.Retry(context.Background(), s.Alice, poisoned(t, s)[0]) }()
	eventually(t, "it waits in the journal", func() bool { return journal(t, s).Waiting == 1 })
	if err := s.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); !slices.Equal(got, []string{"sicken.received"}) {
		t.Errorf("events: %q, want the one applied", got)
	}
}

func TestWhatCannotBeReadIsNotGivenBack(t *testing.T) {
	s := newScene(t)
	if err := s.Inbox.Retry(t.Context(), s.Alice, db.Poisoned{URI: "https://p.example/1", Raw: []byte(`{`)}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("err = %v, want Invalid", err)
	}
}
