package instance_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// wishesOf returns n wishes of a kind.
func wishesOf(kind string, n int) (all []instance.Wish) {
	for n := range n {
		all = append(all, instance.Wish{Kind: kind, Account: fmt.Sprintf("a%d@x.example", n), Host: "x.example"})
	}
	return all
}

func TestWishesAreDueOneFollowOfEachActiveUser(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	alice, bob := dbtest.User(t, c, "alice"), dbtest.User(t, c, "bob")
	wishes, now := c.Instance.Wishes, time.Now()
	for _, u := range []vocab.Username{alice, bob} {
		for range 2 { // adding the same wishes again changes nothing
			if _, err := wishes.Add(t.Context(), u, append(wishesOf(instance.WishFollow, 3), wishesOf(instance.WishBlock, 2)...), now); err != nil {
				t.Fatal(err)
			}
		}
	}
	expectDue := func(at time.Time, want ...string) {
		t.Helper()
		all, err := wishes.Due(t.Context(), at, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range all {
			got = append(got, w.User.String()+" "+w.Kind)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("due are %q, want %q", got, want)
		}
	}
	expectDue(now.Add(-time.Second))
	expectDue(now.Add(time.Second), "alice block", "alice block", "alice follow", "bob block", "bob block", "bob follow")
	if err := c.Instance.Users.SetState(t.Context(), bob, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	for _, w := range wishesOf(instance.WishBlock, 2) {
		w.User = alice
		if err := wishes.Remove(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range wishesOf(instance.WishFollow, 3) {
		w.User = alice
		if err := wishes.Postpone(t.Context(), w, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	expectDue(now.Add(time.Second))
	expectDue(now.Add(2*time.Hour), "alice follow")
}

func TestAPostponedWishHasTheAttemptsThatWereCounted(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	alice := dbtest.User(t, c, "alice")
	wishes, now := c.Instance.Wishes, time.Now()
	if _, err := wishes.Add(t.Context(), alice, wishesOf(instance.WishMute, 1), now); err != nil {
		t.Fatal(err)
	}
	for _, attempts := range []int{1, 1, 2} {
		w := wishesOf(instance.WishMute, 1)[0]
		w.User, w.Attempts = alice, attempts
		if err := wishes.Postpone(t.Context(), w, now); err != nil {
			t.Fatal(err)
		}
		all, err := wishes.Due(t.Context(), now, 1)
		if err != nil || len(all) != 1 || all[0].Attempts != attempts {
			t.Errorf("due %+v, %v, want the wish after %d attempts", all, err, attempts)
		}
	}
	if _, err := wishes.Add(t.Context(), alice, wishesOf(instance.WishFollow, 2), now); err != nil {
		t.Fatal(err)
	}
	if accounts, err := wishes.ListAccounts(t.Context(), alice, instance.WishMute); err != nil || !slices.Equal(accounts, []string{"a0@x.example"}) {
		t.Errorf("the accounts are %q, %v", accounts, err)
	}
}

func TestAUserHasSoManyWishesAndNoMore(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	alice := dbtest.User(t, c, "alice")
	if added, err := c.Instance.Wishes.Add(t.Context(), alice, wishesOf(instance.WishFollow, instance.MaxWishes), time.Now()); err != nil || added != instance.MaxWishes {
		t.Fatalf("added %d, %v", added, err)
	}
	_, err := c.Instance.Wishes.Add(t.Context(), alice, []instance.Wish{{Kind: instance.WishFollow, Account: "one@more.example", Host: "more.example"}}, time.Now())
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("one more: %v, want Conflict", err)
	}
}

// Concurrent imports count each other's wishes. So a user never gets more wishes than allowed.
func TestImportsAtOnceKeepTheBoundOfWishes(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	alice := dbtest.User(t, c, "alice")
	var added atomic.Int64
	var wg sync.WaitGroup
	for part := range slices.Chunk(wishesOf(instance.WishFollow, instance.MaxWishes*2), instance.MaxWishes/4*3) {
		wg.Go(func() {
			n, err := c.Instance.Wishes.Add(t.Context(), alice, part, time.Now())
			if err == nil {
				added.Add(int64(n))
			} else if fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if added.Load() > instance.MaxWishes {
		t.Errorf("%d wishes were added, want %d at most", added.Load(), instance.MaxWishes)
	}
}
