package outbox

import (
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/instance"
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
