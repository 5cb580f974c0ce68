package outbox

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/engine/wish"
)

func TestAWishToMuteAddsTheActorOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const bob, eve = "https://peer.example/users/bob", "https://peer.example/users/eve"
	for _, account := range []string{bob, eve, bob} {
		if err := d.FulfilWish(t.Context(), instance.Wish{User: d.alice, Kind: instance.WishMute, Account: account}); err != nil {
			t.Fatal(err)
		}
	}
	if muted := d.files.User(d.alice).Moderation.MutedActors; !slices.Equal(muted, []vocab.ID{bob, eve}) {
		t.Errorf("alice mutes %v", muted)
	}
}

// An attempt at a wish fails with the kind Config. The wish waits, and the attempt does not count.
func TestAWishToMuteWaitsWhileTheUserMutesAsManyAsAUserMay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const bob = "https://peer.example/users/bob"
	err := d.files.UpdateUser(d.alice, func(c *registry.User) error {
		for n := range 1000 {
			c.Moderation.MutedActors = append(c.Moderation.MutedActors, vocab.ID(fmt.Sprint(bob, n)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.FulfilWish(t.Context(), instance.Wish{User: d.alice, Kind: instance.WishMute, Account: bob}); fault.KindOf(err) != fault.Config {
		t.Errorf("the wish ends with %v, want that it waits", err)
	}
}

// attempt stores a wish of alice's that has failed the given number of times, and lets a watcher
// attempt it. It returns the wishes that are due 5 minutes later.
func (d *desk) attempt(kind string, failed int) []instance.Wish {
	d.t.Helper()
	w := instance.Wish{User: d.alice, Kind: kind, Account: "@x@away.example", Host: "away.example", Attempts: failed}
	if _, err := d.c.Instance.Wishes.Add(d.t.Context(), d.alice, []instance.Wish{w}, d.Now()); err != nil {
		d.t.Fatal(err)
	}
	if err := d.c.Instance.Wishes.Postpone(d.t.Context(), w, d.Now()); err != nil {
		d.t.Fatal(err)
	}
	wish.NewWatcher(wish.Deps{Wishes: d.c.Instance.Wishes, Fulfiller: d, Log: slog.New(slog.DiscardHandler), Now: d.Now}).LookAround(d.t.Context())
	if due, err := d.c.Instance.Wishes.Due(d.t.Context(), d.Now().Add(4*time.Minute), 1); err != nil || len(due) > 0 {
		d.t.Errorf("due within 4 minutes: %+v, %v; want nothing", due, err)
	}
	due, err := d.c.Instance.Wishes.Due(d.t.Context(), d.Now().Add(5*time.Minute), 1)
	if err != nil {
		d.t.Fatal(err)
	}
	return due
}

// A wish is kept if its host does not resolve, because the DNS zone of a host may be missing for a
// day.
func TestAWishWaitsForAHostThatThereIsNot(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{instance.WishBlock, instance.WishMute, instance.WishFollow} {
		d := newDesk(t)
		d.world.fails["https://away.example/users/x"] = fault.New(fault.NoHost, "does not resolve")
		if due := d.attempt(kind, 0); len(due) != 1 || due[0].Attempts != 1 {
			t.Errorf("a wish to %s: after 5 minutes %+v waits, want the wish with one failed attempt", kind, due)
		}
	}
}

// A wish waits without limit while the user's database, the user's keys or this server's
// federation is unavailable. Such attempts do not count.
func TestAWishWaitsForTheUserAndThisServerWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		breaks func(d *desk) error
	}{
		{"the user's database is dirty", func(d *desk) error {
			_, err := dbtest.SQL(d.t, d.c, d.alice).ExecContext(d.t.Context(), `UPDATE schema_migrations SET dirty = true`)
			dbtest.EndConnections(d.t, dbtest.SQL(d.t, d.c, d.alice))
			return err
		}},
		{"the user's keys are away", func(d *desk) error { return os.RemoveAll(d.keyring.Dir(d.alice)) }},
		{"federation is paused", func(d *desk) error {
			d.world.fails["https://away.example/users/x"] = transport.ErrPaused
			return nil
		}},
	} {
		d := newDesk(t)
		d.world.person(t, "away.example", "x", false)
		if err := tt.breaks(d); err != nil {
			t.Fatal(err)
		}
		if due := d.attempt(instance.WishBlock, 3); len(due) != 1 || due[0].Attempts != 3 {
			t.Errorf("%s: after 5 minutes %+v waits, want the wish with three failed attempts", tt.name, due)
		}
	}
}
