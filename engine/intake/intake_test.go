package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// note is an item of the tests. Its id identifies it.
type note struct {
	id string
	at time.Time
}

func (n *note) Payer() string        { return "peer.example" }
func (n *note) ArrivedAt() time.Time { return n.at }
func (n *note) Size() int64          { return 100 }

// IsLarge is true for what the sender large sends.
func (n *note) IsLarge() bool { return strings.Contains(n.id, "/large/") }

// Outcome is Ignored for what the sender dull sends, Contested for what the sender rival sends, and
// Kept for all else.
func (n *note) Outcome() Outcome {
	switch {
	case strings.Contains(n.id, "/dull/"):
		return Ignored
	case strings.Contains(n.id, "/rival/"):
		return Contested
	}
	return Kept
}

// steps is a pipeline that records the committed items.
type steps struct {
	refuses atomic.Bool // refuses batches, as a database that cannot be used does
	panics  atomic.Bool // panics once after the next commit

	room chan struct{} // receives a value after each commit, which may make room; nil if no test waits for it

	mu        sync.Mutex
	committed []string
	ignored   []string // the ids that were told as ignored
}

func (s *steps) Apply(context.Context, *user.Tx, []Item) error {
	if s.refuses.Load() {
		return fault.New(fault.Unavailable, "the database cannot be used")
	}
	return nil
}

func (s *steps) Resume(_ context.Context, _ vocab.Username, page []instance.Waiting) ([]Resumed, error) {
	resumed := make([]Resumed, len(page))
	for n, w := range page {
		switch id := string(idOf(w.Raw)); {
		case strings.Contains(id, "/panics/"):
			panic("a document that nobody tested")
		case strings.Contains(id, "/broken/"):
			resumed[n].Err = fault.New(fault.Invalid, "it cannot be read any more")
		case !strings.Contains(id, "/gone/"):
			resumed[n].Item = &note{id: id, at: w.ReceivedAt}
		}
	}
	return resumed, nil
}

func (s *steps) Settled(items []Item) {
	for _, item := range items {
		if strings.Contains(item.(*note).id, "/unsettled/") {
			panic("an activity that nobody tested")
		}
	}
	if s.panics.CompareAndSwap(true, false) {
		panic("a counter that nobody tested")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range items {
		s.committed = append(s.committed, item.(*note).id)
	}
	select {
	case s.room <- struct{}{}:
	default:
	}
}

func (s *steps) Ignored(item Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignored = append(s.ignored, item.(*note).id)
}

func (s *steps) SetAside(_ vocab.Username, item Item, _ error) user.Poisoned {
	return user.Poisoned{URI: vocab.ID(item.(*note).id), Actor: "https://peer.example/parsed", Raw: []byte(`{}`)}
}

// of returns the committed ids of a sender, in order.
func (s *steps) of(sender string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.committed {
		if strings.HasPrefix(id, "https://peer.example/"+sender+"/") {
			ids = append(ids, id)
		}
	}
	return ids
}

type noRivals struct{}

func (noRivals) Ask(vocab.Username, int64, Item) bool { return false }
func (noRivals) IsOpen(vocab.Username, int64) bool    { return false }
func (noRivals) Open() map[int64][]vocab.Username     { return nil }
func (noRivals) Forget(vocab.Username, int64)         {}

// open returns an intake, and users with the given names.
func open(t *testing.T, s *steps, names ...string) (i *Intake, users []vocab.Username) {
	t.Helper()
	store := dbtest.New(t)
	for _, name := range names {
		users = append(users, dbtest.User(t, store, name))
	}
	i = New(Deps{Store: store, Pipeline: s, Rivals: noRivals{}, Places: policy.Queue.NewPool(), Memory: policy.QueueBytes.NewPool(), Large: make(chan struct{}, 1),
		Backoff: mailbox.Backoff{Min: 5 * time.Millisecond, Max: 50 * time.Millisecond}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	t.Cleanup(func() {
		if err := i.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i, users
}

// arrival returns an activity of a sender, for the given users.
func arrival(sender string, n int, users ...vocab.Username) Arrival {
	id := fmt.Sprintf("https://peer.example/%s/%07d", sender, n)
	return Arrival{Recipients: users,
		ItemFor: func(vocab.Username) Item { return &note{id, time.Now()} },
		Row: func() instance.Intake {
			return instance.Intake{Key: instance.KeyOf(vocab.ID(id), "https://peer.example/"+vocab.ID(sender)), Raw: []byte(`{"id":"` + id + `"}`), Fetched: []byte(`{}`),
				Recipients: users, Payer: "peer.example"}
		}}
}

// accept passes an activity of a sender, for the given users, to the intake.
func accept(ctx context.Context, i *Intake, sender string, n int, users ...vocab.Username) error {
	return i.Accept(ctx, arrival(sender, n, users...))
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.NewTimer(time.Minute)
	defer tick.Stop()
	defer limit.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("never came true: %s", what)
		}
	}
}

func TestWhatIsIgnoredIsToldOnce(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice")
	for _, sender := range []string{"dull", "carol"} {
		if err := accept(t.Context(), i, sender, 1, users...); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both are settled, and one is told as ignored", func() bool {
		settled := len(s.of("dull")) + len(s.of("carol"))
		s.mu.Lock()
		defer s.mu.Unlock()
		return settled == 2 && slices.Equal(s.ignored, []string{"https://peer.example/dull/0000001"})
	})
}

// Rows that cannot be read, and rows without anything left to do, leave the journal with the
// others. A row that cannot be read is set aside.
func TestRowsThatAreNotAppliedLeaveTheJournal(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice")
	s.refuses.Store(true)
	for _, sender := range []string{"broken", "gone", "carol"} {
		if err := accept(t.Context(), i, sender, 1, users...); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "alice is stalled", func() bool { return len(i.Stalled()) == 1 })
	s.refuses.Store(false)
	eventually(t, "the stall ends", func() bool { return len(i.Stalled()) == 0 && len(s.of("carol")) == 1 })
	if rows, err := i.Store.Instance.Journal.ListWaiting(t.Context(), users[0], 0, 10, 1<<20); err != nil || len(rows) != 0 {
		t.Errorf("%d rows still wait, %v", len(rows), err)
	}
	if got := dbtest.Rows(t, dbtest.DatabaseOf(t, i.Store, users[0]), `SELECT uri FROM poison`); !slices.Equal(got, []string{"(https://peer.example/broken/0000001)"}) {
		t.Errorf("set aside are %q", got)
	}
}

// The bytes of an activity count while a writer has it in memory, and not while it waits in the
// journal for a user who is stalled.
func TestWhatWaitsInTheJournalTakesNoMemory(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice", "bob")
	i.mu.Lock()
	defer i.mu.Unlock()
	i.writer(users[0]).beginStall(time.Hour)
	in := &instance.Intake{Raw: []byte(`{}`), Fetched: []byte(`{}`)}
	for n, of := range [][]vocab.Username{users[:1], users} {
		in.Recipients = of
		if entries, bytes := i.countQueued(in, nil); entries != n || (bytes > 0) != (n > 0) {
			t.Errorf("for %s it has %d entries of %d bytes, want %d", of, entries, bytes, n)
		}
	}
}

func TestTheFirstArrivalAfterACatchUpBeganIsHeldBack(t *testing.T) {
	t.Parallel()
	s := stall{catchingUp: true, from: 7}
	for number, want := range map[int64]bool{6: false, 7: true, 8: true} {
		if got := s.holdBack(&entry{number: number}); got != want {
			t.Errorf("arrival %d is held back: %t, want %t", number, got, want)
		}
	}
	s.catchingUp = false
	if s.holdBack(&entry{number: 9}) {
		t.Error("an arrival is held back although the drain is not catching up")
	}
}

// A user stops being stalled once the user's database can be used again, even while activities
// keep arriving. Each sender's activities take effect once and in order.
func TestAStallEndsUnderSteadyTraffic(t *testing.T) {
	t.Parallel()
	s := steps{room: make(chan struct{}, 1)}
	i, users := open(t, &s, "alice")
	s.refuses.Store(true)
	stop := make(chan struct{})
	var senders sync.WaitGroup
	sent := make([]int, 4)
	for k := range sent {
		senders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch err := accept(t.Context(), i, fmt.Sprint("sender", k), sent[k], users...); {
				case errors.Is(err, errFull): // a real peer also waits before it tries again
					select {
					case <-s.room:
					case <-stop:
					}
				case err != nil:
					t.Error(err)
					return
				default:
					sent[k]++
				}
			}
		})
	}
	waits := func() int {
		n, err := i.Store.Instance.Journal.CountWaiting(t.Context(), users[0])
		if err != nil {
			t.Error(err)
		}
		return n
	}
	eventually(t, "more than a page waits", func() bool { return waits() > 2*maxBatch })
	s.refuses.Store(false)
	eventually(t, "nobody is stalled", func() bool { return len(i.Stalled()) == 0 })
	close(stop)
	senders.Wait()
	eventually(t, "all is committed", func() bool { return waits() == 0 && i.Places.Used() == 0 })
	for k, n := range sent {
		got := s.of(fmt.Sprint("sender", k))
		if len(got) != n || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != n {
			t.Errorf("of sender %d %d activities took effect, in order: %t; want its %d once and in order", k, len(got), slices.IsSorted(got), n)
		}
	}
}

// A database fails again while its drain catches up. No activity is lost.
func TestAStallThatIsInterruptedLosesNothing(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice")
	s.refuses.Store(true)
	const all = 300
	done := make(chan error)
	go func() {
		for n := range all {
			if err := accept(t.Context(), i, "carol", n, users...); err != nil {
				done <- err
				return
			}
			if n%25 == 0 {
				s.refuses.Store(!s.refuses.Load())
			}
		}
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.refuses.Store(false)
	eventually(t, "all is committed", func() bool { return len(s.of("carol")) == all && len(i.Stalled()) == 0 })
	if got := s.of("carol"); !slices.IsSorted(got) {
		t.Errorf("committed in the order %q", got)
	}
}

func TestActivitiesOfASuspendedUserWaitWithoutAStall(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice")
	s.refuses.Store(true)
	if err := accept(t.Context(), i, "carol", 0, users...); err != nil {
		t.Fatal(err)
	}
	setState := func(state string) {
		t.Helper()
		if err := i.Store.Instance.Users.SetState(t.Context(), users[0], state); err != nil {
			t.Fatal(err)
		}
	}
	setState(instance.UserSuspended)
	eventually(t, "a suspended user is not stalled", func() bool { return len(i.Stalled()) == 0 })
	s.refuses.Store(false) // a try that began before the suspension may still apply the activity until here
	if n, err := i.Store.Instance.Journal.CountWaiting(t.Context(), users[0]); n != 1 || err != nil {
		t.Errorf("%d activities wait, %v; want 1", n, err)
	}

	var log strings.Builder
	next := New(i.Deps)
	next.Log = slog.New(slog.NewTextHandler(&log, nil))
	if err := i.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a suspended user is not stalled in the next process", func() bool { return len(next.Stalled()) == 0 })
	setState(instance.UserActive)
	eventually(t, "the activity is applied", func() bool { return len(s.of("carol")) == 1 })
	if err := next.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "user stalled") {
		t.Errorf("the log says: %s", log.String())
	}
}

// A writer panics. A request that it handles is answered with an error. A row of the journal that
// it handles is taken up again later, as a stray.
func TestAPanicOfAWriterLosesNothing(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice", "bob")
	s.panics.Store(true)
	if err := accept(t.Context(), i, "carol", 0, users[0]); !errors.Is(err, mailbox.ErrPanicked) {
		t.Errorf("err = %v, want that the writer panicked", err)
	}
	s.panics.Store(true)
	if err := accept(t.Context(), i, "dave", 0, users...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is in memory", func() bool { return i.Places.Used() == 0 && i.Memory.Used() == 0 })
	if got := s.of("dave"); len(got) != 1 {
		t.Fatalf("committed %q, want it for the user whose writer did not panic", got)
	}
	if err := errors.Join(i.TakeStrays(0), i.Tend()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the journal is empty", func() bool {
		n, err := i.Store.Instance.Journal.Count(t.Context())
		return err == nil && n.Rows == 0 && len(i.Stalled()) == 0
	})
	if got := s.of("dave"); len(got) < 2 {
		t.Errorf("committed %q, want it for both users", got)
	}
}

// The writer of one recipient panics, and the activity arrives again for others before the row is
// taken up. The row stays for the recipient who lacks the activity.
func TestAPanicOfAWriterLosesNothingIfTheActivityArrivesAgain(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice", "bob", "carol", "dan")
	s.panics.Store(true)
	for n, of := range [][]vocab.Username{users[:2], users[2:]} {
		if err := accept(t.Context(), i, "dave", 0, of...); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing is in memory", func() bool { return i.Places.Used() == 0 && i.Memory.Used() == 0 })
		if got := s.of("dave"); len(got) != 1+2*n {
			t.Fatalf("committed %q, want it for all but one of %s", got, users[:2+2*n])
		}
	}
	if err := i.Tend(); err != nil {
		t.Fatal(err)
	}
	if n, err := i.Store.Instance.Journal.Count(t.Context()); err != nil || n.Rows != 1 {
		t.Fatalf("the journal holds %+v, %v; want the row", n, err)
	}
	if err := errors.Join(i.TakeStrays(0), i.Tend()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the journal is empty", func() bool {
		n, err := i.Store.Instance.Journal.Count(t.Context())
		return err == nil && n.Rows == 0 && len(i.Stalled()) == 0
	})
	if got := s.of("dave"); len(got) < 4 {
		t.Errorf("committed %q, want it for all users", got)
	}
	i.journal.mu.Lock()
	defer i.journal.mu.Unlock()
	if len(i.journal.rows) > 0 {
		t.Errorf("%d rows are still in memory", len(i.journal.rows))
	}
}

// While a drain does not keep up, new activities are refused. They are accepted while the database
// cannot be used, and while the drain works off the activities of that time.
func TestADrainThatDoesNotKeepUpRefuses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	long := now.Add(-2 * maxAge)
	for _, tt := range []struct {
		name           string
		usable, oldest time.Time
		refused        bool
	}{
		{"the database cannot be used", time.Time{}, long, false},
		{"it has just become usable", now, long, false},
		{"what waits is young", long, now, false},
		{"nothing waits", long, time.Time{}, false},
		{"what waits is old", long, long, true},
	} {
		i := New(Deps{Now: time.Now})
		alice, err := vocab.ParseUsername("alice")
		if err != nil {
			t.Fatal(err)
		}
		i.writer(alice).stall = &stall{usableSince: tt.usable, oldest: tt.oldest}
		in := instance.Intake{Recipients: []vocab.Username{alice}, Payer: "peer.example"}
		refusal := i.reserveBacklogs(&in, nil)
		if got := fault.KindOf(refusal) == fault.Unavailable; got != tt.refused || len(in.Recipients) == 0 != tt.refused {
			t.Errorf("%s: refused %t with %v, want %t", tt.name, got, refusal, tt.refused)
		}
		if tt.refused && fault.Of(refusal).RetryAfter == 0 {
			t.Errorf("%s: the peer is not told when to come again", tt.name)
		}
	}
}

func TestDrainsAreHurriedWhenPostgreSQLIsBack(t *testing.T) {
	t.Parallel()
	i := New(Deps{})
	s := &stall{wake: make(chan struct{}, 1)}
	i.writer(vocab.Username{}).stall = s
	down := fault.New(fault.Unavailable, "the database cannot be reached")
	for _, step := range []struct {
		err     error
		hurried int
	}{{nil, 0}, {down, 0}, {down, 0}, {nil, 1}, {nil, 1}} {
		i.noteInstance(step.err)
		if len(s.wake) != step.hurried {
			t.Errorf("after %v the drain is hurried %d times, want %d", step.err, len(s.wake), step.hurried)
		}
	}
}

func TestAPageIsHalvedWhenTimeRunsOut(t *testing.T) {
	t.Parallel()
	i := New(Deps{Store: &db.Cluster{}, Log: slog.New(slog.DiscardHandler)})
	w := i.writer(vocab.Username{})
	w.stall = &stall{}
	d := &drain{intake: i, writer: w, stall: w.stall, limit: maxBatch}
	timeout := fault.Wrap(fault.Busy, "time ran out", context.DeadlineExceeded)
	for _, want := range []int{50, 25, 12, 6, 3, 1, 1} {
		if d.noteFailure(timeout); d.limit != want {
			t.Errorf("a page has %d activities, want %d", d.limit, want)
		}
	}
	if d.noteFailure(fault.New(fault.Unavailable, "down")); d.limit != 1 {
		t.Errorf("a page has %d activities after another fault, want 1", d.limit)
	}
	for _, want := range []int{2, 4, 8, 16, 32, 64, 100, 100} {
		if d.planNext(page{}, 1); d.limit != want {
			t.Errorf("a page has %d activities, want %d", d.limit, want)
		}
	}
}
