package engine_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// beekeeping is a community of Lemmy. It has members on another server, and two users of this
// engine.
type beekeeping struct {
	home          *enginetest.Instance
	alice, bob    *enginetest.User
	lemmy, others *peertest.Peer
	community     *peertest.Actor
}

func newBeekeeping(t *testing.T) *beekeeping {
	t.Helper()
	s := &beekeeping{home: enginetest.Start(t), lemmy: peertest.New(t, "127.0.0.2"), others: peertest.New(t, "127.0.0.3")}
	s.alice, s.bob = s.home.CreateUser(t, "alice"), s.home.CreateUser(t, "bob")
	s.community = s.lemmy.Actor("/c/beekeeping")
	s.community.Doc["type"] = "Group"
	s.community.Show()
	return s
}

// bothFollow lets both users follow the community.
func (s *beekeeping) bothFollow(t *testing.T) {
	t.Helper()
	for n, u := range []*enginetest.User{s.alice, s.bob} {
		follow := u.Do(t, "Follow", map[string]any{"actorUri": string(s.community.ID)}).ActivityID
		post(t, s.community, u.ID+"/inbox", fmt.Sprintf(`{"id":"%s/accepts/%d","type":"Accept","actor":"%s","object":"%s"}`, s.community.ID, n, s.community.ID, follow))
		awaitFollows(t, u, "following accepted")
	}
}

// FE-21: two users follow a community of Lemmy with members on another server. The community's
// Announces bring the members' posts, edits, likes and deletions to both users.
func TestACommunityOfLemmy(t *testing.T) {
	t.Parallel()
	s := newBeekeeping(t)
	i, alice, bob, lemmy, others, community := s.home, s.alice, s.bob, s.lemmy, s.others, s.community
	names := strings.NewReplacer("https://lemmy.example", lemmy.Origin, "https://other.example", others.Origin)
	document := func(name string) vocab.Doc {
		raw, err := os.ReadFile("../testdata/activities/lemmy/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		d, err := vocab.ParseDoc([]byte(names.Replace(string(raw))))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	shows := func(p *peertest.Peer, path, name string) {
		p.Serve(path, document(name).Sub("object").Sub("object").JSON())
	}
	announces := func(name string) string {
		d := document(name)
		post(t, community, i.URL+"/inbox", string(d.JSON()))
		return d.Text("id")
	}
	both := func(what string, holds func(u *enginetest.User) bool) {
		t.Helper()
		for _, u := range []*enginetest.User{alice, bob} {
			enginetest.Eventually(t, u.Name+" "+what, func() bool { return holds(u) })
		}
	}
	rows := func(query string, want ...string) func(*enginetest.User) bool {
		return func(u *enginetest.User) bool { return slices.Equal(u.Column(t, query), want) }
	}
	s.bothFollow(t)

	shows(lemmy, "/post/5", "announce_create")
	shows(others, "/comment/7", "announce_create_comment")
	for _, name := range []string{"announce_create", "announce_create_comment"} {
		id := announces(name)
		for _, u := range []*enginetest.User{alice, bob} {
			u.Await(t, "main", name, func(it enginetest.Item) bool { return it.ActivityURI == id && it.ActorURI == string(community.ID) })
		}
	}
	if feed := alice.Ask(t, http.MethodGet, "/api/feed?feed=main", nil); !strings.Contains(string(feed.Body), "Indeed") {
		t.Errorf("the feed shows %s", feed.Body)
	}
	announces("announce_page")
	announces("announce_like")
	both("has the Like", rows(`SELECT type FROM reactions WHERE kind = 'review'`, "Like"))
	announces("announce_undo_like")
	both("has no Like", rows(`SELECT type FROM reactions WHERE kind = 'review'`))
	shows(others, "/comment/7", "announce_update")
	announces("announce_update")
	edited := others.Origin + "/comment/7"
	both("has the new words", rows(`SELECT raw ->> 'content' FROM objects WHERE uri = '`+edited+`'`, "<p>Indeed not</p>\n"))
	if n := alice.Column(t, `SELECT count(*) FROM feed`); n[0] != "2" {
		t.Errorf("alice has %s entries in the feed, want one for each post", n[0])
	}
	others.Answer("/comment/7", http.StatusGone)
	announces("announce_delete")
	both("has a Tombstone", rows(`SELECT raw ->> 'type' FROM objects WHERE uri = '`+edited+`'`, "Tombstone"))
}

// eve, on a server of her own, comments in a community of Lemmy. alice's answer and Like go to the
// community. The community announces the answer, so bob reads it.
func TestAnAnswerReachesTheCommunity(t *testing.T) {
	t.Parallel()
	s := newBeekeeping(t)
	i, alice, bob, lemmy, others, community := s.home, s.alice, s.bob, s.lemmy, s.others, s.community
	others.Actor("/u/eve")
	s.bothFollow(t)
	raw, err := os.ReadFile("../testdata/activities/lemmy/announce_create_comment.json")
	if err != nil {
		t.Fatal(err)
	}
	announce, err := vocab.ParseDoc([]byte(strings.NewReplacer("https://lemmy.example", lemmy.Origin, "https://other.example", others.Origin).Replace(string(raw))))
	if err != nil {
		t.Fatal(err)
	}
	others.Serve("/comment/7", announce.Sub("object").Sub("object").JSON())
	post(t, community, i.URL+"/inbox", string(announce.JSON()))
	alice.Await(t, "main", "the comment", func(it enginetest.Item) bool { return it.ActivityURI == announce.Text("id") })

	alice.Do(t, "Like", map[string]any{"objectId": others.Origin + "/comment/7"})
	answer := alice.Do(t, "Reply", map[string]any{"objectId": others.Origin + "/comment/7", "content": "Well said"}).ActivityID
	got := map[string]vocab.Doc{}
	for _, kind := range []string{"Like", "Create"} {
		enginetest.Eventually(t, kind+" at the community", func() bool {
			for _, p := range lemmy.Posted() {
				if d, err := vocab.ParseDoc(p.Content); err == nil {
					got[d.Text("type")] = d
				}
			}
			return got[kind] != nil
		})
		if got[kind]["audience"] != any(string(community.ID)) {
			t.Errorf("the %s names %v in audience", kind, got[kind]["audience"])
		}
	}
	if got["Create"].Text("id") != answer || got["Create"].Sub("object")["audience"] != any(string(community.ID)) {
		t.Errorf("the community got %s", got["Create"].JSON())
	}
	id := lemmy.Origin + "/activities/announce/answer"
	post(t, community, i.URL+"/inbox", string(vocab.Doc{"@context": vocab.Context(), "id": id, "type": "Announce", "actor": string(community.ID),
		"to": []any{string(vocab.Public)}, "cc": []any{string(community.ID) + "/followers"}, "object": got["Create"]}.JSON()))
	bob.Await(t, "main", "alice's answer", func(it enginetest.Item) bool { return it.ActivityURI == id })
}
