package outbox

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
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

// A wish whose fault is Config waits, and does not count as tried.
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
