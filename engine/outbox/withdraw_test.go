package outbox

import (
	"context"
	"github.com/lightweb/lightweb/db/user"
	"slices"
	"testing"
	"time"
)

// waiting requeues the failed deliveries. It returns the inboxes that will get Creates and
// Updates.
func (d *desk) waiting() (urls []string) {
	d.t.Helper()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	d.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Deliveries.Requeue(ctx, user.DeliveryChoice{States: []string{user.DeliveryPending, user.DeliveryParked, user.DeliveryFailed}}, true, 0, 100, now)
		return err
	})
	return inboxes(slices.DeleteFunc(d.owed(), func(r user.Delivery) bool { return r.Type != "Create" && r.Type != "Update" }))
}

func TestWhatIsOwedToAnActorWhoIsShutOutIsNotSent(t *testing.T) {
	t.Parallel()
	type params = map[string]any
	toFollowers, everybody := params{"content": "hi", "visibility": "followers"}, params{"content": "hi", "visibility": "public"}
	toGroup := params{"content": "hi", "to": []string{"friends"}}
	block := func(d *desk) { d.must("Block", params{"actorUri": dan}) }
	reject := func(d *desk) { d.must("RejectFollow", params{"actorUri": dan}) }
	remove := func(d *desk) { d.must("RemoveFromGroup", params{"name": "friends", "actorUri": dan}) }
	for _, c := range []struct {
		name   string
		posts  params
		shuts  func(*desk)
		failed bool // whether the delivery failed after all tries
		dan    bool // whether dan still gets it
	}{
		{"blocked, of what is for followers", toFollowers, block, false, false},
		{"blocked, of what was given up", toFollowers, block, true, false},
		{"blocked, of what is for everybody", everybody, block, false, true},
		{"blocked, of a letter", params{"content": "hi", "visibility": "direct", "to": []string{dan, bob}}, block, false, false},
		{"rejected, of what is for followers", toFollowers, reject, false, false},
		{"rejected, of a letter", params{"content": "hi", "visibility": "direct", "to": []string{dan, bob}}, reject, false, true},
		{"rejected, of what is for a group", toGroup, reject, false, true},
		{"removed, of what is for the group", toGroup, remove, true, false},
		{"removed, of what is for followers", toFollowers, remove, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			group := string(d.group("friends", bob, dan))
			d.owed()
			p := params{}
			for name, v := range c.posts {
				p[name] = v
			}
			if to, _ := p["to"].([]string); slices.Equal(to, []string{"friends"}) {
				p["to"] = []string{group}
			}
			d.must("CreateNote", p)
			if c.failed {
				d.exec(`UPDATE deliveries SET status = 'failed', attempts = 6`)
			}
			c.shuts(d)
			got := d.waiting()
			if slices.Contains(got, dan+"/inbox") != c.dan || len(got) == 0 {
				t.Errorf("owed to %q, want dan among them: %t", got, c.dan)
			}
		})
	}
}

// Two recipients have the same inbox, and one of them is blocked. The other still gets the post.
func TestOneOfTwoBehindAnInboxIsShutOut(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.befriend(d.world.person(t, "p.example", "bob", true), user.Accepted)
	d.must("CreateNote", map[string]any{"content": "hi", "visibility": "followers"})
	d.must("Block", map[string]any{"actorUri": bob})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		rows, err := tx.Deliveries.Claim(ctx, "test", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour, user.ClaimBounds{Most: 100})
		for _, r := range rows {
			if r.Inbox == "https://p.example/inbox" && (len(r.Targets) != 1 || r.Targets[0] != carol) {
				t.Errorf("it goes to %q, want carol alone", r.Targets)
			}
		}
		return err
	})
}
