package engine_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// An account moves to another server, and its followers follow the new account.
func followersGoWithWhoMoves(t *testing.T, a, b *enginetest.Instance) {
	// mona and mika are the same person
	mona, mika := a.CreateUser(t, "mona"), b.CreateUser(t, "mika")
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

// A move is killed at any moment. The same command finishes the move. The followers receive one
// Move.
func TestAMoveThatIsKilledIsFinishedByTheSameCommand(t *testing.T) {
	t.Parallel()
	const kills = 20
	random := rand.New(rand.NewPCG(17, 3))
	upTo := func(ms int) time.Duration { return time.Duration(random.IntN(ms)) * time.Millisecond }
	a, b := enginetest.StartTwo(t)
	stays := b.CreateUser(t, "stays")
	olds, moved := make([]*enginetest.User, kills), make([]string, kills)
	for n := range olds {
		was, is := a.CreateUser(t, fmt.Sprint("was", n)), b.CreateUser(t, fmt.Sprint("is", n))
		olds[n], moved[n] = was, is.ID
		befriend(t, stays, was)
		from, to := []string{"user", "move", is.Name, "--from", was.ID}, []string{"user", "move", was.Name, "--to", is.ID, "--yes"}
		b.RunUntil(t, upTo(400), from...)
		healed(t, b, from)
		a.RunUntil(t, upTo(400), to...)
		if dies := []*enginetest.Instance{a, b, nil}[n%3]; dies != nil {
			a.Run(t, to...) // the command may be refused while the new account does not yet show its alias
			after := time.NewTimer(upTo(3000))
			<-after.C
			dies.Kill()
			dies.Start(t)
		}
		healed(t, a, to)
	}
	slices.Sort(moved)
	enginetest.Eventually(t, "the follower follows the new accounts", func() bool {
		return slices.Equal(moved, stays.Column(t, `SELECT actor_uri FROM relationships WHERE type = 'following' AND status = 'accepted' ORDER BY actor_uri COLLATE "C"`))
	})
	for _, old := range olds {
		if got := shownActor(t, old).Text("movedTo"); !slices.Contains(moved, got) {
			t.Errorf("%s shows that it moved to %q", old.Name, got)
		}
		if sent := old.Column(t, `SELECT uri FROM activities WHERE type = 'Move'`); len(sent) != 1 {
			t.Errorf("%s sent %d Moves, want 1", old.Name, len(sent))
		}
	}
}

// healed runs a killed command again, and checks that it succeeds.
func healed(t *testing.T, i *enginetest.Instance, command []string) {
	t.Helper()
	if got := i.Run(t, command...); got.Code != 0 {
		t.Fatalf("%q ended with %d: %s", command, got.Code, got.Stderr)
	}
}
