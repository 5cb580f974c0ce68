package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	bob   = "https://p.example/users/bob"
	carol = "https://p.example/users/carol" // follows alice; her server has a shared inbox
	// follows alice; his server has no shared inbox
	dan       = "https://q.example/users/dan"
	bobsPost  = "https://p.example/notes/1"
	followers = string(me) + "/followers"
	public    = string(vocab.Public)
)

// town returns a desk with bob, carol and dan, and a public post of bob's.
func town(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.world.person(t, "p.example", "bob", true)
	d.befriend(d.world.person(t, "p.example", "carol", true), user.Accepted)
	d.befriend(d.world.person(t, "q.example", "dan", false), user.Accepted)
	d.world.post(bobsPost, bob, public)
	return d
}

// note posts a note of alice's and returns the note's id. It records the note's deliveries as
// delivered.
func (d *desk) note(params map[string]any) vocab.ID {
	d.t.Helper()
	a := d.must("CreateNote", params)
	d.owed()
	return a.Object
}

func TestEachActionLeavesWhatItShould(t *testing.T) {
	t.Parallel()
	type params = map[string]any
	for _, c := range []struct {
		name, action string
		// prepares the action and returns the action's parameters
		before       func(d *desk) params
		kind, object string // the types of the activity and of its object
		to, cc       []string
		inboxes      []string
		feed         int // how many feed entries the action adds
	}{
		{name: "Follow by id", action: "Follow", before: func(*desk) params { return params{"actorUri": bob} },
			kind: "Follow", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "Follow by handle", action: "Follow", before: func(*desk) params { return params{"actorUri": "@bob@p.example"} },
			kind: "Follow", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "Unfollow", action: "Unfollow", before: func(d *desk) params { d.must("Follow", params{"actorUri": bob}); return params{"actorUri": bob} },
			kind: "Undo", object: "Follow", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "AcceptFollow by actor", action: "AcceptFollow", before: func(d *desk) params {
			d.befriend(d.world.actors[bob], user.Pending)
			return params{"actorUri": bob}
		}, kind: "Accept", object: "Follow", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "RejectFollow by activity", action: "RejectFollow", before: func(*desk) params { return params{"activityId": carol + "/follows/1"} },
			kind: "Reject", object: "Follow", to: []string{carol}, inboxes: []string{carol + "/inbox"}},
		{name: "SendFriendRequest", action: "SendFriendRequest", before: func(*desk) params {
			return params{"actorUri": "@bob@p.example", "relationshipType": "lw:friendOf"}
		}, kind: "Offer", object: "Relationship", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "AcceptFriendRequest by actor", action: "AcceptFriendRequest", before: func(d *desk) params {
			d.offers(d.world.actors[bob], user.FriendOf, user.Pending)
			return params{"actorUri": bob}
		}, kind: "Accept", object: "Offer", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "RejectFriendRequest by id", action: "RejectFriendRequest", before: func(d *desk) params {
			d.offers(d.world.actors[bob], user.FriendOf, user.Pending)
			return params{"offerId": d.offers(d.world.actors[bob], user.CloseFriendOf, user.Pending)}
		}, kind: "Reject", object: "Offer", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "RemoveRelationship that alice asked for", action: "RemoveRelationship", before: func(d *desk) params {
			d.must("SendFriendRequest", params{"actorUri": bob, "relationshipType": "closeFriendOf"})
			return params{"actorUri": bob, "relationshipType": "https://lightwebbrowser.org/ns/closeFriendOf"}
		}, kind: "Undo", object: "Offer", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "RemoveRelationship that the other asked for", action: "RemoveRelationship", before: func(d *desk) params {
			d.offers(d.world.actors[bob], user.FriendOf, user.Accepted)
			return params{"actorUri": bob, "relationshipType": "friendOf"}
		}, kind: "Reject", object: "Offer", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "RemoveRelationship of a follow", action: "RemoveRelationship", before: func(d *desk) params {
			d.must("Follow", params{"actorUri": bob})
			return params{"actorUri": bob, "relationshipType": "following"}
		}, kind: "Undo", object: "Follow", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "CreateNote to everybody", action: "CreateNote", before: func(*desk) params { return params{"content": "hi"} },
			kind: "Create", object: "Note", to: []string{public}, cc: []string{followers},
			inboxes: []string{"https://p.example/inbox", dan + "/inbox"}, feed: 1},
		{name: "CreateNote to everybody, naming bob", action: "CreateNote", before: func(*desk) params {
			return params{"content": "hi", "visibility": "public", "to": []string{"@bob@p.example"}}
		},
			kind: "Create", object: "Note", to: []string{public}, cc: []string{followers, bob},
			inboxes: []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}, feed: 1},
		{name: "CreateNote by collections", action: "CreateNote", before: func(*desk) params {
			return params{"content": "hi", "to": []string{followers}, "cc": []string{public}}
		}, kind: "Create", object: "Note", to: []string{followers}, cc: []string{public},
			inboxes: []string{"https://p.example/inbox", dan + "/inbox"}, feed: 1},
		{name: "CreateNote unlisted", action: "CreateNote", before: func(*desk) params { return params{"content": "hi", "visibility": "unlisted"} },
			kind: "Create", object: "Note", to: []string{followers}, cc: []string{public},
			inboxes: []string{"https://p.example/inbox", dan + "/inbox"}, feed: 1},
		{name: "CreateNote to followers", action: "CreateNote", before: func(*desk) params { return params{"content": "hi", "visibility": "followers"} },
			kind: "Create", object: "Note", to: []string{followers},
			inboxes: []string{"https://p.example/inbox", dan + "/inbox"}, feed: 1},
		{name: "CreateNote to two actors, and to herself", action: "CreateNote", before: func(*desk) params {
			return params{"content": "hi", "visibility": "direct", "to": []string{bob, bob, string(me)}, "cc": []string{carol}}
		}, kind: "Create", object: "Note", to: []string{bob, carol}, inboxes: []string{bob + "/inbox", carol + "/inbox"}, feed: 1},
		{name: "SendMessage", action: "SendMessage", before: func(*desk) params { return params{"recipientUri": bob, "content": "psst"} },
			kind: "Create", object: "Note", to: []string{bob}, inboxes: []string{bob + "/inbox"}, feed: 1},
		{name: "Reply to a public post", action: "Reply", before: func(*desk) params { return params{"objectId": bobsPost, "content": "yes"} },
			kind: "Create", object: "Note", to: []string{public}, cc: []string{followers, bob},
			inboxes: []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}, feed: 1},
		{name: "Reply to a private post", action: "Reply", before: func(d *desk) params {
			return params{"objectId": d.world.post("https://p.example/notes/2", bob, string(me)), "content": "yes"}
		}, kind: "Create", object: "Note", to: []string{bob}, inboxes: []string{bob + "/inbox"}, feed: 1},
		{name: "Reply to her own private note", action: "Reply", before: func(d *desk) params {
			return params{"objectId": d.note(params{"content": "psst", "visibility": "direct", "to": []string{bob}}), "content": "and"}
		}, kind: "Create", object: "Note", to: []string{bob}, inboxes: []string{bob + "/inbox"}, feed: 1},
		{name: "Like", action: "Like", before: func(*desk) params { return params{"objectId": bobsPost} },
			kind: "Like", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "Like of her own note", action: "Like", before: func(d *desk) params { return params{"objectId": d.note(params{"content": "hi"})} },
			kind: "Like", to: []string{string(me)}},
		{name: "Unlike", action: "Unlike", before: func(d *desk) params {
			d.must("Like", params{"objectId": bobsPost})
			return params{"objectId": bobsPost}
		}, kind: "Undo", object: "Like", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "Dislike", action: "Dislike", before: func(d *desk) params { return params{"objectId": d.world.article(bob)} },
			kind: "Dislike", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "UndoDislike", action: "UndoDislike", before: func(d *desk) params {
			d.must("Dislike", params{"objectId": d.world.article(bob)})
			return params{"objectId": articleID}
		}, kind: "Undo", object: "Dislike", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "Block", action: "Block", before: func(*desk) params { return params{"actorUri": "@bob@p.example"} }, kind: "Block"},
		{name: "Block of an actor that nobody knows", action: "Block", before: func(*desk) params { return params{"actorUri": "https://down.example/users/x"} }, kind: "Block"},
		{name: "Unblock", action: "Unblock", before: func(d *desk) params {
			d.must("Block", params{"actorUri": bob})
			return params{"actorUri": bob}
		}, kind: "Undo", object: "Block"},
		{name: "Block that is delivered", action: "Block", before: func(d *desk) params { d.finder.deliverBlocks = true; return params{"actorUri": bob} },
			kind: "Block", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "Unblock of an actor that was told", action: "Unblock", before: func(d *desk) params {
			d.finder.deliverBlocks = true
			d.must("Block", params{"actorUri": bob})
			d.finder.deliverBlocks = false
			return params{"actorUri": bob}
		}, kind: "Undo", object: "Block", to: []string{bob}, inboxes: []string{bob + "/inbox"}},
		{name: "Boost", action: "Boost", before: func(*desk) params { return params{"objectId": bobsPost} },
			kind: "Announce", to: []string{public}, cc: []string{followers, bob},
			inboxes: []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}, feed: 1},
		{name: "Unboost", action: "Unboost", before: func(d *desk) params {
			d.must("Boost", params{"objectId": bobsPost})
			return params{"objectId": bobsPost}
		}, kind: "Undo", object: "Announce", to: []string{public}, cc: []string{followers, bob},
			inboxes: []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}, feed: -1},
		{name: "UpdateObject", action: "UpdateObject", before: func(d *desk) params {
			return params{"objectId": d.note(params{"content": "hi", "visibility": "followers", "to": []string{bob}}), "content": "ho"}
		}, kind: "Update", object: "Note", to: []string{followers}, cc: []string{bob},
			inboxes: []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}},
		{name: "DeleteObject", action: "DeleteObject", before: func(d *desk) params {
			return params{"objectId": d.note(params{"content": "hi", "visibility": "direct", "to": []string{bob}})}
		}, kind: "Delete", object: "Tombstone", to: []string{bob}, inboxes: []string{bob + "/inbox"}, feed: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			p := c.before(d)
			d.owed()
			feed, events, wakes := d.feed(), len(d.events()), d.wakes.Load()
			r, err := d.dispatch(c.action, p)
			if err != nil {
				t.Fatal(err)
			}
			stored := d.activity(r.ActivityID)
			a, err := vocab.ParseActivity(stored.Raw)
			if err != nil {
				t.Fatal(err)
			}
			if a.Type != c.kind || a.Object.Type() != c.object || a.Actor != me || stored.Direction != user.Outbound {
				t.Errorf("stored %s, want a %s(%s) of alice's", stored.Raw, c.kind, c.object)
			}
			if diff := cmp.Diff(c.to, strs(a.To)); diff != "" {
				t.Error("to: ", diff)
			}
			if diff := cmp.Diff(c.cc, strs(a.Cc)); diff != "" {
				t.Error("cc: ", diff)
			}
			rows := d.owed()
			if diff := cmp.Diff(append([]string{}, c.inboxes...), inboxes(rows)); diff != "" {
				t.Error("inboxes: ", diff)
			}
			d.checkJob(r, rows)
			d.checkProof(a.Doc)
			for _, row := range rows {
				sameJSON(t, row.Body, stored.Raw)
			}
			if got := d.feed() - feed; got != c.feed {
				t.Errorf("%d feed entries more, want %d", got, c.feed)
			}
			if got, want := d.events()[events:], eventsOf(c.action, c.kind); !slices.Equal(got, want) {
				t.Errorf("events = %q, want %q", got, want)
			}
			if got := d.audits()[0]; got.Action != c.action || got.Outcome != "ok" || got.Activity != r.ActivityID || got.Token != d.token {
				t.Errorf("audited %+v", got)
			}
			if woken := d.wakes.Load() > wakes; woken != (len(c.inboxes) > 0) {
				t.Errorf("dispatcher woken: %v, with %d inboxes", woken, len(c.inboxes))
			}
		})
	}
}

// An answer names the object that the action made or is about. So clients need not fetch the
// activity.
func TestAnswersNameTheObject(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.befriend(d.world.actors[bob], user.Pending)
	own, article := d.note(map[string]any{"content": "hi"}), d.world.article(bob)
	friends := d.group("friends")
	member := map[string]any{"name": "friends", "actorUri": bob}
	const made = "made" // stands for the object of the action's activity
	for _, c := range []struct {
		action string
		params map[string]any
		want   vocab.ID
	}{
		{"CreateNote", map[string]any{"content": "hi"}, made}, {"Reply", map[string]any{"objectId": bobsPost, "content": "yes"}, made},
		{"SendMessage", map[string]any{"recipientUri": bob, "content": "psst"}, made}, {"CreateGroup", map[string]any{"name": "family"}, made},
		{"Like", naming(bobsPost), bobsPost}, {"Unlike", naming(bobsPost), bobsPost}, {"Boost", naming(bobsPost), bobsPost}, {"Unboost", naming(bobsPost), bobsPost},
		{"Dislike", naming(article), article}, {"UndoDislike", naming(article), article},
		{"UpdateObject", map[string]any{"objectId": own, "content": "ho"}, own}, {"DeleteObject", naming(own), own},
		{"AddToGroup", member, friends}, {"RemoveFromGroup", member, friends}, {"DeleteGroup", map[string]any{"name": "friends"}, friends},
		{"AcceptFollow", map[string]any{"actorUri": bob}, ""}, {"Follow", map[string]any{"actorUri": bob}, ""}, {"Unfollow", map[string]any{"actorUri": bob}, ""},
		{"Block", map[string]any{"actorUri": bob}, ""}, {"Unblock", map[string]any{"actorUri": bob}, ""},
	} {
		r, err := d.dispatch(c.action, c.params)
		if err != nil {
			t.Fatalf("%s: %v", c.action, err)
		}
		if c.want == made {
			c.want = d.activity(r.ActivityID).Object
		}
		if r.ObjectID != c.want {
			t.Errorf("%s is answered with the object %q, want %q", c.action, r.ObjectID, c.want)
		}
	}
}

func (d *desk) feed() (n int) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) error {
		items, err := tx.Feed.List(ctx, nil, 100)
		n = len(items)
		return err
	})
	return n
}

func (d *desk) checkJob(r Result, rows []user.Delivery) {
	d.t.Helper()
	if len(rows) == 0 {
		if r.Job != nil {
			d.t.Errorf("job = %+v although nothing leaves", r.Job)
		}
		return
	}
	if r.Job == nil || r.Job.JobID != rows[0].Job.String() || r.Job.Counts.Total != len(rows) || r.Job.Counts.Pending != len(rows) {
		d.t.Errorf("job = %+v, want %s with %d deliveries", r.Job, rows[0].Job, len(rows))
	}
}

func strs(ids []vocab.ID) []string {
	var out []string
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}

func sameJSON(t *testing.T, a, b []byte) {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(x, y); diff != "" {
		t.Error("sent and stored differ: ", diff)
	}
}

func TestNoteOnTheWire(t *testing.T) {
	t.Parallel()
	d := town(t)
	a := d.must("CreateNote", map[string]any{"content": "a < b\nc", "tags": []string{"#go", "two words", "go"}, "summary": "maths", "sensitive": true,
		"to": []string{bob}, "visibility": "public", "inReplyTo": bobsPost})
	body, err := vocab.ParseActivity(d.owed()[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := body.Doc["@context"]; !ok {
		t.Error("the activity has no @context")
	}
	note := body.Object.Doc
	want := vocab.Doc{"id": string(a.Object), "type": "Note", "attributedTo": string(me), "published": note.Text("published"),
		"content": "<p>a &lt; b<br>c</p>", "source": vocab.Doc{"content": "a < b\nc", "mediaType": "text/plain"},
		"summary": "maths", "sensitive": true, "inReplyTo": bobsPost, "to": []any{public}, "cc": []any{followers, bob}, "replies": string(a.Object) + "/replies",
		"interactionPolicy": vocab.Doc{"canQuote": vocab.Doc{"automaticApproval": []any{public}}},
		"tag":               []any{vocab.Doc{"type": "Mention", "href": bob, "name": "@bob@p.example"}, vocab.Doc{"type": "Hashtag", "name": "#go", "href": here + "/@alice/tags/go"}},
		"lwTags":            []any{"go", "two words"}}
	if diff := cmp.Diff(want, note); diff != "" {
		t.Error(diff)
	}
	if note.Time("published").IsZero() {
		t.Error("the note has no time of publication")
	}
	for _, row := range d.owed() {
		if strings.Contains(string(row.Body), `"bto"`) || strings.Contains(string(row.Body), `"bcc"`) {
			t.Errorf("hidden recipients on the wire: %s", row.Body)
		}
	}
	if d.object(bobsPost) == nil {
		t.Error("the parent was not kept")
	}
}

func TestUpdateCarriesTheWholeObject(t *testing.T) {
	t.Parallel()
	d := town(t)
	id := d.note(map[string]any{"content": "hi", "tags": []string{"a"}, "to": []string{bob}, "summary": "s"})
	before := mustDoc(t, d.object(id).Raw)
	d.must("UpdateObject", map[string]any{"objectId": id, "content": "ho", "tags": []string{"b"}, "summary": ""})
	update, err := vocab.ParseActivity(d.owed()[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	after := update.Object.Doc
	if diff := cmp.Diff(after, mustDoc(t, d.object(id).Raw)); diff != "" {
		t.Error("sent and stored differ: ", diff)
	}
	if after.Text("published") != before.Text("published") || !after.Time("updated").After(before.Time("published")) {
		t.Errorf("published %s, updated %s; want the former kept, the latter later", after.Text("published"), after.Text("updated"))
	}
	if after.Text("content") != "<p>ho</p>" || after.Sub("source").Text("content") != "ho" || after.Text("summary") != "" {
		t.Errorf("contents = %s", after.JSON())
	}
	if tags := after.Subs("tag"); len(tags) != 2 || tags[0].Text("href") != bob || tags[1].Text("name") != "#b" {
		t.Errorf("tag = %v, want the mention kept and the tag replaced", tags)
	}
	d.must("DeleteObject", map[string]any{"objectId": id})
	if _, err := d.dispatch("UpdateObject", map[string]any{"objectId": id, "content": "x"}); fault.KindOf(err) != fault.Gone {
		t.Errorf("update after the delete: %v, want gone", err)
	}
}

func mustDoc(t *testing.T, raw []byte) vocab.Doc {
	t.Helper()
	doc, err := vocab.ParseDoc(raw)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestWhatIsTakenBackReachesWhoHadIt(t *testing.T) {
	t.Parallel()
	d := town(t)
	id := d.note(map[string]any{"content": "hi", "visibility": "followers", "to": []string{bob}})
	d.must("Boost", map[string]any{"objectId": bobsPost})
	d.must("Follow", map[string]any{"actorUri": bob})
	d.must("RejectFollow", map[string]any{"actorUri": dan})
	d.owed()
	d.must("UpdateObject", map[string]any{"objectId": id, "content": "ho"})
	if got := inboxes(d.owed()); slices.Contains(got, dan+"/inbox") {
		t.Errorf("Update: %v, want new words to go to nobody who was shown out", got)
	}
	for _, who := range []vocab.ID{bob, dan} {
		d.world.fails[who] = fault.New(fault.Unavailable, "down")
	}
	d.must("DeleteObject", map[string]any{"objectId": id})
	want := []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}
	if diff := cmp.Diff(want, inboxes(d.owed())); diff != "" {
		t.Error("Delete: ", diff)
	}
	d.must("Unboost", map[string]any{"objectId": bobsPost})
	if diff := cmp.Diff(want, inboxes(d.owed())); diff != "" {
		t.Error("Undo of a boost: ", diff)
	}
	d.must("Unfollow", map[string]any{"actorUri": bob})
	if diff := cmp.Diff([]string{bob + "/inbox"}, inboxes(d.owed())); diff != "" {
		t.Error("Undo: ", diff)
	}
}

func TestUndoWaitsForWhatItTakesBack(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.must("Like", map[string]any{"objectId": bobsPost})
	d.must("Unlike", map[string]any{"objectId": bobsPost})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		rows, err := tx.Deliveries.Claim(ctx, "test", d.Now(), 0, user.ClaimBounds{Most: 10, Forwarded: 10})
		if len(rows) != 1 || rows[0].Type != "Like" {
			t.Errorf("claimed %d deliveries at once, want the Like alone", len(rows))
		}
		return err
	})
}

func TestBlockedHostsAreLeftOut(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.gate["p.example"] = true
	r, err := d.dispatch("CreateNote", map[string]any{"content": "hi"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{dan + "/inbox"}, inboxes(d.owed())); diff != "" || r.Job.Recipients != 1 {
		t.Errorf("recipients = %d, inboxes: %s", r.Job.Recipients, diff)
	}
}

func TestSuspendedActorsAreLeftOut(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.gate[dan] = true
	r, err := d.dispatch("CreateNote", map[string]any{"content": "hi"})
	if err != nil {
		t.Fatal(err)
	}
	if owed := inboxes(d.owed()); slices.Contains(owed, dan+"/inbox") || len(owed) == 0 || r.Job.Recipients == 0 {
		t.Errorf("recipients = %d, inboxes: %q, want everybody but the one who is suspended", r.Job.Recipients, owed)
	}
}

func TestLocalRecipientsHaveNoHost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.user("bob")
	local := vocab.ID(here + "/users/bob")
	d.must("Follow", map[string]any{"actorUri": "@bob@here.example"})
	rows := d.owed()
	if len(rows) != 1 || rows[0].Host != "" || rows[0].Inbox != local+"/inbox" {
		t.Fatalf("owed %+v, want one delivery without host", rows)
	}
	users, err := d.c.Instance.Acquaintances.Users(t.Context(), local, true)
	if err != nil || !slices.Equal(users, []vocab.Username{d.alice}) {
		t.Errorf("acquainted with bob: %v, %v; want alice", users, err)
	}
}

func TestANeighboursPostIsSeenIfItMayBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	neighbour := d.user("bob")
	author := string(d.Local.ID(neighbour))
	ids := map[string]vocab.ID{}
	for name, to := range map[string]string{"public": public, "named": string(me), "private": author + "/followers"} {
		ids[name] = d.Local.NewObjectID(neighbour)
		raw := vocab.Doc{"id": string(ids[name]), "type": "Note", "attributedTo": author, "content": "hi", "to": []any{to}}.JSON()
		err := d.c.Write(t.Context(), neighbour, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Add(ctx, user.Object{ID: d.token, URI: ids[name], Published: d.Now(), Raw: raw})
			d.token[0]++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]fault.Kind{"public": fault.Internal, "named": fault.Internal, "private": fault.NotFound} {
		if _, err := d.dispatch("Like", map[string]any{"objectId": ids[name]}); fault.KindOf(err) != want || want == fault.Internal && err != nil {
			t.Errorf("like of a %s post: %v", name, err)
		}
	}
	err := d.c.Write(t.Context(), neighbour, func(ctx context.Context, tx *user.Tx) error {
		return tx.Blocks.Add(ctx, user.Block{Actor: me, Direction: user.Outbound, Activity: vocab.ID(author + "/blocks/1")}, d.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	d.exec(`DELETE FROM objects`)
	for name, want := range map[string]bool{"public": true, "named": false} {
		if _, err := d.dispatch("Reply", map[string]any{"objectId": ids[name], "content": "hi"}); (err == nil) != want || err != nil && fault.KindOf(err) != fault.NotFound {
			t.Errorf("answer of one who is blocked to a %s post: %v", name, err)
		}
	}
}

func TestNothingIsStoredThatCouldNotBeSigned(t *testing.T) {
	t.Parallel()
	d := town(t)
	if err := os.RemoveAll(d.keyring.Dir(d.alice)); err != nil {
		t.Fatal(err)
	}
	_, err := d.dispatch("CreateNote", map[string]any{"content": "hi"})
	if e := fault.Of(err); e == nil || e.Kind != fault.Unavailable || e.Code != "keys_unavailable" {
		t.Errorf("dispatched without keys: %v, want keys_unavailable", err)
	}
	if d.sent() != 0 || len(d.owed()) != 0 {
		t.Error("something was stored")
	}
}

// The audit contains no words of posts, whether an action succeeded or was refused. It keeps its
// records for half a year, longer than a post may live.
func TestAuditKeepsNoWords(t *testing.T) {
	t.Parallel()
	const secret = "a word to be deleted"
	d := town(t)
	note := d.must("CreateNote", map[string]any{"content": secret, "summary": secret, "tags": []string{secret}})
	d.must("UpdateObject", map[string]any{"objectId": note.Object, "content": secret})
	for _, refused := range []string{`{"content":"` + secret + `","visibility":"nobody"}`, `{"text":"` + secret + `"}`, `{"` + secret + `":1}`} {
		if _, err := d.dispatch("CreateNote", refused); err == nil {
			t.Fatalf("%s was not refused", refused)
		}
	}
	d.Flush(t.Context())
	if n := d.measured(`SELECT count(*) FROM audit a WHERE a::text LIKE '%` + secret + `%'`); n > 0 {
		t.Errorf("%d records hold words of a post", n)
	}
	first := d.audits()
	if doc := mustDoc(t, first[len(first)-1].Params); fmt.Sprint(doc.Sub("content")["bytes"]) != fmt.Sprint(len(secret)) {
		t.Errorf("the first record is %s, want the size of the content", doc.JSON())
	}
}

// An LLM engine tries an action outside of its scope. The refused action is audited and counted
// like any other.
func TestAnAssistantsScopeIsAudited(t *testing.T) {
	t.Parallel()
	d := town(t)
	const may = " Boost CreateNote Dislike Like Reply SendMessage Unboost UndoDislike Unlike "
	for _, name := range Actions() {
		if len(RequiredScopes(name)) == 0 {
			t.Error("no scope allows ", name)
		}
		want := "insufficient_scope"
		if strings.Contains(may, " "+name+" ") {
			want = "invalid_parameter"
		}
		if got := codeOf(d.assist(d.token, name, nil)); got != want {
			t.Errorf("%s is refused as %q, want %q", name, got, want)
		}
	}
	tried := len(Actions())
	if got := codeOf(d.assist(d.token, "Explode", nil)); got != "unknown_action" {
		t.Errorf("an unknown action is refused as %q", got)
	}
	d.Flush(t.Context())
	found := d.audits()
	if got := len(found); got != tried+1 {
		t.Errorf("%d records, want %d: %+v", got, tried+1, found)
	}
	if left, err := d.AttemptQuotas(t.Context(), d.alice, d.token); err != nil || left[0].Left != 60-tried-1 {
		t.Errorf("there is left %+v, %v, want %d of the hour", left, err, 60-tried-1)
	}
}
