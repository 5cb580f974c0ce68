package intake

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
)

// Some activities that wait for alice make the drain panic. They are set aside, with their actors
// if they were read, and the others are applied in order.
func TestADrainSetsAsideWhatMakesItPanic(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice")
	s.refuses.Store(true)
	for n, sender := range []string{"carol", "carol", "panics", "carol", "panics", "carol", "unsettled"} {
		if err := accept(t.Context(), i, sender, n, users...); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "alice is stalled", func() bool { return len(i.Stalled()) == 1 })
	s.refuses.Store(false)
	eventually(t, "the stall ends", func() bool { return len(i.Stalled()) == 0 })
	if got := s.of("carol"); len(got) != 4 || !slices.IsSorted(got) {
		t.Errorf("committed %q, want four in order", got)
	}
	want := []string{"(https://peer.example/panics/0000002,\"\")", "(https://peer.example/panics/0000004,\"\")",
		"(https://peer.example/unsettled/0000006,https://peer.example/parsed)"}
	if got := dbtest.Rows(t, dbtest.DatabaseOf(t, i.Store, users[0]), `SELECT uri, actor_uri FROM poison ORDER BY uri`); !slices.Equal(got, want) {
		t.Errorf("set aside are %q, want %q", got, want)
	}
	if n, err := i.Store.Instance.Journal.Count(t.Context()); err != nil || n.Rows != 0 {
		t.Errorf("the journal holds %+v, %v; want nothing", n, err)
	}
}

// A drain that panics while it catches up holds nothing back any more. The intake may close before
// the drain is called again, and would wait for the entries.
func TestAPanicOfADrainReleasesWhatWasHeldBack(t *testing.T) {
	t.Parallel()
	i := New(Deps{Log: slog.New(slog.DiscardHandler)})
	s := &stall{catchingUp: true, from: 1}
	d := &drain{intake: i, stall: s} // it panics, because it has no writer
	if panicked := i.work.recoverFrom(func() { d.run(0) }); !panicked || s.catchingUp {
		t.Errorf("the drain panicked: %t, and it still catches up: %t; want true and false", panicked, s.catchingUp)
	}
}

func TestAPanicInTheBackgroundIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := NewBackground(slog.New(slog.NewTextHandler(&log, nil)))
	b.Go(func() { panic("once") })
	calls := 0
	again := make(chan struct{})
	b.Loop(func() {
		if calls++; calls == 1 {
			panic("a loop")
		}
		close(again)
	})
	<-again
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"err=once", `err="a loop"`, "stack="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
}
