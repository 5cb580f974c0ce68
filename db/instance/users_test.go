package instance_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// State answers even while all shared connections to the instance database are in use and other
// calls wait for one.
func TestWhoIsHereIsToldWhateverElseIsDone(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	release, err := c.Instance.TakeAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := make(chan error, 1)
	go func() {
		_, err := c.Instance.Acquaintances.Users(waiting, bob, false)
		refused <- err
	}()
	for range 2 { // the second answer comes from the cache
		if state, err := c.Instance.Users.State(t.Context(), u); err != nil || state != instance.UserActive {
			t.Errorf("State = %s, %v, want active", state, err)
		}
	}
	if state, err := c.Instance.Users.State(t.Context(), name(t, "nobody")); fault.KindOf(err) != fault.NoUser {
		t.Errorf("State of nobody = %s, %v, want NoUser", state, err)
	}
	cancel()
	if err := <-refused; err == nil {
		t.Error("there was a connection left for what waited")
	}
}

func TestAcquaintancesMaySayTooMuchNeverTooLittle(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	a, b, d := dbtest.User(t, c, "a"), dbtest.User(t, c, "b"), dbtest.User(t, c, "d")
	acquaint := func(follows bool, users ...vocab.Username) {
		t.Helper()
		if err := c.Instance.Acquaintances.Add(t.Context(), bob, users, follows); err != nil {
			t.Fatal(err)
		}
	}
	check := func(follows bool, want ...vocab.Username) {
		t.Helper()
		got, err := c.Instance.Acquaintances.Users(t.Context(), bob, follows)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Acquainted(follows %t) = %v, %v; want %v", follows, got, err, want)
		}
	}
	check(false)
	acquaint(false)
	acquaint(false, b, a, a)
	check(false, a, b)
	check(true)
	acquaint(true, b, d, d)
	check(true, b, d)
	acquaint(false, b) // a later acquaintance does not undo the follow
	check(true, b, d)
	check(false, a, b, d)
	dbtest.Run(t, cfg.Name, `UPDATE users SET state = 'suspended' WHERE username = 'b'`)
	check(true, d)
	if got, err := c.Instance.Acquaintances.Users(t.Context(), carol, false); len(got) != 0 || err != nil {
		t.Errorf("a stranger is acquainted with %v, %v", got, err)
	}
	elsewhere := dbtest.Connect(t, cfg) // elsewhere has not stored in its cache which users are active
	if active, err := elsewhere.Instance.Users.Active(t.Context(), []vocab.Username{d, b, a}); err != nil || !slices.Equal(active, []vocab.Username{a, d}) {
		t.Errorf("ActiveUsers = %v, %v", active, err)
	}
	if active, err := c.Instance.Users.Active(t.Context(), nil); err != nil || len(active) != 0 {
		t.Errorf("ActiveUsers of none = %v, %v", active, err)
	}
}

func TestAcquaintWithTheSameUsersFromManySides(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	users := []vocab.Username{dbtest.User(t, c, "a"), dbtest.User(t, c, "b"), dbtest.User(t, c, "d")}
	reversed := slices.Clone(users)
	slices.Reverse(reversed)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			order := users
			if n%2 == 0 {
				order = reversed
			}
			if err := c.Instance.Acquaintances.Add(t.Context(), bob, order, n%3 == 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestEventsOfOtherProcessesAreDueUntilTheyAreCleared(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	mark := func() {
		t.Helper()
		if err := c.Instance.Users.MarkEventsDue(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	list := func(when string, want int) []instance.EventsDue {
		t.Helper()
		due, err := c.Instance.Users.ListEventsDue(t.Context())
		if err != nil || len(due) != want || want == 1 && due[0].User != u {
			t.Errorf("%s: ListEventsDue = %v, %v, want %d", when, due, err, want)
		}
		return due
	}
	clearDue := func(due []instance.EventsDue) {
		t.Helper()
		if err := c.Instance.Users.ClearEventsDue(t.Context(), due); err != nil {
			t.Fatal(err)
		}
	}
	clearDue(list("activated", 1)) // the creation of a user counts as a mark
	list("before the mark", 0)
	mark()
	list("marked", 1)
	first := list("read once", 1)
	mark()
	clearDue(first)
	clearDue(list("marked again since it was read", 1))
	list("cleared", 0)
}

// A clock that was ahead stored a prune in the future for some users. Those users are still
// pruned.
func TestUsersArePrunedAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx, began := t.Context(), time.Now()
	ahead, once, newly, never := dbtest.User(t, c, "ahead"), dbtest.User(t, c, "once"), dbtest.User(t, c, "newly"), dbtest.User(t, c, "never")
	for u, at := range map[vocab.Username]time.Time{ahead: began.AddDate(0, 1, 0), once: began.AddDate(0, 0, -1), newly: began.Add(-time.Hour)} {
		if err := c.Instance.Users.MarkPruned(ctx, u, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		since time.Time
		want  []vocab.Username
	}{{began.Add(-12 * time.Hour), []vocab.Username{never, once, ahead}}, {time.Time{}, []vocab.Username{never, once, newly, ahead}}} {
		if got, err := c.Instance.Users.ListToPrune(ctx, nil, tt.since); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("not pruned since %v: %v, %v; want %v", tt.since, got, err, tt.want)
		}
	}
}

// The user whose tokens were used last comes first, those who used none come at the end, and
// suspended users are not in the list.
func TestUsersAreListedByTheirLastUse(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx, began := t.Context(), time.Now()
	alice, bob, carol, dave := dbtest.User(t, c, "alice"), dbtest.User(t, c, "bob"), dbtest.User(t, c, "carol"), dbtest.User(t, c, "dave")
	use := func(u vocab.Username, at time.Time) {
		t.Helper()
		id := uuid.New()
		token := instance.Token{ID: id, User: u, Scopes: []string{"read"}, CreatedAt: began.AddDate(0, 0, -2)}
		if err := c.Instance.Tokens.Add(ctx, token, sha256.Sum256(id[:])); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Instance.Tokens.Find(ctx, sha256.Sum256(id[:]), at); err != nil {
			t.Fatal(err)
		}
	}
	use(bob, began.AddDate(0, 0, -1))
	use(bob, began.Add(-5*time.Hour))
	use(carol, began.Add(-time.Hour))
	use(dave, began)
	if err := c.Instance.Users.SetState(ctx, dave, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int][]vocab.Username{10: {carol, bob, alice}, 2: {carol, bob}} {
		if got, err := c.Instance.Users.ListByUse(ctx, n); err != nil || !slices.Equal(got, want) {
			t.Errorf("the first %d are %v, %v; want %v", n, got, err, want)
		}
	}
}
