package outbox

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
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
			d.befriend(d.world.actors[bob], db.Pending)
			return map[string]any{"actorUri": bob}
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
			var mu sync.Mutex
			ids := map[vocab.ID]bool{}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					r, err := d.dispatch(c.action, p)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					ids[r.ActivityID] = true
				})
			}
			all.Wait()
			if sent := len(d.events()) - before; len(ids) != 1 || sent != 1 {
				t.Errorf("4 dispatches were answered %v, and %d activities sent", ids, sent)
			}
		})
	}
}

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
		{"Unfollow", `{"actorUri":"` + bob + `"}`}, // after the first there is nothing left to do
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
