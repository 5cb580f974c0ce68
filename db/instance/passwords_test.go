package instance_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
)

// Each password has a token. The token is valid until another password replaces the password.
func TestAPasswordIsATokenThatAnotherOneReplaces(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	other := dbtest.User(t, c, "bob")
	p := c.Instance.Passwords
	if found, err := p.Find(t.Context(), u); found != nil || err != nil {
		t.Errorf("a password before there is one: %v, %v", found, err)
	}
	holds := func(of instance.Password, want bool) {
		t.Helper()
		token, err := c.Instance.Tokens.Find(t.Context(), of.Digest, now)
		if (err == nil) != want || want && (token.User != u || token.ID != of.ID || !token.Has("read") || !token.Has("write") || len(token.Scopes) != 2) {
			t.Errorf("a token of %s is %+v, %v; want one: %t", of.Hash, token, err, want)
		}
	}
	is := func(want instance.Password) {
		t.Helper()
		if found, err := p.Find(t.Context(), u); err != nil || found == nil || *found != want {
			t.Errorf("the password is %+v, %v, want %+v", found, err, want)
		}
	}
	first, second, third := instance.NewPassword("first"), instance.NewPassword("second"), instance.NewPassword("third")
	for _, err := range []error{p.Set(t.Context(), other, instance.NewPassword("of bob")), p.Set(t.Context(), u, first)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	is(first)
	holds(first, true)
	if err := p.Set(t.Context(), u, second); err != nil {
		t.Fatal(err)
	}
	is(second)
	holds(first, false)
	holds(second, true)
	if err := p.Replace(t.Context(), u, first.ID, third); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a password that was replaced is replaced: %v", err)
	}
	if err := p.Replace(t.Context(), other, second.ID, third); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a password is replaced for somebody else: %v", err)
	}
	is(second)
	if err := p.SetHash(t.Context(), second.ID, "hashed anew"); err != nil {
		t.Fatal(err)
	}
	second.Hash = "hashed anew"
	is(second)
	holds(second, true)
	if err := p.Replace(t.Context(), u, second.ID, third); err != nil {
		t.Fatal(err)
	}
	is(third)
	holds(second, false)
	if err := p.Remove(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	holds(third, false)
	if err := p.Remove(t.Context(), u); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a password is removed twice: %v", err)
	}
	for name, want := range map[string]bool{"alice": false, "bob": true} {
		who := u
		if name == "bob" {
			who = other
		}
		if has, err := p.Has(t.Context(), who); has != want || err != nil {
			t.Errorf("%s has a password: %t, %v", name, has, err)
		}
	}
}

// A suspended user cannot sign in. The operator can set a suspended user's password, but not the
// password of a user who is being deleted.
func TestAPasswordIsOfAnActiveUser(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	p, first := c.Instance.Passwords, instance.NewPassword("first")
	if err := c.Instance.Users.SetState(t.Context(), u, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	if err := p.Set(t.Context(), u, first); err != nil {
		t.Fatal(err)
	}
	if found, err := p.Find(t.Context(), u); found != nil || err != nil {
		t.Errorf("a suspended user's password is %v, %v", found, err)
	}
	if has, err := p.Has(t.Context(), u); !has || err != nil {
		t.Errorf("a suspended user has a password: %t, %v", has, err)
	}
	if err := c.Instance.Users.SetState(t.Context(), u, instance.UserActive); err != nil {
		t.Fatal(err)
	}
	if found, err := p.Find(t.Context(), u); err != nil || found == nil || *found != first {
		t.Errorf("the password is %v, %v", found, err)
	}
	if _, err := c.Instance.Users.BeginDeletion(t.Context(), u, now); err != nil {
		t.Fatal(err)
	}
	if err := p.Set(t.Context(), u, instance.NewPassword("second")); fault.KindOf(err) != fault.NoUser {
		t.Errorf("who is being deleted gets a password: %v", err)
	}
	if found, err := p.Find(t.Context(), u); found != nil || err != nil {
		t.Errorf("the password of who is being deleted is %v, %v", found, err)
	}
	if err := c.Instance.Users.FinishDeletion(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if has, err := p.Has(t.Context(), u); has || err != nil {
		t.Errorf("who was deleted has a password: %t, %v", has, err)
	}
}

// A suspension ends all sessions that began with a password or an identity of the user. The
// sessions stay ended when the user is active again. New logins then work, and so do the user's
// other tokens.
func TestASuspensionEndsWhatLoginsBegan(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	users, tokens, identities := c.Instance.Users, c.Instance.Tokens, c.Instance.Identities
	const issuer = "https://id.example"
	password, key := instance.NewPassword("hash"), [32]byte{1}
	if err := c.Instance.Passwords.Set(t.Context(), u, password); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Add(t.Context(), instance.Token{ID: uuid.New(), User: u, Scopes: []string{instance.ScopeRead}, CreatedAt: now}, key); err != nil {
		t.Fatal(err)
	}
	begun := [][32]byte{password.Digest}
	for _, subject := range []string{"1", "2"} {
		if err := identities.Link(t.Context(), u, issuer, subject); err != nil {
			t.Fatal(err)
		}
		_, digest, _, err := identities.Find(t.Context(), issuer, subject)
		if err != nil {
			t.Fatal(err)
		}
		begun = append(begun, digest)
	}
	for _, state := range []string{instance.UserSuspended, instance.UserActive} {
		if err := users.SetState(t.Context(), u, state); err != nil {
			t.Fatal(err)
		}
	}
	for n, digest := range begun {
		if _, err := tokens.Find(t.Context(), digest, now); fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("login %d goes on: %v", n, err)
		}
	}
	if _, err := tokens.Find(t.Context(), key, now); err != nil {
		t.Errorf("the token is refused: %v", err)
	}
	again, err := c.Instance.Passwords.Find(t.Context(), u)
	if err != nil || again == nil || again.ID == password.ID || again.Hash != password.Hash {
		t.Fatalf("the password is %+v, %v", again, err)
	}
	if _, err := tokens.Find(t.Context(), again.Digest, now); err != nil {
		t.Errorf("a new login: %v", err)
	}
	if list, err := identities.List(t.Context(), u); err != nil || len(list) != 2 {
		t.Errorf("the identities are %+v, %v", list, err)
	}
}
