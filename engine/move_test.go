package engine_test

import (
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// An account moves to another server, or on its own, and its followers go with it.
func followersGoWithWhoMoves(t *testing.T, a, b *enginetest.Instance) {
	mona, mika := a.CreateUser(t, "mona"), b.CreateUser(t, "mika") // the same person
	far, near := b.CreateUser(t, "far"), a.CreateUser(t, "near")
	befriend(t, far, mona)
	befriend(t, near, mona)
	if got := a.Run(t, "user", "move", "mona", "--to", mika.Handle, "--yes"); got.Code != 73 {
		t.Errorf("a move to an account that does not agree ended with %d %s, want 73", got.Code, got.Stderr)
	}
	if got := b.Run(t, "user", "move", "mika", "--from", mona.ID); got.Code != 0 {
		t.Fatalf("user move --from ended with %d: %s", got.Code, got.Stderr)
	}
	enginetest.Eventually(t, "the new account names the old one", func() bool { return shownActor(t, mika)["alsoKnownAs"] != nil })
	for range 2 {
		if got := a.Run(t, "user", "move", "mona", "--to", mika.Handle, "--yes"); got.Code != 0 {
			t.Fatalf("user move --to ended with %d: %s", got.Code, got.Stderr)
		}
	}
	for _, u := range []*enginetest.User{far, near} {
		enginetest.Eventually(t, u.Name+" follows the new account", func() bool {
			got := u.Column(t, `SELECT actor_uri FROM relationships WHERE type = 'following' AND status = 'accepted'`)
			return len(got) == 1 && got[0] == mika.ID
		})
	}
	if got := shownActor(t, mona).Text("movedTo"); got != mika.ID {
		t.Errorf("the old account shows that it moved to %q", got)
	}
	if sent := mona.Column(t, `SELECT uri FROM activities WHERE type = 'Move'`); len(sent) != 1 {
		t.Errorf("%d Moves were sent, want 1", len(sent))
	}
	var page struct{ TotalItems int }
	enginetest.Fetch(t, mona.ID+"/followers").Decode(t, &page)
	if got := enginetest.Fetch(t, mona.ID); got.Status != http.StatusOK || page.TotalItems != 0 {
		t.Errorf("the old account is answered %d and has %d followers, want 200 and none", got.Status, page.TotalItems)
	}
}
