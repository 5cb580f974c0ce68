package intake

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
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

// asking is a Rivals whose questions stay open until the test answers them. Then the items are
// ignored.
type asking struct {
	mu       sync.Mutex
	answered bool
	waiting  map[int64][]vocab.Username
}

func (r *asking) Ask(u vocab.Username, seq int64, _ Item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.answered {
		r.waiting[seq] = append(r.waiting[seq], u)
	}
	return !r.answered
}

func (r *asking) Open() map[int64][]vocab.Username {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return nil
	}
	return maps.Clone(r.waiting)
}

func (r *asking) IsOpen(u vocab.Username, seq int64) bool { return slices.Contains(r.Open()[seq], u) }
func (r *asking) Forget(vocab.Username, int64)            {}

func (r *asking) answer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = true
}

// A contested activity of alice's waits for an answer, and Tend does not read her rows again and
// again. Tend takes up another row of hers, and a row of bob's about which he has not asked.
func TestAnOpenQuestionStallsNobody(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice", "bob")
	r := &asking{waiting: map[int64][]vocab.Username{}}
	i.Rivals = r
	if err := accept(t.Context(), i, "rival", 1, users[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "alice waits for the answer", func() bool { return len(r.Open()) == 1 && len(i.Stalled()) == 0 })
	for range cap(i.slots.probes) { // a drain that begins does not get far
		i.slots.probes <- struct{}{}
	}
	for range 2 {
		if err := i.Tend(); err != nil || len(i.Stalled()) != 0 {
			t.Errorf("stalled are %s, %v; want nobody", i.Stalled(), err)
		}
	}
	submit := func(sender string, u vocab.Username) {
		t.Helper()
		in := arrival(sender, 1).Row()
		in.Waiting = []vocab.Username{u}
		if err := i.Store.Instance.Journal.Resubmit(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if err := i.Tend(); err != nil || !slices.Contains(i.Stalled(), u) {
			t.Errorf("stalled are %s, %v; want %s among them", i.Stalled(), err, u)
		}
	}
	submit("rival", users[1])
	submit("carol", users[0])
	for range cap(i.slots.probes) {
		<-i.slots.probes
	}
	eventually(t, "both wait for the answer alone", func() bool { return len(s.of("carol")) == 1 && len(i.Stalled()) == 0 })
	r.answer()
	for _, u := range users {
		i.Revisit(u)
	}
	eventually(t, "the journal is empty", func() bool { return rowsOf(t, i) == 0 && len(i.Stalled()) == 0 })
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
