package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// leaves dispatches actions of each type that is sent. It returns all their deliveries.
func leaves(d *desk) (all []user.Delivery) {
	d.finder.deliverBlocks = true
	article, zoe := d.world.article(bob), d.world.person(d.t, "p.example", "zoe", true)
	pam := d.world.person(d.t, "q.example", "pam", false)
	d.befriend(pam, user.Pending)
	d.offers(pam, user.FriendOf, user.Pending)
	mine := ""
	for _, step := range []struct {
		action string
		params map[string]any
	}{
		{"Follow", map[string]any{"actorUri": bob}},
		{"Unfollow", map[string]any{"actorUri": bob}},
		{"AcceptFollow", map[string]any{"actorUri": "https://q.example/users/pam"}},
		{"RejectFollow", map[string]any{"actorUri": "https://q.example/users/pam"}},
		{"SendFriendRequest", map[string]any{"actorUri": bob, "relationshipType": "friendOf"}},
		{"RemoveRelationship", map[string]any{"actorUri": bob, "relationshipType": "friendOf"}},
		{"AcceptFriendRequest", map[string]any{"actorUri": "https://q.example/users/pam"}},
		{"RemoveRelationship", map[string]any{"actorUri": "https://q.example/users/pam", "relationshipType": "friendOf"}},
		{"CreateNote", map[string]any{"content": "for all", "visibility": "public", "tags": []string{"a"}, "to": []string{bob, bob, string(me)}, "cc": []string{dan}}},
		{"UpdateObject", map[string]any{"objectId": &mine, "content": "new"}},
		{"Reply", map[string]any{"objectId": bobsPost, "content": "yes"}},
		{"SendMessage", map[string]any{"recipientUri": bob, "content": "psst"}},
		{"Like", map[string]any{"objectId": bobsPost}},
		{"Unlike", map[string]any{"objectId": bobsPost}},
		{"Dislike", map[string]any{"objectId": article}},
		{"UndoDislike", map[string]any{"objectId": article}},
		{"Boost", map[string]any{"objectId": bobsPost}},
		{"Unboost", map[string]any{"objectId": bobsPost}},
		{"DeleteObject", map[string]any{"objectId": &mine}},
		{"Block", map[string]any{"actorUri": zoe.ID}},
		{"Unblock", map[string]any{"actorUri": zoe.ID}},
	} {
		a := d.must(step.action, step.params)
		if step.action == "CreateNote" {
			mine = string(a.Object)
		}
		all = append(all, d.owed()...)
	}
	return all
}

// Activities of all actions have the form that ActivityPub requires of a sender.
func TestWhatLeavesKeepsToTheProtocol(t *testing.T) {
	t.Parallel()
	d := town(t)
	rows := leaves(d)
	kinds, ids := map[string]bool{}, map[vocab.ID]vocab.ID{} // kinds holds types of activities, ids the jobs by activity id
	for _, r := range rows {
		kinds[r.Type] = true
	}
	for _, kind := range []string{"Accept", "Announce", "Block", "Create", "Delete", "Dislike", "Follow", "Like", "Offer", "Reject", "Undo", "Update"} {
		if !kinds[kind] {
			t.Errorf("no %s was sent: this test proves too little", kind)
		}
	}
	each := func(name string, check func(*testing.T, user.Delivery, *vocab.Activity)) {
		t.Run(name, func(t *testing.T) {
			for _, r := range rows {
				a, err := vocab.ParseActivity(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				check(t, r, a)
			}
		})
	}
	each("OB-01 every id is of this server and given once, and none is null", func(t *testing.T, r user.Delivery, a *vocab.Activity) {
		job := vocab.ID(r.Job.String())
		if other, known := ids[a.ID]; !strings.HasPrefix(string(a.ID), string(me)+"/activities/") || known && other != job {
			t.Errorf("%s has the id %s, as another one", a.Type, a.ID)
		}
		ids[a.ID] = job
		if bytes.Contains(r.Body, []byte(`"id":null`)) {
			t.Errorf("%s", r.Body)
		}
	})
	each("OB-08 the context of ActivityStreams comes first", func(t *testing.T, r user.Delivery, _ *vocab.Activity) {
		var d struct {
			Context []any `json:"@context"`
		}
		if err := json.Unmarshal(r.Body, &d); err != nil || len(d.Context) == 0 || d.Context[0] != vocab.ContextAS {
			t.Errorf("%s, %v", r.Body, err)
		}
	})
	each("DL-02 there is an object", func(t *testing.T, r user.Delivery, a *vocab.Activity) {
		if a.Object.IsZero() {
			t.Errorf("%s", r.Body)
		}
	})
	each("DL-03 who is named is reached", func(t *testing.T, _ user.Delivery, a *vocab.Activity) {
		for _, id := range a.All() {
			if id == vocab.Public || string(id) == followers || id.Same(me) {
				continue
			}
			if !slices.ContainsFunc(rows, func(r user.Delivery) bool { return r.Activity == a.ID && slices.Contains(r.Targets, id) }) {
				t.Errorf("%s names %s, which does not get it", a.Type, id)
			}
		}
	})
	each("DL-04 nobody is named in secret", func(t *testing.T, r user.Delivery, a *vocab.Activity) {
		if a.Doc.Hides() || bytes.Contains(r.Body, []byte(`"bto"`)) || bytes.Contains(r.Body, []byte(`"bcc"`)) {
			t.Errorf("%s", r.Body)
		}
	})
	seen := map[string]bool{}
	each("DL-05 nobody gets it twice, and who acts does not", func(t *testing.T, r user.Delivery, a *vocab.Activity) {
		key := string(a.ID) + " " + string(r.Inbox)
		if seen[key] || r.Inbox == me+"/inbox" || slices.Contains(r.Targets, me) {
			t.Errorf("%s to %s, for %v", a.Type, r.Inbox, r.Targets)
		}
		seen[key] = true
	})
	each("DL-07 nothing goes to Public", func(t *testing.T, r user.Delivery, _ *vocab.Activity) {
		if slices.Contains(r.Targets, vocab.Public) || strings.Contains(string(r.Inbox), "w3.org") {
			t.Errorf("a delivery to %s, for %v", r.Inbox, r.Targets)
		}
	})
	each("DL-18 an Update says when, and keeps when it was published", func(t *testing.T, r user.Delivery, a *vocab.Activity) {
		o := a.Object.Doc
		if a.Type == "Update" && (!o.Time("updated").After(o.Time("published")) || o.Time("published").IsZero()) {
			t.Errorf("%s", r.Body)
		}
	})
	t.Run("DL-06 of the collections addressed only her own are opened", func(t *testing.T) {
		for _, to := range []string{carol + "/followers", "https://p.example/collections/1"} {
			if _, err := d.dispatch("CreateNote", map[string]any{"content": "hi", "to": []string{to}}); fault.KindOf(err) != fault.Unprocessable {
				t.Errorf("a note to %s: %v, want it refused", to, err)
			}
		}
		d.must("CreateNote", map[string]any{"content": "hi", "to": []string{followers}})
		if got := inboxes(d.owed()); !slices.Equal(got, []string{"https://p.example/inbox", dan + "/inbox"}) {
			t.Errorf("a note to her followers goes to %q", got)
		}
	})
	t.Run("FE-08 what is for followers says who they are", func(t *testing.T) {
		parts := map[string]*vocab.FollowersDigest{}
		d.read(func(ctx context.Context, tx *user.Tx) error {
			all, err := tx.Relationships.FollowerDestinations(ctx)
			for _, f := range all {
				if parts[f.Actor.Origin()] == nil {
					parts[f.Actor.Origin()] = &vocab.FollowersDigest{}
				}
				parts[f.Actor.Origin()].Add(string(f.Actor))
			}
			return err
		})
		d.must("CreateNote", map[string]any{"content": "hi", "to": []string{followers}})
		owed := d.owed()
		if len(owed) != 2 {
			t.Errorf("a note to her followers goes to %q", inboxes(owed))
		}
		for _, r := range owed {
			if part := parts[r.Inbox.Origin()]; part == nil || string(r.FollowersDigest) != string(part[:]) {
				t.Errorf("%s is told %x, want %x", r.Inbox, r.FollowersDigest, part)
			}
		}
		d.must("SendMessage", map[string]any{"recipientUri": carol, "content": "psst"})
		for _, r := range d.owed() {
			if r.FollowersDigest != nil {
				t.Errorf("a message to carol tells %s of followers", r.Inbox)
			}
		}
	})
	t.Run("D18 DL-09 what is for some comes to their own inboxes", func(t *testing.T) {
		d.must("SendMessage", map[string]any{"recipientUri": carol, "content": "psst"})
		if got := inboxes(d.owed()); !slices.Equal(got, []string{carol + "/inbox"}) {
			t.Errorf("a message to carol goes to %q", got)
		}
	})
}
