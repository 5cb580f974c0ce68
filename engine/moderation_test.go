package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

const follows = `SELECT type || ' ' || status FROM relationships ORDER BY type`

// mutual makes two users follow each other.
func mutual(t *testing.T, one, other *enginetest.User) {
	t.Helper()
	befriend(t, one, other)
	befriend(t, other, one)
}

// awaitFollows waits until a user has exactly these follows.
func awaitFollows(t *testing.T, u *enginetest.User, want ...string) {
	t.Helper()
	enginetest.Eventually(t, fmt.Sprintf("%s has the follows %q", u.Name, want), func() bool { return slices.Equal(u.Column(t, follows), want) })
}

// A block ends the follows on both sides. The other user is not told of the block. Later
// activities of the blocked user have no effect.
func blockBetweenEngines(t *testing.T, a, b *enginetest.Instance) {
	alice, troll := a.CreateUser(t, "sybil"), b.CreateUser(t, "trudy")
	mutual(t, alice, troll)
	before, _ := troll.Post(t, map[string]any{"content": "so sorry"})
	alice.Await(t, "main", "the post", func(i enginetest.Item) bool { return i.ActivityURI == before })

	block := alice.Do(t, "Block", map[string]any{"actorUri": troll.Handle})
	if block.FederationJob != nil {
		t.Errorf("the Block is delivered: %+v", block.FederationJob)
	}
	awaitFollows(t, alice)
	awaitFollows(t, troll, "following rejected")
	for _, feed := range []string{"main", "notifications"} {
		if items := alice.Feed(t, feed); slices.ContainsFunc(items, func(i enginetest.Item) bool { return i.ActorURI == troll.ID }) {
			t.Errorf("%s still shows the actor that she blocks", feed)
		}
	}
	if got := troll.Column(t, `SELECT count(*) FROM activities WHERE type = 'Block'`); got[0] != "0" {
		t.Error("the other was told of the block")
	}

	events := len(alice.Events(t, 0))
	follow := troll.Do(t, "Follow", map[string]any{"actorUri": alice.ID}).ActivityID
	delivered(t, troll, follow, false)
	reply, _ := troll.Post(t, map[string]any{"content": "why?", "to": []string{alice.ID}})
	delivered(t, troll, reply, false)
	if got := alice.Events(t, 0); len(got) != events {
		t.Errorf("%d events of an actor that she blocks, want none", len(got)-events)
	}
	if got := alice.Try(t, "Follow", map[string]any{"actorUri": troll.ID}); got.Status != http.StatusConflict {
		t.Errorf("following an actor that she blocks was answered %d, want 409", got.Status)
	}

	alice.Do(t, "Unblock", map[string]any{"actorUri": troll.ID})
	awaitFollows(t, alice)
	again := troll.Do(t, "Follow", map[string]any{"actorUri": alice.ID})
	delivered(t, troll, again.ActivityID, false)
}

// blockThatIsDelivered configures an engine to deliver blocks. The blocked user's server receives
// the Block and its Undo.
func blockThatIsDelivered(t *testing.T, a, b *enginetest.Instance) {
	b.Stop(t)
	b.Set("LIGHTWEB_FEDERATION_DELIVER_BLOCKS=true")
	b.Start(t)
	author, reader := b.CreateUser(t, "olga"), a.CreateUser(t, "pavel")
	mutual(t, author, reader)
	block := author.Do(t, "Block", map[string]any{"actorUri": reader.ID})
	delivered(t, author, block.ActivityID, false)
	awaitFollows(t, author)
	enginetest.Eventually(t, "the reader is told", func() bool {
		return slices.Equal(reader.Column(t, `SELECT direction || ' ' || actor_uri FROM blocks`), []string{"inbound " + author.ID})
	})
	if got := reader.Try(t, "Follow", map[string]any{"actorUri": author.ID}); got.Status != http.StatusForbidden {
		t.Errorf("following who blocks was answered %d %s, want 403", got.Status, got.Body)
	}
	undo := author.Do(t, "Unblock", map[string]any{"actorUri": reader.ID})
	delivered(t, author, undo.ActivityID, false)
	enginetest.Eventually(t, "the block is forgotten", func() bool { return len(reader.Column(t, `SELECT 1 FROM blocks`)) == 0 })
}

// reportByAPeer lets another server send a report. The operator can read the report, and the
// reported user cannot.
func reportByAPeer(t *testing.T, a *enginetest.Instance) {
	alice := a.CreateUser(t, "quentin")
	_, note := alice.Post(t, map[string]any{"content": "buy now"})
	peer := peertest.New(t, "127.0.0.4")
	moderator := peer.Actor("/actor")
	flag := vocab.Doc{"@context": vocab.ContextAS, "id": peer.Origin + "/flags/1", "type": "Flag", "actor": string(moderator.ID),
		"content": "spam\nagain", "object": []any{alice.ID, note}}.JSON()
	for range 2 {
		post(t, moderator, a.URL+"/inbox", string(flag))
	}
	if got := alice.Column(t, `SELECT 1 FROM activities WHERE direction = 'inbound' UNION ALL SELECT 1 FROM event_outbox WHERE type LIKE 'flag%'`); len(got) > 0 {
		t.Error("the one who is reported has it")
	}
	var listed struct {
		Reports []struct {
			ID            int64
			State, Host   string
			Users         []string
			Objects       []string
			Content, Note string
		}
	}
	list := func(args ...string) {
		t.Helper()
		listed.Reports = nil
		ran := a.Run(t, append([]string{"report", "list", "--json"}, args...)...)
		ran.Decode(t, &listed)
	}
	list()
	if len(listed.Reports) != 1 {
		t.Fatalf("%d reports are open, want 1", len(listed.Reports))
	}
	r := listed.Reports[0]
	if r.Host != moderator.ID.Host() || !slices.Equal(r.Users, []string{"quentin"}) || !slices.Equal(r.Objects, []string{alice.ID, note}) || r.Content != "spam\nagain" {
		t.Errorf("listed %+v, want the peer's report", r)
	}
	id := fmt.Sprint(r.ID)
	runAll(t, a, []command{
		{"report show " + id, 0, ""},
		{"report show 99999", 66, "no report 99999"},
		{"report show x", 64, "no id"},
		{"report resolve 99999", 66, "no report 99999"},
		{"report resolve", 64, "needs ID"},
	})
	some := a.Run(t, "report", "resolve", id, "99999", "--note", "done")
	if some.Code != 3 || some.Stdout != "resolved "+id+"\n" || !strings.Contains(some.Stderr, "no report 99999") {
		t.Errorf("resolving two, of which one is missing: %d, %q, %q", some.Code, some.Stdout, some.Stderr)
	}
	if list(); len(listed.Reports) != 0 {
		t.Errorf("%+v is open, want none", listed.Reports)
	}
	if list("--all"); len(listed.Reports) != 1 || listed.Reports[0].State != "resolved" || listed.Reports[0].Note != "done" {
		t.Errorf("in all %+v, want it resolved with its note", listed.Reports)
	}
	if shown := a.Run(t, "report", "show", id); !strings.Contains(shown.Stdout, "content: spam again\n") || !strings.Contains(shown.Stdout, "object: "+note+"\n") {
		t.Errorf("shown:\n%s", shown.Stdout)
	}
}
