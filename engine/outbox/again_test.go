package outbox

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

func TestWhatIsDoneBeforeIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action string
		params func(d *desk) map[string]any
	}{
		{"Follow", func(*desk) map[string]any { return map[string]any{"actorUri": bob} }},
		{"Like", func(*desk) map[string]any { return map[string]any{"objectId": bobsPost} }},
		{"Boost", func(*desk) map[string]any { return map[string]any{"objectId": bobsPost} }},
		{"Dislike", func(d *desk) map[string]any { return map[string]any{"objectId": d.world.article(bob)} }},
		{"Block", func(*desk) map[string]any { return map[string]any{"actorUri": bob} }},
		{"CreateGroup", func(*desk) map[string]any { return map[string]any{"name": "friends"} }},
		{"AddToGroup", func(d *desk) map[string]any {
			d.group("friends")
			return map[string]any{"name": "friends", "actorUri": bob}
		}},
		{"AcceptFollow", func(d *desk) map[string]any {
			d.befriend(d.world.actors[bob], user.Pending)
			return map[string]any{"actorUri": bob}
		}},
		{"SendFriendRequest", func(*desk) map[string]any {
			return map[string]any{"actorUri": bob, "relationshipType": "friendOf"}
		}},
		{"AcceptFriendRequest", func(d *desk) map[string]any {
			return map[string]any{"offerId": d.offers(d.world.actors[bob], user.FriendOf, user.Pending)}
		}},
		{"Unlike", func(d *desk) map[string]any { d.must("Like", naming(bobsPost)); return naming(bobsPost) }},
		{"Unboost", func(d *desk) map[string]any { d.must("Boost", naming(bobsPost)); return naming(bobsPost) }},
		{"UndoDislike", func(d *desk) map[string]any {
			d.must("Dislike", naming(d.world.article(bob)))
			return naming(articleID)
		}},
		{"DeleteObject", func(d *desk) map[string]any {
			return map[string]any{"objectId": d.note(map[string]any{"content": "hi"})}
		}},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			p := c.params(d)
			before := len(d.events())
			results := make([]Result, 5) // four calls at once, and one later
			var all sync.WaitGroup
			for n := range results[:4] {
				all.Go(func() {
					var err error
					if results[n], err = d.dispatch(c.action, p); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			var err error
			if results[4], err = d.dispatch(c.action, p); err != nil {
				t.Error(err)
			}
			for _, r := range results {
				if diff := cmp.Diff(results[0], r); diff != "" {
					t.Error("the same is answered in two ways: ", diff)
				}
			}
			if n, want := len(d.events())-before, len(eventsOf(c.action, "")); n != want {
				t.Errorf("%d events of 5 dispatches, want %d, of one activity", n, want)
			}
			if answered := results[0].Job != nil; answered != (len(d.owed()) > 0) {
				t.Errorf("the answer has a job: %t", answered)
			}
		})
	}
}

// When an action that takes back a reaction is repeated, it returns the last Undo again. It is
// refused if there was no reaction, or only a reaction of another type.
func TestTakingBackAgain(t *testing.T) {
	t.Parallel()
	d := town(t)
	article := naming(d.world.article(bob))
	d.refused("Unlike", article, fault.NotFound, "not_reacted")
	d.must("Dislike", article)
	d.refused("Unlike", article, fault.NotFound, "not_reacted")
	d.must("UndoDislike", article)
	d.refused("Unlike", article, fault.NotFound, "not_reacted")
	d.must("Like", article)
	first := d.must("Unlike", article)
	d.must("Like", article)
	second := d.must("Unlike", article)
	if again := d.must("Unlike", article); first.URI == second.URI || again.URI != second.URI {
		t.Errorf("taken back by %s and %s, and again answered with %s; want the last", first.URI, second.URI, again.URI)
	}
	d.must("Like", article)
	d.must("Dislike", article)
	if again := d.must("Unlike", article); again.URI != second.URI {
		t.Errorf("with a Dislike in its place Unlike is answered with %s, want the last Undo of a Like", again.URI)
	}
	own := naming(d.must("Like", article).URI)
	third := d.must("Unlike", own)
	if again := d.must("Unlike", own); again.URI != third.URI {
		t.Errorf("by the id of the Like Unlike is answered with %s, want %s", again.URI, third.URI)
	}
	d.refused("UndoDislike", own, fault.NotFound, "not_reacted")
}

// The answer to a repeated action has the current counts of its deliveries, even after most of the
// deliveries are pruned.
func TestAnsweringAgainShowsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	d := town(t)
	note := naming(d.note(map[string]any{"content": "hi"}))
	first, err := d.dispatch("DeleteObject", note)
	if err != nil {
		t.Fatal(err)
	}
	d.owed()
	again := func(counts user.JobCounts) {
		t.Helper()
		want := Result{ActivityID: first.ActivityID, ObjectID: first.ObjectID, Job: &Job{JobID: first.Job.JobID, Recipients: first.Job.Recipients, Counts: counts}}
		if got, err := d.dispatch("DeleteObject", note); err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	delivered := user.JobCounts{Total: 2, Delivered: 2}
	again(delivered)
	_, err = d.c.Prune(t.Context(), d.alice, user.Pruning{Me: me, Deliveries: user.DeliveryRetention{Now: d.Now().AddDate(2, 0, 0), Delivered: time.Hour, Jobs: 9999 * time.Hour * 24}})
	if err != nil {
		t.Fatal(err)
	}
	if n := d.measured(`SELECT count(*) FROM deliveries`); n > 0 {
		t.Fatalf("%d deliveries are left: the test proves nothing", n)
	}
	again(delivered)
	d.exec(`DELETE FROM delivery_jobs`)
	if got, err := d.dispatch("DeleteObject", note); err != nil || got.Job != nil || got.ActivityID != first.ActivityID {
		t.Errorf("answered %+v, %v", got, err)
	}
}

func naming(object any) map[string]any { return map[string]any{"objectId": object} }

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	d := town(t)
	first, err := d.keyed("k1", "CreateNote", `{"content":"once"}`)
	if err != nil {
		t.Fatal(err)
	}
	asked := d.world.asked
	again, err := d.keyed("k1", "CreateNote", `{ "content": "once" }`)
	if err != nil {
		t.Fatal(err)
	}
	want := first
	want.Replayed = true
	if diff := cmp.Diff(want, again); diff != "" {
		t.Error("replayed: ", diff)
	}
	if d.sent() != 1 || d.world.asked != asked || len(d.audits()) != 1 {
		t.Errorf("%d activities and %d audits after the replay, want one", d.sent(), len(d.audits()))
	}
	if _, err := d.keyed("k1", "CreateNote", `{"content":"twice"}`); fault.Of(err) == nil || fault.Of(err).Code != "idempotency_key_reuse" {
		t.Errorf("another action under the key: %v, want idempotency_key_reuse", err)
	}
	if _, err := d.keyed("k2", "CreateNote", `{"content":"once"}`); err != nil || d.sent() != 2 {
		t.Errorf("under another key: %v, %d activities; want a second one", err, d.sent())
	}
}

func TestOneOfManyDispatchesUnderOneKeyTakesEffect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ action, params string }{
		{"CreateNote", `{"content":"once"}`},
		// the first Unfollow leaves no follow to undo
		{"Unfollow", `{"actorUri":"` + bob + `"}`},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			d.must("Follow", map[string]any{"actorUri": bob})
			before := d.sent()
			results := make([]Result, 8)
			var all sync.WaitGroup
			for i := range results {
				all.Go(func() {
					var err error
					if results[i], err = d.keyed("k", c.action, c.params); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			fresh := 0
			for _, r := range results {
				if r.ActivityID != results[0].ActivityID || r.Job == nil || results[0].Job == nil || r.Job.JobID != results[0].Job.JobID {
					t.Errorf("answered %+v and %+v", r, results[0])
				}
				if !r.Replayed {
					fresh++
				}
			}
			if sent := d.sent() - before; fresh != 1 || sent != 1 {
				t.Errorf("%d of 8 took effect, %d activities stored; want 1", fresh, sent)
			}
		})
	}
}
