package outbox

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// An activity of bob's has been read but not stored yet. Meanwhile alice takes an action about
// bob. The activity does not undo that action.
func TestWhatComesUndoesNoActionAboutItsActor(t *testing.T) {
	t.Parallel()
	type params = map[string]any
	about := params{"actorUri": bob}
	for _, c := range []struct {
		action  string
		params  params
		kind    string // the type of the relationship
		comes   func(d *desk) vocab.Doc
		accepts bool // whether the relationship is accepted after the action succeeds
	}{
		{"Unfollow", about, user.Following, func(d *desk) vocab.Doc {
			return vocab.Doc{"type": vocab.Accept, "object": string(d.must("Follow", about).URI)}
		}, false},
		{"RemoveRelationship", params{"actorUri": bob, "relationshipType": "friendOf"}, user.FriendOf, func(d *desk) vocab.Doc {
			offer := d.must("SendFriendRequest", params{"actorUri": bob, "relationshipType": "friendOf"})
			return vocab.Doc{"type": vocab.Accept, "object": string(offer.URI)}
		}, false},
		{"AcceptFollow", about, user.Follower, func(d *desk) vocab.Doc {
			d.befriend(d.world.actors[bob], user.Pending)
			return vocab.Doc{"type": vocab.Follow, "object": string(me)}
		}, true},
		{"AcceptFriendRequest", about, user.FriendOf, func(d *desk) vocab.Doc {
			d.offers(d.world.actors[bob], user.FriendOf, user.Pending)
			return vocab.Doc{"type": vocab.Offer, "object": vocab.Friendship{Type: user.FriendOf, Subject: bob, Object: me}.Doc()}
		}, true},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			if err := d.files.UpdateUser(d.alice, func(u *registry.User) error { u.FollowPolicy = registry.ApprovalRequired; return nil }); err != nil {
				t.Fatal(err)
			}
			doc := c.comes(d)
			doc["id"], doc["actor"] = bob+"/activities/2", bob
			a, err := vocab.ParseActivity(doc.JSON())
			if err != nil {
				t.Fatal(err)
			}
			did := make(chan error, 1)
			d.write(func(ctx context.Context, tx *user.Tx) error {
				if _, err := tx.Activities.ClaimAhead(ctx, []user.Owned{{ID: a.ID, Actor: bob}}, []vocab.ID{bob}, nil); err != nil {
					return err
				}
				go func() { _, err := d.dispatch(c.action, c.params); did <- err }()
				dbtest.AwaitLock(t, d.c, d.alice, did)
				_, err := d.Handlers.Received(ctx, tx, &handler.Received{User: d.alice, Me: me, Activity: a, Actor: d.world.actors[bob], Named: true, Now: d.Now(), Applied: d.Now(), Tells: tellsAll})
				return err
			})
			err = <-did
			d.read(func(ctx context.Context, tx *user.Tx) error {
				rel, failed := tx.Relationships.Find(ctx, c.kind, bob)
				is := rel != nil && rel.Status == user.Accepted
				if (err == nil) != (is == c.accepts) {
					t.Errorf("alice was answered %v, and the relationship is %+v", err, rel)
				}
				return failed
			})
		})
	}
}
