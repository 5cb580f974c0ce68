package instance_test

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// intake returns an activity to put into the journal.
func intake(id string, recipients, waiting []vocab.Username) instance.Intake {
	return instance.Intake{Key: instance.KeyOf(vocab.ID("https://peer.example/"+id), bob), Raw: []byte(`{"id":"` + id + `"}`), Fetched: []byte(`{}`),
		Recipients: recipients, Waiting: waiting, Named: waiting}
}

func accept(t *testing.T, c *dbtest.Cluster, in instance.Intake) instance.IntakeRow {
	t.Helper()
	row, err := c.Instance.Journal.Accept(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// lies checks how many rows the journal has and how many users wait for a row.
func lies(t *testing.T, c *dbtest.Cluster, rows, waiting int) {
	t.Helper()
	n, err := c.Instance.Journal.Count(t.Context())
	if err != nil || n.Rows != rows || n.Waiting != waiting || n.Oldest.IsZero() != (rows == 0) {
		t.Errorf("the journal holds %+v, %v; want %d rows, and %d who wait", n, err, rows, waiting)
	}
}

func endRows(t *testing.T, c *dbtest.Cluster, rows ...instance.IntakeRow) {
	t.Helper()
	if err := c.Instance.Journal.Finish(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

func users(t *testing.T, c *dbtest.Cluster, names ...string) (all []vocab.Username) {
	t.Helper()
	for _, n := range names {
		u := name(t, n)
		if _, err := c.Instance.Users.Reserve(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

func TestARowThatGrewIsNotEnded(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna", "ben", "cleo")
	first := accept(t, c, intake("1", u[:2], nil))
	merged := accept(t, c, intake("1", u[1:], nil))
	if merged.Seq != first.Seq || merged.Rev != first.Rev+1 {
		t.Errorf("merged into %+v, want row %d as of the next revision", merged, first.Seq)
	}
	other := accept(t, c, intake("2", u, nil))
	endRows(t, c, first, other)
	lies(t, c, 1, 0)
	endRows(t, c, merged)
	lies(t, c, 0, 0)
	if again := accept(t, c, intake("1", u, nil)); again.Rev != 0 || again.Seq <= merged.Seq {
		t.Errorf("afterwards it is %+v, want a new row", again)
	}
}

func TestWhoCausedWhatWaitsIsCounted(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna", "ben", "cleo")
	paid := func(id, payer string, recipients, waiting []vocab.Username) instance.IntakeRow {
		in := intake(id, recipients, waiting)
		in.Payer = payer
		return accept(t, c, in)
	}
	paid("1", "peer.example", nil, u[:2])
	paid("1", "other.example", nil, u[:2]) // merged into the row of activity 1
	paid("2", "other.example", nil, u[:1])
	parked := paid("3", "peer.example", u[:1], nil)
	if err := c.Instance.Journal.Stall(t.Context(), u[0], []int64{parked.Seq}); err != nil {
		t.Fatal(err)
	}
	held := paid("4", "peer.example", u[1:2], nil)
	if err := c.Instance.Journal.Release(t.Context(), []int64{held.Seq}); err != nil {
		t.Fatal(err)
	}
	if err := c.Instance.Journal.Resubmit(t.Context(), intake("5", nil, u[2:])); err != nil {
		t.Fatal(err)
	}
	got, err := c.Instance.Journal.Backlogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	each := int64(len(`{"id":"1"}` + `{}`))
	want := []instance.Backlog{{u[0], "other.example", 1, each}, {u[0], "peer.example", 2, 2 * each}, {u[1], "peer.example", 2, 2 * each}, {u[2], "", 1, each}}
	slices.SortFunc(got, func(a, b instance.Backlog) int {
		return cmp.Or(cmp.Compare(a.User.String(), b.User.String()), cmp.Compare(a.Payer, b.Payer))
	})
	if !slices.Equal(got, want) {
		t.Errorf("counted are %+v, want %+v", got, want)
	}
}

// An activity that its own actor sent is not one that was forwarded, whichever came first.
func TestARowOfItsOwnActorHasNoForwarders(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna")
	carol, dave := []vocab.ID{"https://peer.example/carol"}, []vocab.ID{"https://peer.example/dave"}
	for id, tt := range map[string]struct{ first, second, want []vocab.ID }{
		"1": {nil, carol, nil},
		"2": {carol, nil, nil},
		"3": {nil, nil, nil},
		"4": {carol, dave, append(slices.Clone(carol), dave...)},
		"5": {carol, carol, carol},
	} {
		var row instance.IntakeRow
		for _, from := range [][]vocab.ID{tt.first, tt.second} {
			in := intake(id, nil, u)
			in.Forwarders = from
			row = accept(t, c, in)
		}
		page, err := c.Instance.Journal.ListWaiting(t.Context(), u[0], row.Seq-1, 1, 1<<20)
		if err != nil || len(page) != 1 {
			t.Fatalf("%d rows wait, %v", len(page), err)
		}
		if got := slices.Sorted(slices.Values(page[0].Forwarders)); !slices.Equal(got, tt.want) {
			t.Errorf("sent by %q, then by %q, it was forwarded by %q, want %q", tt.first, tt.second, got, tt.want)
		}
	}
}

func TestARowStaysForThoseWhoWait(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna", "ben", "cleo")
	row := accept(t, c, intake("1", u[:1], u[1:2]))
	if err := c.Instance.Journal.Stall(t.Context(), u[2], []int64{row.Seq, row.Seq + 1000}); err != nil {
		t.Fatal(err)
	}
	endRows(t, c, row)
	lies(t, c, 1, 2)
	if parked, err := c.Instance.Journal.StalledUsers(t.Context(), nil); err != nil || !slices.Equal(parked, u[1:]) {
		t.Errorf("parked are %v, %v; want %v", parked, err, u[1:])
	}
	except := map[int64][]vocab.Username{row.Seq: u[1:2], row.Seq + 1: u[2:]}
	if parked, err := c.Instance.Journal.StalledUsers(t.Context(), except); err != nil || !slices.Equal(parked, u[2:]) {
		t.Errorf("parked are %v, %v; want %v", parked, err, u[2:])
	}
	page, err := c.Instance.Journal.ListWaiting(t.Context(), u[1], 0, 10, 1<<20)
	if err != nil || len(page) != 1 || page[0].Seq != row.Seq || string(page[0].Raw) != `{"id":"1"}` || string(page[0].Fetched) != `{}` || !page[0].Named || page[0].ReceivedAt.IsZero() {
		t.Errorf("WaitingFor = %+v, %v", page, err)
	}
	if page, err := c.Instance.Journal.ListWaiting(t.Context(), u[2], 0, 10, 1<<20); err != nil || len(page) != 1 || page[0].Named {
		t.Errorf("WaitingFor of one who is not named = %+v, %v", page, err)
	}
	// The last two waiting users finish a row at once: one of them removes the row.
	var both sync.WaitGroup
	for _, u := range u[1:] {
		both.Go(func() {
			if n, err := c.Instance.Journal.FinishWaiting(t.Context(), u, []instance.IntakeRow{row}); n != 1 || err != nil {
				t.Errorf("FinishWaiting = %d, %v", n, err)
			}
		})
	}
	both.Wait()
	lies(t, c, 0, 0)
}

// A row grows after a writer has read it. The writer then finishes the row. The user still waits
// for the activity that was merged into the row.
func TestARowThatGrewStillWaits(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna")
	unnamed := intake("1", nil, u)
	unnamed.Named = nil
	accept(t, c, unnamed)
	for _, grows := range []bool{true, false} {
		waits := 0
		page, err := c.Instance.Journal.ListWaiting(t.Context(), u[0], 0, 10, 1<<20)
		if err != nil || len(page) != 1 {
			t.Fatalf("WaitingFor = %+v, %v", page, err)
		}
		if grows {
			accept(t, c, intake("1", nil, u))
			waits = 1
		}
		if n, err := c.Instance.Journal.FinishWaiting(t.Context(), u[0], []instance.IntakeRow{page[0].IntakeRow}); n != 1-waits || err != nil {
			t.Errorf("FinishWaiting = %d, %v; want %d", n, err, 1-waits)
		}
		lies(t, c, waits, waits)
	}
}

func TestWhatWaitsIsReadInPages(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna")
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		in := intake(id, nil, u)
		in.Raw = []byte(`"` + strings.Repeat(id, 1000) + `"`)
		accept(t, c, in)
	}
	for _, tt := range []struct{ n, size, want int }{{10, 1 << 20, 5}, {3, 1 << 20, 3}, {10, 2500, 2}, {10, 1, 1}} {
		page, err := c.Instance.Journal.ListWaiting(t.Context(), u[0], 0, tt.n, tt.size)
		if err != nil || len(page) != tt.want {
			t.Errorf("a page of %d and %d bytes has %d, %v; want %d", tt.n, tt.size, len(page), err, tt.want)
		}
	}
	page, err := c.Instance.Journal.ListWaiting(t.Context(), u[0], 0, 2, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := c.Instance.Journal.ListWaiting(t.Context(), u[0], page[1].Seq, 10, 1<<20); err != nil || len(rest) != 3 || rest[0].Raw[1] != '3' {
		t.Errorf("after the first two there are %d, %v; want three", len(rest), err)
	}
	if n, err := c.Instance.Journal.DropWaiting(t.Context(), u[0]); n != 5 || err != nil {
		t.Errorf("DropWaiting = %d, %v; want 5", n, err)
	}
	lies(t, c, 0, 0)
}

func TestTakingOverMakesEverybodyWait(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna", "ben", "cleo")
	row := accept(t, c, intake("1", u[:2], u[2:]))
	accept(t, c, intake("2", nil, u[:1]))
	held, err := c.Instance.Journal.ListHeld(t.Context(), 0, 0, 10)
	if err != nil || len(held) != 1 || held[0].Seq != row.Seq || held[0].Key != intake("1", nil, nil).Key {
		t.Errorf("HeldIntake = %+v, %v; want the first row", held, err)
	}
	if old, err := c.Instance.Journal.ListHeld(t.Context(), time.Hour, 0, 10); err != nil || len(old) != 0 {
		t.Errorf("an hour old are %+v, %v", old, err)
	}
	if n, err := c.Instance.Journal.TakeOver(t.Context()); n != 1 || err != nil {
		t.Errorf("TakeOver = %d, %v; want 1", n, err)
	}
	endRows(t, c, row) // by the writer that had the row before TakeOver
	lies(t, c, 2, 4)
}

// Once another process has taken the serve lock, the journal refuses changes by the process that
// had the lock before.
func TestAnEarlierEpochChangesNothing(t *testing.T) {
	t.Parallel()
	old, cfg := dbtest.Named(t)
	next := dbtest.Connect(t, cfg)
	u := users(t, old, "anna", "ben")
	release, _, err := old.Instance.Locks.Serve(t.Context(), "lightweb serve")
	if err != nil {
		t.Fatal(err)
	}
	row := accept(t, old, intake("1", u, nil))
	release()
	if release, _, err = next.Instance.Locks.Serve(t.Context(), "lightweb serve"); err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := old.Instance.Journal.Accept(t.Context(), intake("2", u, nil)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Accept = %v, want Unavailable", err)
	}
	if _, err := old.Instance.Journal.Accept(t.Context(), intake("1", u, nil)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("merging Accept = %v, want Unavailable", err)
	}
	if err := old.Instance.Journal.Stall(t.Context(), u[0], []int64{row.Seq}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Park = %v, want Unavailable", err)
	}
	if n, err := old.Instance.Journal.TakeOver(t.Context()); n != 0 || err != nil {
		t.Errorf("TakeOver = %d, %v; want 0", n, err)
	}
	endRows(t, old, row)
	lies(t, next, 1, 0)
	if err := old.Instance.Journal.Resubmit(t.Context(), intake("3", nil, u[:1])); err != nil {
		t.Errorf("an administrator's Resubmit = %v", err)
	}
	if n, err := next.Instance.Journal.TakeOver(t.Context()); n != 1 || err != nil {
		t.Errorf("TakeOver by who serves = %d, %v; want 1", n, err)
	}
	lies(t, next, 2, 3)
}

// The serving process loses the lock and takes it again while it stalls a row. The stall belongs
// to the first epoch, so it fails, and the row is not stored as stalled.
func TestParkingBetweenTwoEpochsIsNotTakenForDone(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	u := users(t, c, "anna", "ben")
	release, _, err := c.Instance.Locks.Serve(t.Context(), "lightweb serve")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	row := accept(t, c, intake("1", u, nil))
	beside, err := dbtest.Open(cfg.URL, cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	tx, err := beside.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var next int64
	if err := tx.QueryRow(`UPDATE serving SET epoch = epoch + 1 RETURNING epoch`).Scan(&next); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`LOCK TABLE serving`); err != nil {
		t.Fatal(err)
	}
	parked := make(chan error, 1)
	go func() { parked <- c.Instance.Journal.Stall(t.Context(), u[0], []int64{row.Seq}) }()
	for waits := false; !waits; { // Stall still uses the epoch before
		if err := tx.QueryRow(`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'serving'::regclass)`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	c.Instance.Journal.SetEpoch(next)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-parked; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Park = %v, want Unavailable", err)
	}
	lies(t, c, 1, 0)
	if err := c.Instance.Journal.Stall(t.Context(), u[0], []int64{row.Seq}); err != nil {
		t.Errorf("Park in the next epoch = %v", err)
	}
	lies(t, c, 1, 1)
}

// Accept, Stall and Finish run concurrently on one row. They lose no recipient, and leave no row.
func TestMergesAndEndsAtOnce(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := users(t, c, "anna", "ben", "cleo")
	var all sync.WaitGroup
	for _, u := range u {
		all.Go(func() {
			for range 50 {
				row, err := c.Instance.Journal.Accept(t.Context(), intake("1", []vocab.Username{u}, nil))
				if err == nil {
					err = c.Instance.Journal.Stall(t.Context(), u, []int64{row.Seq})
				}
				if err == nil {
					err = c.Instance.Journal.Finish(t.Context(), []instance.IntakeRow{row})
				}
				if err == nil {
					_, err = c.Instance.Journal.FinishWaiting(t.Context(), u, []instance.IntakeRow{row})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if _, err := c.Instance.Journal.TakeOver(t.Context()); err != nil { // removes a row that grew while it was being finished
		t.Fatal(err)
	}
	for _, u := range u {
		if _, err := c.Instance.Journal.DropWaiting(t.Context(), u); err != nil {
			t.Error(err)
		}
	}
	lies(t, c, 0, 0)
}
