package intake

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// One payer asks for three turns and another for two, of which one is asked for in the name of the
// first, too. There is one turn at a time.
func TestPayersAreServedByTurns(t *testing.T) {
	t.Parallel()
	turns := newTurns()
	turns.free = 0
	asked := map[string]*turn{}
	for _, name := range []string{"a1", "a2", "a3", "ab", "b1"} {
		asked[name] = turns.ask(name[:1])
	}
	turns.askToo(asked["ab"], "b")
	turns.askToo(asked["ab"], "a") // it waits in that name already
	turns.leave(asked["a2"])       // it waits no longer
	delete(asked, "a2")
	var served []string
	turns.free = 1
	turns.serve()
	for len(served) < 4 {
		for name, turn := range asked {
			select {
			case <-turn.begun:
				served = append(served, name)
				delete(asked, name)
				turns.leave(turn)
			default:
			}
		}
	}
	if want := []string{"a1", "b1", "a3", "ab"}; !slices.Equal(served, want) {
		t.Errorf("served are %q, want %q", served, want)
	}
	if turns.free != 1 || len(turns.waiting) != 0 || len(turns.payers) != 0 {
		t.Errorf("left are %d turns, and the queues %v of %q; want one turn and no queue", turns.free, turns.waiting, turns.payers)
	}
}

// held is a pipeline that holds the first batch of the sender stranger until the test lets it go.
type held struct {
	*steps
	holds *atomic.Bool
	first chan string   // receives the id of the first item of the batch that is held
	let   chan struct{} // closed by the test
}

func (h held) Apply(ctx context.Context, tx *user.Tx, batch []Item) error {
	if id := batch[0].(*note).id; strings.Contains(id, "/stranger/") && h.holds.CompareAndSwap(true, false) {
		h.first <- id
		<-h.let
	}
	return h.steps.Apply(ctx, tx, batch)
}

// holdTurn lets a stranger name three users. The writer of the first result has the only turn, and
// is held. The writers of the others wait for their turn.
func holdTurn(t *testing.T) (i *Intake, h held, first vocab.Username, others []vocab.Username) {
	t.Helper()
	h = held{&steps{}, &atomic.Bool{}, make(chan string, 1), make(chan struct{})}
	h.holds.Store(true)
	i, users := open(t, h.steps, "alice", "bob", "carol")
	i.Pipeline = h
	i.turns.free, i.turns.slow = 1, time.Hour
	unasked := map[vocab.Username]bool{users[0]: true, users[1]: true, users[2]: true}
	a := arrival("stranger", 1, users...)
	a.Unasked, a.ItemFor = unasked, func(u vocab.Username) Item { return &note{"https://peer.example/stranger/" + u.String(), time.Now()} }
	if err := i.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	_, name, _ := strings.Cut(<-h.first, "/stranger/")
	for _, u := range users {
		if u.String() == name {
			first = u
		} else {
			others = append(others, u)
		}
	}
	eventually(t, "the other writers wait", func() bool { return queued(i.turns) == len(others) })
	return i, h, first, others
}

// queued returns how many writers wait for their turn.
func queued(t *turns) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, waiting := range t.waiting {
		n += len(waiting)
	}
	return n
}

func TestWhatUsersDidNotAskForIsAppliedByTurns(t *testing.T) {
	t.Parallel()
	i, h, _, _ := holdTurn(t)
	if got := h.of("stranger"); len(got) != 0 {
		t.Errorf("committed without their turn are %q", got)
	}
	close(h.let)
	eventually(t, "all have it", func() bool { return len(h.of("stranger")) == 3 })
	eventually(t, "the journal is empty", func() bool { return rowsOf(t, i) == 0 })
}

// An activity that waits for turns is in memory in its parsed form, and counts as that.
func TestWhatWaitsForTurnsCountsAsItsParsedForm(t *testing.T) {
	t.Parallel()
	i, h, _, others := holdTurn(t)
	before := i.Memory.Used()
	a := arrival("friend", 1, others...)
	row := a.Row()
	if err := i.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	eventually(t, "those who asked have it", func() bool { return len(h.of("friend")) == 2 })
	if want := (bytesOf(&row) - 4) * parsedSize; before < want || before > 2*want {
		t.Errorf("the waiting activity counts as %d bytes, want some %d", before, want)
	}
	close(h.let)
	eventually(t, "nothing counts any more", func() bool { return i.Memory.Used() == 0 })
}

// A writer that waits in the name of one payer waits in the name of the next one, too, so that the
// activities of the second need not wait for all those of the first.
func TestAWriterWaitsInTheNameOfEachPayer(t *testing.T) {
	t.Parallel()
	i, h, _, others := holdTurn(t)
	a := arrival("honest", 1, others...)
	row := a.Row
	a.Unasked, a.Row = map[vocab.Username]bool{others[0]: true, others[1]: true}, func() instance.Intake {
		in := row()
		in.Payer = "honest.example"
		return in
	}
	if err := i.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if n := queued(i.turns); n != 2*len(others) {
		t.Errorf("%d turns are queued, want one for each writer and payer", n)
	}
	close(h.let)
	eventually(t, "all have it", func() bool { return len(h.of("honest")) == 2 })
}

// An activity that a user asked for is committed at once, after what arrived for the user before.
func TestWhatUsersAskForWaitsForNoTurn(t *testing.T) {
	t.Parallel()
	i, h, _, others := holdTurn(t)
	u := others[0]
	if err := accept(t.Context(), i, "friend", 1, u); err != nil {
		t.Fatal(err)
	}
	want := []string{"https://peer.example/stranger/" + u.String(), "https://peer.example/friend/0000001"}
	if got := append(h.of("stranger"), h.of("friend")...); !slices.Equal(got, want) {
		t.Errorf("committed are %q, want %q", got, want)
	}
	close(h.let)
	eventually(t, "all have it", func() bool { return len(h.of("stranger")) == 3 })
}

// The journal gives a stalled user what it has, and waits for no turn.
func TestAStallEndsTheWaitForATurn(t *testing.T) {
	t.Parallel()
	i, h, _, others := holdTurn(t)
	i.Revisit(others[0])
	eventually(t, "the stalled user has it", func() bool { return len(h.of("stranger")) == 1 && len(i.Stalled()) == 0 })
	close(h.let)
}

// Writers that wait for their turn do not keep the process from ending. The next process applies
// what they leave.
func TestClosingEndsTheWaitForATurn(t *testing.T) {
	t.Parallel()
	i, h, first, _ := holdTurn(t)
	closed := make(chan error)
	go func() { closed <- i.Close(context.Background()) }()
	eventually(t, "nobody waits for a turn", func() bool { return queued(i.turns) == 0 })
	close(h.let)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if got, want := h.of("stranger"), []string{"https://peer.example/stranger/" + first.String()}; !slices.Equal(got, want) {
		t.Errorf("committed are %q, want %q", got, want)
	}
	if n := rowsOf(t, i); n != 1 {
		t.Errorf("the journal has %d rows, want one for the other users", n)
	}
}

// A process that ends in the head start of an activity leaves it to the next process.
func TestClosingInTheHeadStartLosesNothing(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice", "bob")
	if err := accept(t.Context(), i, "carol", 1, users...); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if committed, rows := len(s.of("carol")), rowsOf(t, i); committed < len(users) && rows != 1 || committed == len(users) && rows != 0 {
		t.Errorf("%d of %d users have it, and the journal has %d rows", committed, len(users), rows)
	}
}

// A writer whose database does not answer keeps its turn only for a while.
func TestATurnThatTakesLongEnds(t *testing.T) {
	t.Parallel()
	h := held{&steps{}, &atomic.Bool{}, make(chan string, 1), make(chan struct{})}
	h.holds.Store(true)
	i, users := open(t, h.steps, "alice", "bob")
	i.Pipeline = h
	i.turns.free, i.turns.slow = 1, time.Millisecond
	a := arrival("stranger", 1, users...)
	a.Unasked = map[vocab.Username]bool{users[0]: true, users[1]: true}
	if err := i.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	<-h.first
	eventually(t, "the other user has it", func() bool { return len(h.of("stranger")) == 1 })
	close(h.let)
}

// While no place for a large activity is free, what arrived before it is committed, and the large
// one waits.
func TestALargeActivityWaitsForAPlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	h := held{&steps{}, &atomic.Bool{}, make(chan string, 1), make(chan struct{})}
	h.holds.Store(true)
	i, users := open(t, h.steps, "alice")
	i.Pipeline = h
	answers := make(chan error, 3)
	for n, sender := range []string{"stranger", "carol", "large"} {
		go func() { answers <- accept(t.Context(), i, sender, n, users...) }()
		if n == 0 {
			<-h.first
		}
		eventually(t, "it is queued", func() bool { return i.Places.Used() == int64(n+1) })
	}
	i.Large <- struct{}{}
	close(h.let)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if carols, large := len(h.of("carol")), len(h.of("large")); carols != 1 || large != 0 {
		t.Errorf("committed are %d of carol's activities and %d large ones, want one of hers alone", carols, large)
	}
	<-i.Large
	if err := <-answers; err != nil {
		t.Error(err)
	}
}

// rowsOf returns how many rows the journal has.
func rowsOf(t *testing.T, i *Intake) int {
	t.Helper()
	n, err := i.Store.Instance.Journal.Count(context.Background())
	if err != nil {
		t.Error(err)
	}
	return n.Rows
}
