package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A peer learns of rotated keys and at once accepts signatures with the new key. Proofs with the
// old key stay valid.
func rotatedKeysAreTaken(t *testing.T, a, b *enginetest.Instance) {
	rita, rob := a.CreateUser(t, "rita"), b.CreateUser(t, "rob")
	befriend(t, rob, rita)
	before := shownActor(t, rita)
	if got := a.Run(t, "user", "rotate-keys", "rita", "--yes"); got.Code != 0 {
		t.Fatalf("user rotate-keys ended with %d: %s", got.Code, got.Stderr)
	}
	enginetest.Eventually(t, "rita's keys are new", func() bool {
		return shownActor(t, rita).Sub("publicKey").Text("publicKeyPem") != before.Sub("publicKey").Text("publicKeyPem")
	})
	awaitTold(t, rob, rita, 1)
	create, _ := rita.Post(t, map[string]any{"content": "signed anew", "visibility": "public"})
	rob.Await(t, "main", "the post that is signed with the new key", func(i enginetest.Item) bool { return i.ActivityURI == create })
	shown := shownActor(t, rita).Subs("assertionMethod")
	if old := before.Subs("assertionMethod")[0]; len(shown) != 2 || shown[1].Text("publicKeyMultibase") != old.Text("publicKeyMultibase") || shown[1].Text("id") != old.Text("id") {
		t.Errorf("rita shows %v, want the old key after the new one", shown)
	}
	back := rob.Do(t, "Reply", map[string]any{"objectId": enginetest.ObjectOf(t, rob, create), "content": "and you?"}).ActivityID
	rita.Await(t, "main", "the answer", func(i enginetest.Item) bool { return i.ActivityURI == back })
}

// awaitTold waits until u has received at least the given number of Updates of the other user's
// profile.
func awaitTold(t *testing.T, u, of *enginetest.User, times int) {
	t.Helper()
	enginetest.Eventually(t, u.Name+"'s server was told", func() bool {
		return len(u.Column(t, `SELECT uri FROM activities WHERE type = 'Update' AND actor_uri = $1`, of.ID)) >= times
	})
}

func shownActor(t *testing.T, u *enginetest.User) vocab.Doc {
	t.Helper()
	d, err := vocab.ParseDoc(enginetest.Fetch(t, u.ID).Body)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A rotation is killed at any moment. The keys that it leaves can be used. The same command
// finishes the rotation.
func TestARotationThatIsKilledIsFinishedByTheSameCommand(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(17, 1))
	a, b := enginetest.StartTwo(t)
	rosa, ralf := a.CreateUser(t, "rosa"), b.CreateUser(t, "ralf")
	befriend(t, ralf, rosa)
	for range 20 {
		a.RunUntil(t, time.Duration(random.IntN(300))*time.Millisecond, "user", "rotate-keys", "rosa", "--yes")
		rosa.Post(t, map[string]any{"content": "whichever key", "visibility": "public"})
		if shown := shownActor(t, rosa); len(shown.Subs("assertionMethod")) == 0 || shown.Sub("publicKey") == nil {
			t.Fatalf("rosa's actor is shown as %v", shown)
		}
	}
	if got := a.Run(t, "user", "rotate-keys", "rosa", "--yes"); got.Code != 0 {
		t.Fatalf("user rotate-keys ended with %d: %s", got.Code, got.Stderr)
	}
	awaitTold(t, ralf, rosa, 1)
	create, _ := rosa.Post(t, map[string]any{"content": "at last", "visibility": "public"})
	ralf.Await(t, "main", "the last post", func(i enginetest.Item) bool { return i.ActivityURI == create })
}
