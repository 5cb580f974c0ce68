package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// desk owns a mailbox. It records the batches that it handles.
type desk struct {
	slot     func() error                                // called before each batch; if nil, the worker does not wait
	settle   func(batch []*Letter[int], err error) error // if nil, every letter is answered with err
	handle   func(batch []int)                           // called with each handled batch; may be nil
	alone    func(int) bool                              // the function Alone of the owner
	batches  [][]int
	panicked atomic.Int32
}

var limits = Limits{Letters: 100, Batch: 10, Backoff: Backoff{time.Second, 4 * time.Second}}

func (d *desk) open(l Limits) *Mailbox[string, int] {
	return New(Owner[string, int]{
		Slot: func(use func(context.Context, string) error) error {
			if d.slot != nil {
				if err := d.slot(); err != nil {
					return err
				}
			}
			return use(context.Background(), "slot")
		},
		Handle: func(_ context.Context, _ string, batch []*Letter[int]) error {
			d.batches = append(d.batches, values(batch))
			if d.handle != nil {
				d.handle(values(batch))
			}
			return nil
		},
		Settle: func(batch []*Letter[int], err error) error {
			if d.settle != nil {
				return d.settle(batch, err)
			}
			for _, l := range batch {
				l.Answer(err)
			}
			return nil
		},
		Alone:    d.alone,
		Panicked: func(any, []byte) { d.panicked.Add(1) },
	}, l)
}

func values(batch []*Letter[int]) (all []int) {
	for _, l := range batch {
		all = append(all, l.Value)
	}
	return all
}

// answers collects the answers to letters.
type answers struct {
	mu sync.Mutex
	by map[int]error
}

func (a *answers) to(v int) func(error) {
	return func(err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if _, twice := a.by[v]; twice {
			panic(fmt.Sprintf("%d is answered twice", v))
		}
		if a.by == nil {
			a.by = map[int]error{}
		}
		a.by[v] = err
	}
}

func (a *answers) of(v int) (err error, answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err, answered = a.by[v]
	return err, answered
}

func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.by)
}

// later waits for the time d. Then it waits until the worker is idle.
func later(d time.Duration) {
	time.Sleep(d) // the sleep uses the clock of the synctest bubble
	synctest.Wait()
}

func put(t *testing.T, m *Mailbox[string, int], a *answers, all ...int) {
	t.Helper()
	for _, v := range all {
		if _, err := m.Put(v, a.to(v)); err != nil {
			t.Errorf("Put(%d): %v", v, err)
		}
	}
}

func same(t *testing.T, got, want [][]int) {
	t.Helper()
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("handled %v, want %v", got, want)
	}
}

func TestWaitingForTheSlotMakesTheBatchBigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{slot: func() error { time.Sleep(time.Minute); return nil }}, &answers{}
		m := d.open(limits)
		put(t, m, a, 1)
		synctest.Wait() // the worker waits for its slot
		put(t, m, a, 2, 3)
		later(2 * time.Minute)
		same(t, d.batches, [][]int{{1, 2, 3}})
		if !m.IsIdle() || a.count() != 3 {
			t.Errorf("idle: %t, answered: %d, want all", m.IsIdle(), a.count())
		}
	})
}

func TestABatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{slot: func() error { time.Sleep(time.Second); return nil }}, &answers{}
		m := d.open(Limits{Letters: 100, Batch: 2, Backoff: limits.Backoff})
		put(t, m, a, 1, 2, 3, 4, 5)
		later(time.Minute)
		same(t, d.batches, [][]int{{1, 2}, {3, 4}, {5}})
	})
}

func TestAFullMailboxSaysSoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{slot: func() error { time.Sleep(time.Second); return nil }}, &answers{}
		m := d.open(Limits{Letters: 2, Batch: 2, Backoff: limits.Backoff})
		put(t, m, a, 1, 2)
		if _, err := m.Put(3, a.to(3)); !errors.Is(err, ErrFull) {
			t.Errorf("Put = %v, want ErrFull", err)
		}
		later(time.Minute)
		put(t, m, a, 4)
		later(time.Minute)
		same(t, d.batches, [][]int{{1, 2}, {4}})
	})
}

// A panic costs only its batch. After a wait, the worker starts again and handles the later
// letters.
func TestAPanicCostsItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{}, &answers{}
		d.settle = func(batch []*Letter[int], err error) error {
			if batch[0].Value == 1 {
				panic("nobody tested this")
			}
			batch[0].Answer(nil)
			return nil
		}
		m := d.open(limits)
		put(t, m, a, 1)
		synctest.Wait()
		put(t, m, a, 2)
		synctest.Wait()
		if err, _ := a.of(1); !errors.Is(err, ErrPanicked) || d.panicked.Load() != 1 || a.count() != 1 {
			t.Errorf("answers %v after %d panics, want ErrPanicked to the first letter alone", a.by, d.panicked.Load())
		}
		later(limits.Backoff.Min)
		if err, ok := a.of(2); !ok || err != nil {
			t.Errorf("the second letter is answered %t with %v", ok, err)
		}
	})
}

func TestALetterWithoutAnAnswerIsTriedAgainEverMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tries := time.Now(), []time.Duration{}
		d, a := &desk{}, &answers{}
		d.settle = func(batch []*Letter[int], _ error) error {
			tries = append(tries, time.Since(start))
			if len(tries) < 5 {
				return errors.New("not now")
			}
			batch[0].Answer(nil)
			return nil
		}
		put(t, d.open(limits), a, 1)
		later(time.Minute)
		if want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 11 * time.Second}; !slices.Equal(tries, want) {
			t.Errorf("tried after %v, want %v", tries, want)
		}
	})
}

func TestAReservedPlaceIsNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{}, &answers{}
		m := d.open(limits)
		first, err := m.Reserve(1, a.to(1))
		if err != nil {
			t.Fatal(err)
		}
		second, err := m.Reserve(2, a.to(2))
		if err != nil {
			t.Fatal(err)
		}
		put(t, m, a, 3)
		synctest.Wait()
		same(t, d.batches, nil)
		if v, _ := m.First(); v != 1 {
			t.Errorf("First = %d, want the reserved one", v)
		}
		second.Withdraw()
		synctest.Wait()
		same(t, d.batches, nil)
		first.Release()
		synctest.Wait()
		same(t, d.batches, [][]int{{1, 3}})
	})
}

func TestAWithheldLetterKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{}, &answers{}
		var held *Letter[int]
		d.settle = func(batch []*Letter[int], _ error) error {
			for _, l := range batch {
				if l.Value == 2 && held == nil {
					held = l
					l.Withhold()
					continue
				}
				l.Answer(nil)
			}
			return nil
		}
		m := d.open(limits)
		put(t, m, a, 1, 2, 3)
		synctest.Wait()
		put(t, m, a, 4)
		synctest.Wait()
		if _, early := a.of(4); early {
			t.Error("a letter passed the one that is withheld")
		}
		held.Release()
		synctest.Wait()
		if a.count() != 4 {
			t.Errorf("answered: %v, want all", a.by)
		}
	})
}

func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{slot: func() error { time.Sleep(time.Second); return nil }}, &answers{}
		m := d.open(Limits{Letters: 100, Batch: 1, Backoff: limits.Backoff})
		put(t, m, a, 1, 2, 3)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want that time ran out", err)
		}
		if _, err := m.Put(4, a.to(4)); !errors.Is(err, ErrClosed) {
			t.Errorf("Put = %v, want ErrClosed", err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		same(t, d.batches, [][]int{{1}, {2}, {3}})
		if err := m.Close(t.Context()); err != nil {
			t.Errorf("Close of an empty mailbox = %v", err)
		}
	})
}

// A batch keeps failing. Close answers its letters, so that it is not tried forever.
func TestCloseAnswersWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := &desk{slot: func() error { return errors.New("no slot") }}, &answers{}
		d.settle = func(_ []*Letter[int], err error) error { return err }
		m := d.open(limits)
		put(t, m, a, 1, 2)
		synctest.Wait() // the worker waits before it tries again
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !errors.Is(a.by[1], ErrClosed) || !errors.Is(a.by[2], ErrClosed) {
			t.Errorf("answers %v, want ErrClosed", a.by)
		}
	})
}

// Any sequence of puts, reservations, withdrawals and failures occurs. Every letter that was not
// withdrawn is answered once. The letters are handled in the order of their places.
func TestOrderHoldsAndNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fails := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 20).Draw(r, "fails")
		ops := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 60).Draw(r, "ops")
		batch := rapid.IntRange(1, 7).Draw(r, "batch")
		synctest.Test(t, func(*testing.T) {
			a, order := &answers{}, []int{}
			d := &desk{slot: func() error { time.Sleep(time.Second); return nil }}
			d.settle = func(batch []*Letter[int], _ error) error {
				fail := 0
				if len(fails) > 0 {
					fail, fails = fails[0], fails[1:]
				}
				switch fail {
				case 1:
					return errors.New("not now")
				case 2: // answers only half of the batch
					batch = batch[:len(batch)/2]
				case 3:
					order = append(order, values(batch)...)
					panic("at once")
				}
				for _, l := range batch {
					order = append(order, l.Value)
					l.Answer(nil)
				}
				return nil
			}
			m := d.open(Limits{Letters: 1000, Batch: batch, Backoff: limits.Backoff})
			var reserved []*Letter[int]
			var want []int
			for v, op := range ops {
				switch op {
				case 0, 1:
					want = append(want, v)
					if _, err := m.Put(v, a.to(v)); err != nil {
						r.Fatal(err)
					}
				case 2:
					want = append(want, v)
					l, err := m.Reserve(v, a.to(v))
					if err != nil {
						r.Fatal(err)
					}
					reserved = append(reserved, l)
				case 3:
					later(1500 * time.Millisecond)
				case 4:
					if len(reserved) == 0 {
						continue
					}
					l := reserved[0]
					reserved = reserved[1:]
					if v%2 == 0 {
						l.Release()
						continue
					}
					l.Withdraw()
					want = slices.DeleteFunc(want, func(v int) bool { return v == l.Value })
				}
			}
			for _, l := range reserved {
				l.Release()
			}
			later(time.Hour)
			if !m.IsIdle() || a.count() != len(want) || !slices.Equal(order, want) {
				r.Errorf("handled %v with %d answers, want %v; idle: %t", order, a.count(), want, m.IsIdle())
			}
		})
	})
}

// Odd numbers are handled alone. So the panic of an odd number is the answer to that number only.
func TestAnOwnerSaysWhatIsHandledAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		d := &desk{
			slot:  func() error { <-free; return nil },
			alone: func(v int) bool { return v%2 == 1 },
			handle: func(batch []int) {
				if batch[0] == 3 {
					panic("three")
				}
			},
		}
		m, a := d.open(limits), &answers{}
		put(t, m, a, 2, 4, 3, 6, 5, 8, 10)
		close(free)
		later(time.Minute)
		same(t, d.batches, [][]int{{2, 4}, {3}, {6}, {5}, {8, 10}})
		for _, v := range []int{2, 4, 3, 6, 5, 8, 10} {
			want := error(nil)
			if v == 3 {
				want = ErrPanicked
			}
			if err, answered := a.of(v); !answered || !errors.Is(err, want) {
				t.Errorf("%d is answered %v (%v), want %v", v, err, answered, want)
			}
		}
	})
}
