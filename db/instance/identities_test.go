package instance_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
)

// An identity belongs to one user, who can sign in with it until it is removed.
func TestAnIdentityIsATokenOfOneUser(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	other, s := dbtest.User(t, c, "bob"), c.Instance.Identities
	const issuer = "https://id.example"
	for range 2 {
		if err := s.Link(t.Context(), u, issuer, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Link(t.Context(), other, issuer, "1"); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second user has the identity: %v", err)
	}
	if err := s.Link(t.Context(), other, "https://else.example", "1"); err != nil {
		t.Errorf("the subject of another issuer: %v", err)
	}
	who, digest, found, err := s.Find(t.Context(), issuer, "1")
	if err != nil || !found || who != u {
		t.Fatalf("the identity is of %v, %t, %v", who, found, err)
	}
	if token, err := c.Instance.Tokens.Find(t.Context(), digest, now); err != nil || token.User != u || !token.Has("read") || !token.Has("write") || token.Has("admin") {
		t.Errorf("its token is %+v, %v", token, err)
	}
	if list, err := s.List(t.Context(), u); err != nil || len(list) != 1 || list[0].Issuer != issuer || list[0].Subject != "1" || list[0].User != u {
		t.Errorf("the identities of %s are %+v, %v", u, list, err)
	}
	if _, _, found, err := s.Find(t.Context(), issuer, "2"); found || err != nil {
		t.Errorf("an unknown identity is found: %t, %v", found, err)
	}
	if err := s.Unlink(t.Context(), other, issuer, "1"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the identity is taken from somebody else: %v", err)
	}
	if err := s.Unlink(t.Context(), u, issuer, "1"); err != nil {
		t.Error(err)
	}
	if _, err := c.Instance.Tokens.Find(t.Context(), digest, now); fault.KindOf(err) != fault.Unauthenticated {
		t.Errorf("the token of an identity that was taken away: %v", err)
	}
	for n := range instance.MostIdentities + 1 {
		err := s.Link(t.Context(), u, issuer, fmt.Sprint("many", n))
		if isOver := n == instance.MostIdentities; (fault.KindOf(err) == fault.Conflict) != isOver {
			t.Errorf("identity %d: %v", n+1, err)
		}
	}
}

// Concurrent links count each other. So a user never gets more identities than allowed.
func TestLinksAtOnceKeepTheirBound(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	s := c.Instance.Identities
	var linked atomic.Int32
	var wg sync.WaitGroup
	for n := range 3 * instance.MostIdentities {
		wg.Go(func() {
			err := s.Link(t.Context(), u, "https://id.example", fmt.Sprint(n))
			if err == nil {
				linked.Add(1)
			} else if fault.KindOf(err) != fault.Conflict {
				t.Errorf("link %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if list, err := s.List(t.Context(), u); err != nil || len(list) != instance.MostIdentities || int(linked.Load()) != len(list) {
		t.Errorf("%d links were made and %d are there, %v; want %d", linked.Load(), len(list), err, instance.MostIdentities)
	}
}
