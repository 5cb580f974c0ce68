package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// handed returns a scene of alice and her follower bob, both users of this server. hand() hands an
// activity over from alice to bob, as the delivery queue does.
func handed(t *testing.T) (alice, bob *peertest.Scene, hand func(body string)) {
	t.Helper()
	alice = newScene(t)
	bob = alice.With("bob")
	alice.Posts("us:/alice/objects/1", "as:Public")
	alice.Actor("p:/carol")
	alice.Actor("q:/mallory")
	if err := alice.Store.Instance.Acquaintances.Add(t.Context(), alice.ID("us:/alice"), []vocab.Username{bob.Alice}, true); err != nil {
		t.Fatal(err)
	}
	me, act := alice.ID("us:/alice"), vocab.ID(bob.Long("us:/alice/activities/f"))
	if err := alice.Store.Write(t.Context(), bob.Alice, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: me, Type: user.Following, Status: user.Accepted, Activity: act}, alice.Now())
	}); err != nil {
		t.Fatal(err)
	}
	return alice, bob, func(body string) {
		t.Helper()
		if err := alice.Inbox.Deliver(t.Context(), alice.Alice, bob.Alice, []byte(alice.Long(body))); err != nil {
			t.Fatal(err)
		}
	}
}

// answer returns an answer of 3 KiB to alice's post, addressed to her followers. The parameter by
// names its author.
func answer(by string, n int) string {
	return strings.ReplaceAll(fmt.Sprintf(`{"id":"BY/creates/%[1]d","type":"Create","actor":"BY","to":["as:Public","us:/alice/followers"],
		"object":{"id":"BY/notes/%[1]d","type":"Note","attributedTo":"BY","to":["as:Public","us:/alice/followers"],"content":"%[2]s","inReplyTo":"us:/alice/objects/1"}}`,
		n, strings.Repeat("x", 3<<10)), "BY", by)
}

// PAY: when a user of this server forwards an activity, the domain of the activity's actor pays
// for it, as if that domain had sent the activity itself. The forwarder and other domains pay
// nothing.
func TestALocalHandOverIsPaidByTheDomainOfItsActor(t *testing.T) {
	alice, bob, hand := handed(t)
	const own = `{"id":"us:/alice/creates/%[1]d","type":"Create","actor":"us:/alice","to":"us:/alice/followers",
		"object":{"id":"us:/alice/objects/o%[1]d","type":"Note","attributedTo":"us:/alice","to":"us:/alice/followers","content":"mine"}}`
	hand(fmt.Sprintf(own, 0))
	hand(`{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public"}}`)
	alice.Inbox.StoreDaily(20 << 10)
	held := func(by string) []string {
		return bob.Column(t, bob.Alice, `SELECT uri FROM objects WHERE deleted_at IS NULL AND uri LIKE $1`, alice.Long(by)+"/%")
	}
	for n := range 20 {
		hand(answer("p:/carol", n))
	}
	kept := held("p:/carol")
	if len(kept) < 2 || len(kept) > 6 {
		t.Fatalf("bob has %d answers of 5 KiB, want what is in 20 KiB", len(kept))
	}
	if err := alice.Inbox.FlushIgnored(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := alice.Store.Instance.Ignored.Find(t.Context(), alice.ID("p:/carol/creates/19")); err != nil || got == nil || got.Reason != inbox.IgnoredOverBudget {
		t.Errorf("the last one is ignored as %+v, %v, want %s", got, err, inbox.IgnoredOverBudget)
	}
	if err := alice.Send("p:/dave", mine, answer("p:/dave", 1)); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("the domain sends by itself: %v, want RateLimited", err)
	}
	hand(answer("q:/mallory", 1))
	if got := held("q:/mallory"); len(got) != 1 {
		t.Errorf("bob has %q, want the answer of another domain", got)
	}
	hand(`{"id":"p:/carol/deletes/1","type":"Delete","actor":"p:/carol","to":"us:/alice/followers","object":"p:/carol/notes/0"}`)
	if got := held("p:/carol"); len(got) != len(kept)-1 {
		t.Errorf("bob has %d answers, want one less after its Delete", len(got))
	}
	if got := bob.Column(t, bob.Alice, `SELECT uri FROM activities WHERE uri LIKE '%/deletes/1'`); len(got) > 0 {
		t.Errorf("bob has %q beyond the budget", got)
	}
	for n := range 20 {
		hand(fmt.Sprintf(own, n+1))
	}
	if got := held("us:/alice"); len(got) != 22 {
		t.Errorf("bob has %d posts of alice's, want 22: they cost nothing", len(got))
	}
}

// When an actor is new to this server, its domain pays for storing the actor, even if a local user
// forwards the actor's activity.
func TestAnActorOfALocalHandOverIsPaidByItsDomain(t *testing.T) {
	alice, _, hand := handed(t)
	alice.Inbox.NewActorsDaily(8 << 10)
	stored := 0
	for n := range 8 {
		name := fmt.Sprintf("p:/made-up/%d", n)
		alice.Actor(name)
		hand(answer(name, 1))
		row, err := alice.Store.Instance.Actors.Find(t.Context(), alice.ID(name))
		if err != nil {
			t.Fatal(err)
		}
		if row != nil {
			stored++
		}
	}
	if stored < 1 || stored > 4 {
		t.Errorf("%d of 8 actors are stored, want what is in 8 KiB", stored)
	}
}

// A limited number of users a day may get a new acquaintance of a domain. A local hand-over counts
// towards that limit. A user who follows the forwarder does not thereby follow the domain.
func TestALocalHandOverMakesAcquaintancesWithinTheBudget(t *testing.T) {
	alice, _, hand := handed(t)
	alice.Inbox.NewAcquaintancesDaily(1)
	alice.Actor("p:/dave")
	for _, tt := range []struct {
		by   string
		want int
	}{{"p:/carol", 1}, {"p:/dave", 0}, {"q:/mallory", 1}} {
		hand(answer(tt.by, 1))
		if got := acquainted(t, alice, tt.by); got != tt.want {
			t.Errorf("%d users are acquainted with %s, want %d", got, tt.by, tt.want)
		}
	}
}

// An activity that was set aside is charged to its sender's domain again when the operator retries
// it.
func TestWhatIsGivenBackIsPaidByTheDomainOfItsSender(t *testing.T) {
	alice, bob, _ := handed(t)
	p := user.Poisoned{URI: alice.ID("p:/carol/creates/1"), Actor: alice.ID("p:/carol"), Raw: []byte(alice.Long(answer("p:/carol", 1))), Forwarders: []vocab.ID{alice.ID("us:/alice")}}
	if err := alice.Inbox.Retry(t.Context(), bob.Alice, p); err != nil {
		t.Fatal(err)
	}
	var payer string
	if err := alice.SQL(t).QueryRowContext(t.Context(), `SELECT payer FROM intake_waiting WHERE username = $1`, bob.Alice.String()).Scan(&payer); err != nil {
		t.Fatal(err)
	}
	if want := policy.RegistrableDomain(alice.ID("p:/carol").Host()); payer != want {
		t.Errorf("%q pays, want %q", payer, want)
	}
}
