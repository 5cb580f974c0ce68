package outbox

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	bees     = "https://lemmy.example/c/beekeeping"
	beesPost = "https://p.example/comment/7"
)

// community adds a Group actor.
func (w *world) community(t *testing.T, id string) {
	t.Helper()
	a, err := vocab.ParseActor(vocab.Doc{"id": id, "type": "Group", "preferredUsername": "beekeeping", "inbox": id + "/inbox", "followers": id + "/followers",
		"endpoints": vocab.Doc{"sharedInbox": "https://" + vocab.ID(id).Host() + "/inbox"}}.JSON())
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actors[a.ID] = a
}

// inCommunity adds a post of bob's. The parameter audience holds the ids in the post's audience.
func (w *world) inCommunity(id, kind string, to, audience any) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects[vocab.ID(id)] = string(vocab.Doc{"id": id, "type": kind, "attributedTo": bob, "content": "<p>hi</p>", "to": to, "audience": audience}.JSON())
	return id
}

// village returns a town with a community of Lemmy and a post of bob's in the community.
func village(t *testing.T) *desk {
	t.Helper()
	d := town(t)
	d.world.community(t, bees)
	d.world.inCommunity(beesPost, "Note", public, bees)
	return d
}

// checkCommunity checks whether an activity names the community and is sent to it. It records all
// deliveries as delivered.
func (d *desk) checkCommunity(what string, a *user.Activity, want bool) {
	d.t.Helper()
	reached := slices.Contains(inboxes(d.owed()), bees+"/inbox")
	doc := mustDoc(d.t, a.Raw)
	cc, _ := doc["cc"].([]any)
	named, audience := slices.Contains(cc, any(bees)), doc["audience"] == any(bees)
	if reached != want || named != want || audience != want {
		d.t.Errorf("%s: delivered to the community %t, named in cc %t and audience %t; want %t", what, reached, named, audience, want)
	}
}

// Members of a community get answers and reactions to a post in it only from the community's
// server. So the engine sends these to the community.
func TestAnAnswerToAPostOfACommunityGoesToTheCommunity(t *testing.T) {
	t.Parallel()
	d := village(t)
	for what, send := range map[string]func() *user.Activity{
		"Reply": func() *user.Activity { return d.must("Reply", vocab.Doc{"objectId": beesPost, "content": "buzz"}) },
		"CreateNote": func() *user.Activity {
			return d.must("CreateNote", vocab.Doc{"inReplyTo": beesPost, "content": "buzz", "visibility": "unlisted"})
		},
	} {
		a := send()
		d.checkCommunity(what, a, true)
		note := mustDoc(t, a.Raw).Sub("object")
		cc, _ := note["cc"].([]any)
		if note["audience"] != any(bees) || !slices.Contains(cc, any(bees)) {
			t.Errorf("%s: the note names %v in audience and %v in cc, want the community", what, note["audience"], cc)
		}
		want := []any{vocab.Doc{"type": "Mention", "href": bob, "name": "@bob@p.example"}}
		if diff := cmp.Diff(want, note["tag"]); diff != "" {
			t.Errorf("%s: the tags are not the mention of the author alone: %s", what, diff)
		}
		d.checkCommunity(what+", then an Update", d.must("UpdateObject", vocab.Doc{"objectId": string(a.Object), "content": "buzz buzz"}), true)
		if now := mustDoc(t, d.object(a.Object).Raw); now["audience"] != any(bees) || !cmp.Equal(now["tag"], note["tag"]) {
			t.Errorf("%s: after an Update the note names %v in audience and has the tags %v", what, now["audience"], now["tag"])
		}
		d.checkCommunity(what+", then an answer to it", d.must("Reply", vocab.Doc{"objectId": string(a.Object), "content": "buzz"}), true)
		d.checkCommunity(what+", then a Delete", d.must("DeleteObject", vocab.Doc{"objectId": string(a.Object)}), true)
	}
}

func TestAReactionToAPostOfACommunityGoesToTheCommunity(t *testing.T) {
	t.Parallel()
	d := village(t)
	article := d.world.inCommunity("https://p.example/post/8", "Article", public, bees)
	d.checkCommunity("Like", d.must("Like", vocab.Doc{"objectId": beesPost}), true)
	d.checkCommunity("Undo of a Like", d.must("Unlike", vocab.Doc{"objectId": beesPost}), true)
	d.checkCommunity("Dislike", d.must("Dislike", vocab.Doc{"objectId": article}), true)
	d.checkCommunity("Undo of a Dislike", d.must("UndoDislike", vocab.Doc{"objectId": article}), true)
}

func TestACommunityIsNotToldWhatIsNotForIt(t *testing.T) {
	t.Parallel()
	d := village(t)
	d.world.community(t, "https://q.example/c/2")
	d.user("carla")
	for _, tt := range []struct {
		name   string
		params vocab.Doc
	}{
		{"a direct answer", vocab.Doc{"inReplyTo": beesPost, "visibility": "direct"}},
		{"an answer for followers", vocab.Doc{"inReplyTo": beesPost, "visibility": "followers"}},
		{"a local answer", vocab.Doc{"inReplyTo": beesPost, "visibility": "local"}},
		{"a private post", vocab.Doc{"inReplyTo": d.world.inCommunity("https://p.example/1", "Note", me, bees), "visibility": "public"}},
		{"a post in no community", vocab.Doc{"inReplyTo": bobsPost}},
		{"a post for a person", vocab.Doc{"inReplyTo": d.world.inCommunity("https://p.example/2", "Note", public, carol)}},
		{"a post for followers of its author", vocab.Doc{"inReplyTo": d.world.inCommunity("https://p.example/3", "Note", public, bob+"/followers")}},
		{"a post for a user here", vocab.Doc{"inReplyTo": d.world.inCommunity("https://p.example/4", "Note", public, here+"/users/carla")}},
		{"a post for nobody that is found", vocab.Doc{"inReplyTo": d.world.inCommunity("https://p.example/5", "Note", public, "https://gone.example/c/1")}},
	} {
		tt.params["content"] = tt.name
		a := d.must("CreateNote", tt.params)
		if doc := mustDoc(t, a.Raw); doc["audience"] != nil || doc.Sub("object")["audience"] != nil {
			t.Errorf("%s: names %v in audience, want nobody", tt.name, doc["audience"])
		}
		d.checkCommunity(tt.name, a, false)
	}
	d.checkCommunity("Like of a private post", d.must("Like", vocab.Doc{"objectId": "https://p.example/1"}), false)
}

func TestABlockedCommunityIsLeftOut(t *testing.T) {
	t.Parallel()
	t.Run("by the user", func(t *testing.T) {
		t.Parallel()
		d := village(t)
		d.must("Block", vocab.Doc{"actorUri": bees})
		d.owed()
		d.checkCommunity("Reply", d.must("Reply", vocab.Doc{"objectId": beesPost, "content": "buzz"}), false)
		d.checkCommunity("Like", d.must("Like", vocab.Doc{"objectId": beesPost}), false)
	})
	t.Run("its domain by the operator", func(t *testing.T) {
		t.Parallel()
		d := village(t)
		d.gate["lemmy.example"] = true
		d.checkCommunity("Reply", d.must("Reply", vocab.Doc{"objectId": beesPost, "content": "buzz"}), false)
		d.checkCommunity("Like", d.must("Like", vocab.Doc{"objectId": beesPost}), false)
	})
}

// A post may name many ids in audience, and looking up each may cost a request. The engine looks
// up only a few.
func TestFewCommunitiesAreLookedUp(t *testing.T) {
	t.Parallel()
	d := village(t)
	many := []any{}
	for _, id := range []string{"https://a.example/c/1", "https://a.example/c/2", bees, "https://a.example/c/4", "https://a.example/c/5"} {
		d.world.community(t, id)
		many = append(many, id)
	}
	post := d.world.inCommunity("https://p.example/9", "Note", public, many)
	asked := d.world.asked
	a := d.must("Reply", vocab.Doc{"objectId": post, "content": "buzz"})
	// one of the requests is for the author
	if got := d.world.asked - asked - 1; got != maxCommunities {
		t.Errorf("%d actors were asked for besides the author, want %d", got, maxCommunities)
	}
	if diff := cmp.Diff(many[:maxCommunities], mustDoc(t, a.Raw)["audience"]); diff != "" {
		t.Error(diff)
	}
}

// The community's server is down while the user answers a post. The user follows the community, so
// the user's database has a copy of its actor.
func TestACommunityWhoseServerIsDownIsReachedLater(t *testing.T) {
	t.Parallel()
	d := village(t)
	d.must("Follow", vocab.Doc{"actorUri": bees})
	d.owed()
	d.world.fails[bees] = fault.New(fault.Unavailable, "down")
	d.checkCommunity("Like", d.must("Like", vocab.Doc{"objectId": beesPost}), true)
}

// A server that hangs does not use up the time for the communities after it. A community that the
// user follows is found in the user's database.
func TestAServerThatHangsHoldsUpNoCommunity(t *testing.T) {
	t.Parallel()
	const hung, other = "https://hung.example/c/1", "https://q.example/c/2"
	d := village(t)
	d.must("Follow", vocab.Doc{"actorUri": bees})
	d.owed()
	d.world.community(t, other)
	d.world.fails[hung], d.world.fails[bees] = errHangs, errHangs
	a := d.must("Like", vocab.Doc{"objectId": d.world.inCommunity("https://p.example/12", "Note", public, []any{hung, bees, other})})
	if diff := cmp.Diff([]any{bees, other}, mustDoc(t, a.Raw)["audience"]); diff != "" {
		t.Error(diff)
	}
}

// The document of an actor may have another id than the id that the engine asked for.
func TestACommunityUnderAnotherIDIsTheSame(t *testing.T) {
	t.Parallel()
	const alias = "https://lemmy.example/c/beekeeping?page=2"
	d := village(t)
	d.world.actors[alias] = d.world.actors[bees]
	post := d.world.inCommunity("https://p.example/13", "Note", public, []any{bees, alias})
	d.checkCommunity("Like", d.must("Like", vocab.Doc{"objectId": post}), true)
	d.must("Block", vocab.Doc{"actorUri": bees})
	d.owed()
	post = d.world.inCommunity("https://p.example/14", "Note", public, alias)
	d.checkCommunity("Like of what is in a blocked community", d.must("Like", vocab.Doc{"objectId": post}), false)
}

// A text may mention a community by its handle, as people of other servers do when they post
// there.
func TestACommunityThatTheTextNamesIsMentioned(t *testing.T) {
	t.Parallel()
	d := village(t)
	const named = "https://lemmy.example/users/beekeeping"
	d.world.community(t, named)
	post := d.world.inCommunity("https://p.example/10", "Note", public, named)
	a := d.must("Reply", vocab.Doc{"objectId": post, "content": "@beekeeping@lemmy.example buzz"})
	note := mustDoc(t, a.Raw).Sub("object")
	if tags, _ := note["tag"].([]any); len(tags) != 2 || note["audience"] != any(named) {
		t.Errorf("the note has the tags %v and names %v in audience, want two mentions and the community", note["tag"], note["audience"])
	}
	if cc, want := note["cc"], []any{followers, bob, named}; !cmp.Equal(cc, any(want)) {
		t.Errorf("cc = %v, want %v", cc, want)
	}
}

func TestAnAssistantAsksForNoCommunity(t *testing.T) {
	t.Parallel()
	d := village(t)
	d.must("Like", vocab.Doc{"objectId": bobsPost})
	post := d.world.inCommunity("https://p.example/11", "Note", public, "https://evil.example/c/words")
	d.world.community(t, "https://evil.example/c/words")
	d.write(func(ctx context.Context, tx *user.Tx) error {
		obj, _, err := d.world.Object(ctx, vocab.ID(post), nil)
		if err == nil {
			_, err = tx.Objects.Add(ctx, handler.Stored(obj, d.Now()))
		}
		return err
	})
	d.world.fails["https://evil.example/c/words"] = fault.New(fault.Internal, "it was asked for")
	asked := d.world.asked
	if err := d.assist(d.token, "Reply", vocab.Doc{"objectId": post, "content": "buzz"}); err != nil || d.world.asked != asked {
		t.Errorf("answered with %v after %d requests, want none", err, d.world.asked-asked)
	}
}
