package dump_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const claimer vocab.ID = "https://peer.example/users/bob"

// publish publishes key packages of the user's phone. The parameter refs has their references.
func publish(t *testing.T, c *db.Cluster, u vocab.Username, last bool, refs ...string) (ids []uuid.UUID) {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, ref := range refs {
			ids = append(ids, uuid.Must(uuid.NewV7()))
			k := user.KeyPackage{ID: ids[len(ids)-1], Ref: []byte(ref), Device: "phone", Suite: 1, Content: []byte(ref), LastResort: last, NotAfter: now.AddDate(0, 1, 0), CreatedAt: now}
			if _, err := tx.KeyPackages.Add(ctx, k); err != nil {
				return err
			}
		}
		return nil
	})
	return ids
}

// claim claims the user's key packages. It returns the references of the key packages.
func claim(t *testing.T, c *db.Cluster, u vocab.Username) (refs []string) {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		got, err := tx.KeyPackages.Claim(ctx, claimer, now)
		for _, k := range got {
			refs = append(refs, string(k.Ref))
		}
		return err
	})
	return refs
}

func TestAKeyPackageThatWasClaimedAfterTheBackupIsNotClaimedAgain(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	publish(t, c, u, false, "first", "second")
	publish(t, c, u, true, "last resort")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.KeyPackages.NoteLow(ctx, true) })
	b := take(t, c)
	if got := claim(t, c, u); len(got) != 1 || got[0] != "first" {
		t.Fatalf("claimed %q, want the first", got)
	}
	c = replaced(t, c, cfg, b, u)
	for range 2 {
		if got := claim(t, c, u); len(got) != 1 || got[0] != "last resort" {
			t.Errorf("after the restore %q is claimed, want the package of last resort", got)
		}
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, ref := range []string{"first", "second"} {
			if has, err := tx.KeyPackages.Has(ctx, []byte(ref)); err != nil || !has {
				t.Errorf("a Welcome for the %s package is refused, %v", ref, err)
			}
		}
		if claims, err := tx.KeyPackages.CountClaims(ctx, now.AddDate(0, 0, -1)); err != nil || len(claims) != 0 {
			t.Errorf("actors have claims that they did not make: %v, %v", claims, err)
		}
		s, err := tx.KeyPackages.CountStats(ctx, now)
		if err == nil && (s.Told || s.OneTime != 0 || s.LastResort != 1) {
			t.Errorf("the stock is %+v, want one of last resort, and that the user is told anew", s)
		}
		return err
	})
}

func TestAKeyPackageThatWasRevokedAfterTheBackupStaysRevoked(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	ids := append(publish(t, c, u, false, "for one claim"), publish(t, c, u, true, "last resort")...)
	h := dbtest.Hosted(t, c, u, 4)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Welcomes.Add(ctx, user.Welcome{ID: uuid.New(), Conversation: h.ID, Recipient: dbtest.AliceActor, KeyPackage: []byte("for one claim"), Content: []byte("welcome"), CreatedAt: now})
	})
	b := take(t, c)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, id := range ids {
			if _, err := tx.KeyPackages.Revoke(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
	c = replaced(t, c, cfg, b, u)
	if got := claim(t, c, u); len(got) != 0 {
		t.Errorf("after the restore %q is claimed", got)
	}
	for query, want := range map[string]int64{
		`SELECT count(*) FROM mls_key_packages WHERE state = 'revoked'`: 2,
		`SELECT count(*) FROM mls_welcomes WHERE state = 'invalid'`:     1,
	} {
		if got := number(t, databaseOf(t, c, u), query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}
