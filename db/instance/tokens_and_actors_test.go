package instance_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestATokenIsFoundWhileItIsValid(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	other := dbtest.User(t, c, "bob")
	ends := now.Add(time.Hour)
	digest := func(s string) [32]byte { return sha256.Sum256([]byte(s)) }
	forever := instance.Token{ID: uuid.New(), User: u, Name: "phone", Scopes: []string{"read", "write"}, CreatedAt: now}
	brief := instance.Token{ID: uuid.New(), User: u, Scopes: []string{}, CreatedAt: now.Add(time.Second), ExpiresAt: &ends}
	for token, secret := range map[*instance.Token]string{&forever: "forever", &brief: "brief"} {
		if err := c.Instance.Tokens.Add(t.Context(), *token, digest(secret)); err != nil {
			t.Fatal(err)
		}
	}
	find := func(secret string, at time.Time, want bool) {
		t.Helper()
		token, err := c.Instance.Tokens.Find(t.Context(), digest(secret), at)
		if (err == nil) != want || err != nil && fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("FindToken(%s, %v) = %+v, %v; want it %t", secret, at, token, err, want)
		}
	}
	used := func(want time.Duration) {
		t.Helper()
		tokens, err := c.Instance.Tokens.List(t.Context(), u)
		if err != nil || len(tokens) == 0 || tokens[0].LastUsedAt == nil || tokens[0].LastUsedAt.Sub(now) != want {
			t.Errorf("Tokens = %+v, %v; want the first used %v after", tokens, err, want)
		}
	}
	find("unknown", now, false)
	find("brief", ends.Add(-time.Second), true)
	find("brief", ends, false)
	find("forever", now, true)
	used(0)
	find("forever", now.Add(59*time.Minute), true)
	used(0) // the last use is stored by the hour
	find("forever", now.Add(time.Hour), true)
	used(time.Hour)
	got, err := c.Instance.Tokens.Find(t.Context(), digest("forever"), now)
	if err != nil || got.ID != forever.ID || got.User != u || got.Name != "phone" || !slices.Equal(got.Scopes, forever.Scopes) {
		t.Errorf("FindToken = %+v, %v", got, err)
	}
	if err := c.Instance.Users.SetState(t.Context(), u, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	find("forever", now, false)
	if err := c.Instance.Users.SetState(t.Context(), u, instance.UserActive); err != nil {
		t.Fatal(err)
	}
	find("forever", now, true)
	if err := c.Instance.Tokens.Remove(t.Context(), other, forever.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("RemoveToken of another's = %v, want NotFound", err)
	}
	if err := c.Instance.Tokens.Remove(t.Context(), u, forever.ID); err != nil {
		t.Error(err)
	}
	find("forever", now, false)
}

// key returns the JSON of a key in an actor document. The PEM text in it is not valid.
func key(id, owner vocab.ID) string {
	return `,"publicKey":{"id":"` + string(id) + `","owner":"` + string(owner) + `","publicKeyPem":"pem"}`
}

func TestAKeyBelongsToTheFirstActorOfItsServerThatListsIt(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	const mallory vocab.ID = "https://peer.example/users/mallory"
	save := func(id, keyID vocab.ID) {
		t.Helper()
		if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, id, key(keyID, id)), FetchedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	owner := func(keyID, want vocab.ID) {
		t.Helper()
		r, err := c.Instance.Actors.FindByKey(t.Context(), keyID)
		got := vocab.ID("")
		if r != nil {
			got = r.Actor.ID
		}
		if err != nil || got != want {
			t.Errorf("RemoteActorByKey(%s) = %q, %v; want %q", keyID, got, err, want)
		}
	}
	save(bob, bob+"#main-key")
	owner(bob+"#main-key", bob)
	save(mallory, bob+"#main-key")
	owner(bob+"#main-key", bob)
	save(carol, bob+"#second-key") // carol is on another server than bob
	owner(bob+"#second-key", "")
	save(bob, bob+"#new-key")
	owner(bob+"#new-key", bob)
	owner(bob+"#main-key", "") // bob's document does not list the key any more
}

func TestARemoteActorIsRememberedAsItsServerDescribesIt(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	if r, err := c.Instance.Actors.Find(t.Context(), bob); r != nil || err != nil {
		t.Errorf("RemoteActor of a stranger = %+v, %v", r, err)
	}
	if err := c.Instance.Actors.MarkGone(t.Context(), bob, now); err != nil {
		t.Error(err)
	}
	save := func(handle, fields string, at time.Time) {
		t.Helper()
		if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, bob, fields), Handle: handle, FetchedAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	save("bob@peer.example", "", now)
	save("", `,"name":"Bob"`, now.Add(time.Hour))
	r, err := c.Instance.Actors.FindByHandle(t.Context(), "bob@peer.example")
	if err != nil || r == nil || r.Actor.Name != "Bob" || r.Handle != "bob@peer.example" || !r.FetchedAt.Equal(now.Add(time.Hour)) || r.Gone {
		t.Fatalf("RemoteActorByHandle = %+v, %v", r, err)
	}
	if err := c.Instance.Actors.MarkGone(t.Context(), bob, now); err != nil {
		t.Error(err)
	}
	if r, err := c.Instance.Actors.Find(t.Context(), bob); err != nil || r == nil || !r.Gone {
		t.Errorf("RemoteActor after it has gone = %+v, %v", r, err)
	}
	save("", "", now)
	if r, err := c.Instance.Actors.Find(t.Context(), bob); err != nil || r == nil || r.Gone {
		t.Errorf("RemoteActor after it came back = %+v, %v", r, err)
	}
}

// Two processes fetch an actor. The earlier answer is saved last, and does not replace the newer
// one.
func TestAnOlderAnswerTakesNothingBackOfAnActor(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	actors := c.Instance.Actors
	as := func(fields string, at time.Time) instance.RemoteActor {
		return instance.RemoteActor{Actor: actorOf(t, bob, fields), FetchedAt: at}
	}
	if err := actors.Save(t.Context(), as(`,"name":"Bob"`, now)); err != nil {
		t.Fatal(err)
	}
	for write, do := range map[string]func(context.Context, instance.RemoteActor) error{"saved": actors.Save, "renewed": actors.Renew} {
		if err := do(t.Context(), as(`,"name":"Robert"`, now.Add(-time.Second))); err != nil {
			t.Fatal(err)
		}
		if r, err := actors.Find(t.Context(), bob); err != nil || r == nil || r.Actor.Name != "Bob" || !r.FetchedAt.Equal(now) {
			t.Errorf("after an older answer was %s the actor is %+v, %v", write, r, err)
		}
	}
	if err := actors.MarkGone(t.Context(), bob, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for write, do := range map[string]func(context.Context, instance.RemoteActor) error{"saved": actors.Save, "renewed": actors.Renew} {
		if err := do(t.Context(), as("", now.Add(time.Second))); err != nil {
			t.Fatal(err)
		}
		if r, err := actors.Find(t.Context(), bob); err != nil || r == nil || !r.Gone {
			t.Errorf("after an answer from before its deletion was %s the actor is %+v, %v", write, r, err)
		}
	}
}

func TestOneActorSavedFromManySides(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, bob, key(bob+"#main-key", bob)), FetchedAt: now}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestAHostsDialectIsRemembered(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	for _, want := range []string{"", "cavage", "rfc9421"} {
		if want != "" {
			if err := c.Instance.Hosts.LearnDialect(t.Context(), "peer.example", want, now); err != nil {
				t.Error(err)
			}
		}
		got, at, err := c.Instance.Hosts.Dialect(t.Context(), "peer.example")
		if got != want || at.Equal(now) != (want != "") || err != nil {
			t.Errorf("HostDialect = %q, learned at %s, %v; want %q, learned at %s", got, at, err, want, now)
		}
	}
}

// Concurrent look-ups of tokens share one statement. A look-up that begins after a token was
// revoked does not find the token.
func TestNoLookUpFindsWhatWasRevokedBefore(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	stays := instance.Token{ID: uuid.New(), User: u, Scopes: []string{"read"}, CreatedAt: now}
	if err := c.Instance.Tokens.Add(t.Context(), stays, sha256.Sum256([]byte("stays"))); err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		token, digest := instance.Token{ID: uuid.New(), User: u, Scopes: []string{"read"}, CreatedAt: now}, sha256.Sum256([]byte{byte(round)})
		if err := c.Instance.Tokens.Add(t.Context(), token, digest); err != nil {
			t.Fatal(err)
		}
		var revoked atomic.Bool
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				for isRefused := false; !isRefused; {
					wasRevoked := revoked.Load()
					found, err := c.Instance.Tokens.Find(t.Context(), digest, now)
					isRefused = fault.KindOf(err) == fault.Unauthenticated
					if err == nil && (wasRevoked || found.ID != token.ID) || err != nil && !isRefused {
						t.Errorf("found %s, revoked before: %t, %v", found.ID, wasRevoked, err)
						return
					}
					if other, err := c.Instance.Tokens.Find(t.Context(), sha256.Sum256([]byte("stays")), now); err != nil || other.ID != stays.ID {
						t.Errorf("beside it %s is found, %v", other.ID, err)
						return
					}
				}
			})
		}
		if err := c.Instance.Tokens.Remove(t.Context(), u, token.ID); err != nil {
			t.Error(err)
		}
		revoked.Store(true)
		readers.Wait()
	}
}
