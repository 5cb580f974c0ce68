package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAProgramLearnsWhoItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.relate(f.alice, user.Follower, user.Accepted, f.carol.ID, start)
	f.relate(f.alice, user.Following, user.Pending, f.carol.ID, start)
	type me struct {
		User, URI, Handle, Name, Summary string
		Followers, Following             int
		Scopes                           []string
	}
	for _, scope := range []string{"read", "write", "llm", "admin"} {
		var got me
		f.get("/api/me", bearerToken(f.token(f.alice, scope))).want(t, 200).decode(t, &got)
		want := me{User: "alice", Name: "alice", URI: string(f.local.ID(f.alice)), Handle: f.local.Handle(f.alice), Followers: 1, Scopes: []string{scope}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("scope %s (-want +got):\n%s", scope, d)
		}
	}
	f.get("/api/me").want(t, 401)
	f.get("/api/me?x=1", bearerToken(f.token(f.alice, "read"))).want(t, 400)
}

func TestAnActorIsFoundWithItsTies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.relate(f.alice, user.Following, user.Pending, f.carol.ID, start)
	f.relate(f.alice, user.Follower, user.Accepted, f.carol.ID, start)
	f.befriend(f.alice, user.FriendOf, user.Pending, user.Inbound, f.carol.ID, start)
	f.befriend(f.alice, user.CloseFriendOf, user.Accepted, user.Outbound, f.carol.ID, start)
	f.befriend(f.bob, user.FriendOf, user.Pending, user.Outbound, f.carol.ID, start)
	f.block(f.alice, f.carol.ID)
	doc := vocab.Doc{"id": string(f.carol.ID), "type": "Person", "preferredUsername": "carol", "inbox": string(f.carol.Inbox), "url": "https://peer.example/@carol",
		"name": "Carol <b>x</b>", "summary": `<p onclick="x()">hi<script>alert(1)</script></p>`, "icon": vocab.Doc{"type": "Image", "url": "https://peer.example/c.png"}}
	var err error
	if f.outbox.found, err = vocab.ParseActor(doc.JSON()); err != nil {
		t.Fatal(err)
	}
	token := bearerToken(f.token(f.alice, "read"))
	type ties struct {
		Following, FollowedBy, FriendOf, CloseFriendOf string
		Blocking, BlockedBy                            bool
	}
	var got struct {
		URI, Type, Handle, Name, Icon, Summary, Page string
		Relationship                                 ties
	}
	f.get("/api/actors?handle=%40carol%40peer.example", token).want(t, 200).decode(t, &got)
	if got.URI != string(f.carol.ID) || got.Handle != "@carol@peer.example" || got.Page != "https://peer.example/@carol" || got.Icon != "https://peer.example/c.png" ||
		got.Summary != "<p>hi</p>" || strings.Contains(got.Name, "<") {
		t.Errorf("carol is shown as %+v", got)
	}
	if got.Relationship != (ties{"pending", "accepted", "received", "accepted", true, false}) {
		t.Errorf("between alice and carol stands %+v", got.Relationship)
	}
	if f.outbox.wanted != "@carol@peer.example" || f.outbox.forAssistant {
		t.Errorf("asked for is %q", f.outbox.wanted)
	}
	f.get("/api/actors?uri=https://peer.example/users/carol", bearerToken(f.token(f.bob, "llm"))).want(t, 200).decode(t, &got)
	if got.Relationship != (ties{"none", "none", "sent", "none", false, false}) || !f.outbox.forAssistant {
		t.Errorf("between bob and carol stands %+v", got.Relationship)
	}
	for _, wrong := range []string{"", "?handle=@a@b.example&uri=https://b.example/a", "?uri=a&uri=b", "?name=carol"} {
		f.get("/api/actors"+wrong, token).want(t, 400)
	}
	f.get("/api/actors?handle=@a@b.example", bearerToken(f.token(f.alice, "write"))).want(t, 403)
	f.get("/api/actors?handle=@a@b.example").want(t, 401)
	for f.get("/api/actors?handle=@a@b.example", token).StatusCode == 200 {
		continue // repeats until the quota of alice's programs is used up
	}
	if r := f.get("/api/actors?handle=@a@b.example", token).want(t, 429); r.Header.Get("Retry-After") == "" {
		t.Error("a program is not told when to come again")
	}
	token = bearerToken(f.token(f.bob, "read"))
	f.get("/api/actors?handle=@a@b.example", token).want(t, 200)
	f.outbox.err = fault.New(fault.Unprocessable, "nobody").WithCode("no_such_user")
	f.get("/api/actors?handle=@a@b.example", token).want(t, http.StatusUnprocessableEntity)
}

// Follows, friendships, blocks and pending requests are listed page by page.
func TestRelationshipsAreListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	actor := func(name string) vocab.ID { return vocab.ID("https://peer.example/users/" + name) }
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	f.relate(f.alice, user.Follower, user.Pending, actor("a"), at(1))
	f.relate(f.alice, user.Follower, user.Accepted, f.carol.ID, at(2))
	f.relate(f.alice, user.Following, user.Accepted, f.local.ID(f.bob), at(3))
	f.relate(f.alice, user.Following, user.Rejected, actor("d"), at(4))
	f.befriend(f.alice, user.FriendOf, user.Pending, user.Inbound, actor("h"), at(7))
	f.befriend(f.alice, user.CloseFriendOf, user.Pending, user.Outbound, actor("i"), at(8))
	f.befriend(f.alice, user.FriendOf, user.Accepted, user.Outbound, f.carol.ID, at(9))
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		for n, b := range []user.Block{{Actor: actor("e"), Direction: user.Outbound, Activity: "https://x/1"}, {Actor: actor("g"), Direction: user.Inbound, Activity: "https://x/2"}} {
			if err := tx.Blocks.Add(ctx, b, at(5+n)); err != nil {
				return err
			}
		}
		doc := vocab.Doc{"id": string(f.carol.ID), "type": "Person", "preferredUsername": "carol", "inbox": string(f.carol.Inbox)}
		carol, err := vocab.ParseActor(doc.JSON())
		if err != nil {
			return err
		}
		return tx.Actors.Save(ctx, carol, start)
	})
	token := bearerToken(f.token(f.alice, "read"))
	list := func(query string) (all []string) {
		t.Helper()
		for next := ""; ; {
			var page struct {
				Items []struct {
					ActorURI, Type, Status, Direction, ActivityURI string
					Since                                          time.Time
				}
				Actors map[string]struct{ Handle string }
				Next   string
			}
			f.get("/api/relationships?limit=2"+query+next, token).want(t, 200).decode(t, &page)
			for _, i := range page.Items {
				name := i.ActorURI[strings.LastIndex(i.ActorURI, "/")+1:]
				all = append(all, strings.TrimSpace(i.Type+" "+name+" "+i.Status+" "+i.Direction))
				if _, isShown := page.Actors[i.ActorURI]; !isShown {
					t.Errorf("the actors of a page lack %s", name)
				}
				if handle := page.Actors[i.ActorURI].Handle; (name == "carol" || name == "bob") && !strings.HasPrefix(handle, "@"+name+"@") {
					t.Errorf("%s is shown as %q", name, handle)
				}
			}
			if page.Next == "" {
				return all
			}
			next = "&cursor=" + page.Next
		}
	}
	for query, want := range map[string][]string{
		"":                                {"friendOf carol accepted sent", "closeFriendOf i pending sent", "friendOf h pending received", "block e accepted", "following d rejected", "following bob accepted", "follower carol accepted", "follower a pending"},
		"&type=follower":                  {"follower carol accepted", "follower a pending"},
		"&type=follower&status=pending":   {"follower a pending"},
		"&status=accepted":                {"friendOf carol accepted sent", "block e accepted", "following bob accepted", "follower carol accepted"},
		"&type=block":                     {"block e accepted"},
		"&type=following&status=pending":  nil,
		"&type=following&status=rejected": {"following d rejected"},
		"&type=friendOf":                  {"friendOf carol accepted sent", "friendOf h pending received"},
		"&type=closeFriendOf":             {"closeFriendOf i pending sent"},
		"&direction=received":             {"friendOf h pending received"},
		"&status=pending&direction=sent":  {"closeFriendOf i pending sent"},
	} {
		if d := cmp.Diff(want, list(query)); d != "" {
			t.Errorf("%s (-want +got):\n%s", query, d)
		}
	}
	for _, wrong := range []string{"?type=friend", "?status=gone", "?direction=inbound", "?direction=", "?limit=0", "?limit=201", "?cursor=x", "?x=1"} {
		f.get("/api/relationships"+wrong, token).want(t, 400)
	}
	f.get("/api/relationships", bearerToken(f.token(f.alice, "llm"))).want(t, 403)
	f.get("/api/relationships").want(t, 401)
}
