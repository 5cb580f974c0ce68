package outbox

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// interrupted is a store that calls first() before its next write.
type interrupted struct {
	Store
	first func()
}

func (s *interrupted) Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	if first := s.first; first != nil {
		s.first = nil
		first()
	}
	return s.Store.Write(ctx, u, work)
}

// before makes the next action call commit() after it has chosen its recipients and before it is
// committed.
func (d *desk) before(commit func()) {
	d.Store = &interrupted{Store: d.c, first: commit}
}

func TestWhoIsOutAtTheCommitOfAPostDoesNotGetIt(t *testing.T) {
	t.Parallel()
	type params = map[string]any
	block := func(who string) func(*desk) { return func(d *desk) { d.must("Block", params{"actorUri": who}) } }
	remove := func(d *desk) { d.must("RemoveFromGroup", params{"name": "friends", "actorUri": carol}) }
	reject := func(d *desk) { d.must("RejectFollow", params{"actorUri": carol}) }
	toGroup := func(group string) params { return params{"content": "hi", "to": []string{group}} }
	toFollowers := func(string) params { return params{"content": "hi", "visibility": "followers"} }
	for _, c := range []struct {
		name      string
		meanwhile func(*desk)
		params    func(group string) params
		left      []string
	}{
		{"a follower is blocked", block(carol), toFollowers, []string{dan + "/inbox"}},
		{"a follower is rejected", reject, toFollowers, []string{dan + "/inbox"}},
		{"a member is blocked", block(carol), toGroup, []string{bob + "/inbox"}},
		{"a member is removed", remove, toGroup, []string{bob + "/inbox"}},
		{"a member is added after the group was read", func(d *desk) { d.must("AddToGroup", params{"name": "friends", "actorUri": dan}) }, toGroup, []string{bob + "/inbox", carol + "/inbox"}},
		{"the group is deleted", func(d *desk) { d.must("DeleteGroup", params{"name": "friends"}) }, toGroup, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			group := string(d.group("friends", bob, carol))
			d.owed()
			d.before(func() { c.meanwhile(d); d.owed() })
			note := d.must("CreateNote", c.params(group)).Object
			if diff := cmp.Diff(c.left, inboxes(d.owed())); diff != "" {
				t.Error(diff)
			}
			d.must("DeleteObject", params{"objectId": note})
			if diff := cmp.Diff(c.left, inboxes(d.owed())); diff != "" {
				t.Errorf("the Delete tells those of the note who never had it: %s", diff)
			}
		})
	}
}

func TestNothingThatNamesAnActorIsStoredOnceTheUserBlocksIt(t *testing.T) {
	t.Parallel()
	type params = map[string]any
	for action, p := range map[string]params{
		"CreateNote":  {"content": "hi", "to": []string{carol, bob}},
		"SendMessage": {"recipientUri": bob, "content": "psst"},
		"Reply":       {"objectId": bobsPost, "content": "indeed"},
		"Like":        {"objectId": bobsPost},
		"Boost":       {"objectId": bobsPost},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			d.before(func() { d.must("Block", params{"actorUri": bob}); d.owed() })
			for _, when := range []string{"blocked meanwhile", "blocked before"} {
				if _, err := d.dispatch(action, p); fault.KindOf(err) != fault.Conflict || codeOf(err) != "blocked" {
					t.Errorf("%s: %v, want blocked", when, err)
				}
				if rows := d.owed(); len(rows) > 0 {
					t.Errorf("%s: something goes to %q", when, inboxes(rows))
				}
			}
		})
	}
}

func TestAnEditDoesNotReachAnActorBlockedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, visibility := range []string{"direct", "public"} {
		t.Run(visibility, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			note := d.note(map[string]any{"content": "hi", "to": []string{bob, dan}, "visibility": visibility})
			d.before(func() { d.must("Block", map[string]any{"actorUri": bob}); d.owed() })
			d.must("UpdateObject", map[string]any{"objectId": note, "content": "oh"})
			if got := inboxes(d.owed()); slices.Contains(got, bob+"/inbox") || !slices.Contains(got, dan+"/inbox") && !slices.Contains(got, "https://p.example/inbox") {
				t.Errorf("the new words go to %q, want all but bob", got)
			}
			d.must("DeleteObject", map[string]any{"objectId": note})
			if got := inboxes(d.owed()); !slices.Contains(got, bob+"/inbox") {
				t.Errorf("the Delete goes to %q, want bob too: he has the note", got)
			}
		})
	}
}

func TestAFollowerThatChangedIsReachedWhereItIsNow(t *testing.T) {
	t.Parallel()
	const there = "/new-inbox"
	for _, tt := range []struct {
		name string
		move func(d *desk)
		want []string
	}{
		{"shared inbox", func(d *desk) {
			d.world.person(t, "p.example", "carol", true).SharedInbox = "https://p.example" + there
			d.world.stale = carol
		}, []string{"https://p.example" + there, dan + "/inbox"}},
		{"inbox", func(d *desk) {
			d.world.person(t, "q.example", "dan", false).Inbox = "https://q.example" + there
			d.world.stale = dan
		}, []string{"https://p.example/inbox", "https://q.example" + there}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			tt.move(d)
			d.must("CreateNote", map[string]any{"content": "hi", "visibility": "followers"})
			if diff := cmp.Diff(tt.want, inboxes(d.owed())); diff != "" {
				t.Error(diff)
			}
		})
	}
}
