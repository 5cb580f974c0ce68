package engine_test

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// An engine and a Fedify server share no code. They understand each other in both directions. The
// test runs for each dialect of signatures that the two sides try first.
func TestFedify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ours, theirs string }{
		{"rfc9421", "rfc9421"},
		{"cavage", "draft-cavage-http-signatures-12"},
	} {
		t.Run(tt.ours, func(t *testing.T) {
			peer := enginetest.StartFedify(t, tt.theirs)
			i, far := enginetest.StartTwo(t, "LIGHTWEB_FEDERATION_SIGNATURE_FIRST="+tt.ours)
			m := &meeting{i: i, far: far, alice: i.CreateUser(t, "alice"), peer: peer, dialect: tt.theirs}
			for _, chapter := range []struct {
				name string
				tell func(*testing.T)
			}{
				{"they find us", m.theyFindUs},
				{"we follow", m.weFollow},
				{"they follow", m.theyFollow},
				{"we act", m.weAct},
				{"they act", m.theyAct},
				{"they read our collections", m.theyRead},
				{"they read what clients write", m.theyReadWhatClientsWrite},
				{"we change our keys", m.weChangeKeys},
				{"both part", m.bothPart},
				{"we move", m.weMove},
				{"nothing else went wrong", m.nothingElse},
				{"we are deleted", m.weAreDeleted},
			} {
				if !t.Run(chapter.name, chapter.tell) {
					t.FailNow()
				}
			}
		})
	}
}

// meeting is a scene with two people: alice, a user of the engine, and bob, an actor of the Fedify
// server.
type meeting struct {
	i, far  *enginetest.Instance // alice's engine, and another engine
	alice   *enginetest.User
	peer    *enginetest.Fedify
	dialect string   // the dialect in which both servers sign
	posts   []string // public notes of alice's, oldest first
	creates []string // the ids of their Creates
}

// hears checks the next activity that the peer receives. It must be alice's, have a valid proof,
// and come in a request that is signed in the dialect. Fedify checks the proof before the
// signature.
func (m *meeting) hears(t *testing.T, kind, id, object string) vocab.Doc {
	t.Helper()
	h := m.peer.Expect(t, kind)
	if h.ID != id || h.Actor != m.alice.ID || h.ObjectID != object || h.Signature != m.dialect || h.Verified != "object-proof" {
		t.Errorf("Fedify heard %+v, want %s %s by %s about %s, proven, in a request with a signature by %s", h, kind, id, m.alice.ID, object, m.dialect)
	}
	return h.Activity
}

// acts makes bob act. It checks that alice's inbox accepts the first request, and returns the ids
// of the activity and its object.
func (m *meeting) acts(t *testing.T, call string, args map[string]any) (id, object string) {
	t.Helper()
	answer := m.peer.Call(t, call, args)
	deliveries := answer.Subs("deliveries")
	if len(deliveries) != 1 || deliveries[0].Text("signature") != m.dialect || fmt.Sprint(deliveries[0]["status"]) != "202" {
		t.Errorf("%s was delivered as %s, want one delivery, taken at the first knock by %s", call, answer.JSON(), m.dialect)
	}
	return answer.Text("id"), answer.Text("object")
}

// finds checks the result of a query in alice's database.
func (m *meeting) finds(t *testing.T, want, query string, args ...any) {
	t.Helper()
	if got := strings.Join(m.alice.Column(t, query, args...), ","); got != want {
		t.Errorf("%s of %q finds %q, want %q", query, args, got, want)
	}
}

// proves checks that an activity of bob's arrived with a valid proof.
func (m *meeting) proves(t *testing.T, activity string) {
	t.Helper()
	raw := m.alice.Column(t, `SELECT raw FROM activities WHERE uri = $1`, activity)
	bob, err := vocab.ParseActor(enginetest.Fetch(t, m.peer.Actor()).Body)
	if err != nil || len(raw) != 1 {
		t.Fatalf("%d activities, %v", len(raw), err)
	}
	d, err := vocab.ParseDoc([]byte(raw[0]))
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Parse(d, time.Now())
	if err != nil || p == nil {
		t.Fatalf("the proof of %s is %v, %v", raw[0], p, err)
	}
	i := slices.IndexFunc(bob.Keys, func(k vocab.ActorKey) bool { return k.ID == p.Method })
	if i < 0 {
		t.Fatalf("bob has no key %s", p.Method)
	}
	key, err := signature.ParseMultikey(bob.Keys[i].Multibase)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(key.(ed25519.PublicKey)); err != nil {
		t.Errorf("%s: %v", raw[0], err)
	}
}

func (m *meeting) theyFindUs(t *testing.T) {
	host := strings.TrimPrefix(m.i.URL, "http://")
	finger := m.peer.Call(t, "webfinger", map[string]any{"resource": "acct:alice@" + host, "origin": m.i.URL})
	if problems, ok := finger["problems"].([]any); !ok || len(problems) != 0 {
		t.Errorf("Fedify has this to say about our WebFinger: %s", finger.JSON())
	}
	found := m.peer.Call(t, "lookup", map[string]any{"resource": m.alice.Handle})
	if found.Text("id") != m.alice.ID || found.Text("type") != "Person" {
		t.Errorf("Fedify finds %s under %s", found.JSON(), m.alice.Handle)
	}
	actor := found.Sub("object")
	if actor.Text("preferredUsername") != "alice" || actor.Text("inbox") != m.alice.ID+"/inbox" || len(actor.Subs("assertionMethod")) != 1 {
		t.Errorf("Fedify understands our actor as %s", actor.JSON())
	}
	instance := m.peer.Call(t, "lookup", map[string]any{"resource": m.i.URL + "/actor", "anonymous": true})
	if instance.Text("type") != "Application" {
		t.Errorf("Fedify understands our instance actor as %s", instance.JSON())
	}
}

func (m *meeting) weFollow(t *testing.T) {
	follow := m.alice.Do(t, "Follow", map[string]any{"actorUri": "@bob@" + strings.TrimPrefix(m.peer.Origin, "http://")}).ActivityID
	m.hears(t, "Follow", follow, m.peer.Actor())
	m.alice.Await(t, "notifications", "bob's Accept", func(i enginetest.Item) bool { return i.Type == "Accept" && i.ActorURI == m.peer.Actor() })
	m.finds(t, "accepted", `SELECT status FROM relationships WHERE type = 'following' AND actor_uri = $1`, m.peer.Actor())
}

func (m *meeting) theyFollow(t *testing.T) {
	follow, _ := m.acts(t, "follow", map[string]any{"actor": m.alice.ID})
	if h := m.peer.Expect(t, "Accept"); h.ObjectID != follow || h.Actor != m.alice.ID || h.Signature != m.dialect {
		t.Errorf("Fedify heard %+v, want our Accept of %s", h, follow)
	}
	m.finds(t, "accepted", `SELECT status FROM relationships WHERE type = 'follower' AND actor_uri = $1`, m.peer.Actor())
	if log := m.peer.Look(t, "log"); len(log.Subs("following")) != 1 || log.Subs("following")[0].Text("state") != "accepted" {
		t.Errorf("Fedify follows %v, want alice, accepted", log["following"])
	}
}

func (m *meeting) weAct(t *testing.T) {
	for _, content := range []string{"one", "two", "three"} {
		create, note := m.alice.Post(t, map[string]any{"content": content, "visibility": "public"})
		m.posts, m.creates = append(m.posts, note), append(m.creates, create)
		if got := m.hears(t, "Create", create, note).Sub("object").Text("content"); !strings.Contains(got, content) {
			t.Errorf("Fedify reads %q, want %q", got, content)
		}
		for _, resource := range []string{note, create} {
			if found := m.peer.Call(t, "lookup", map[string]any{"resource": resource}); found.Text("id") != resource {
				t.Errorf("Fedify finds %s at %s", found.JSON(), resource)
			}
		}
	}
	create, secret := m.alice.Post(t, map[string]any{"content": "between us", "visibility": "direct", "to": []string{m.peer.Actor()}})
	m.hears(t, "Create", create, secret)
	if got := enginetest.Fetch(t, secret).Status; got != http.StatusNotFound {
		t.Errorf("a private note is answered %d to nobody in particular, want 404", got)
	}
	if found := m.peer.Call(t, "lookup", map[string]any{"resource": secret}); found.Text("id") != secret {
		t.Errorf("Fedify finds %s at the note that was sent to it", found.JSON())
	}

	_, post := m.acts(t, "create", map[string]any{"content": "a post of bob's", "public": true})
	reply := m.alice.Do(t, "Reply", map[string]any{"objectId": post, "content": "an answer"}).ActivityID
	if got := m.hears(t, "Create", reply, enginetest.ObjectOf(t, m.alice, reply)).Sub("object").Text("inReplyTo"); got != post {
		t.Errorf("Fedify reads an answer to %q, want %q", got, post)
	}
	like := m.alice.Do(t, "Like", map[string]any{"objectId": post}).ActivityID
	m.hears(t, "Like", like, post)
	boost := m.alice.Do(t, "Boost", map[string]any{"objectId": post}).ActivityID
	m.hears(t, "Announce", boost, post)
	m.hears(t, "Undo", m.alice.Do(t, "Unlike", map[string]any{"objectId": post}).ActivityID, like)
	m.hears(t, "Undo", m.alice.Do(t, "Unboost", map[string]any{"objectId": post}).ActivityID, boost)

	update := m.alice.Do(t, "UpdateObject", map[string]any{"objectId": m.posts[0], "content": "one, corrected"}).ActivityID
	if got := m.hears(t, "Update", update, m.posts[0]).Sub("object").Text("content"); !strings.Contains(got, "corrected") {
		t.Errorf("Fedify reads %q after the Update", got)
	}
	remove := m.alice.Do(t, "DeleteObject", map[string]any{"objectId": m.posts[2]}).ActivityID
	m.hears(t, "Delete", remove, m.posts[2])
	if got := enginetest.Fetch(t, m.posts[2]).Status; got != http.StatusGone {
		t.Errorf("a deleted note is answered %d, want 410", got)
	}
}

func (m *meeting) theyAct(t *testing.T) {
	create, note := m.acts(t, "create", map[string]any{"content": "<p>hello &amp; welcome</p>", "public": true})
	m.proves(t, create)
	m.alice.Await(t, "main", "bob's post", func(i enginetest.Item) bool { return i.ActivityURI == create })
	answer, _ := m.acts(t, "create", map[string]any{"content": "yes", "inReplyTo": m.posts[1]})
	m.alice.Await(t, "notifications", "bob's answer", func(i enginetest.Item) bool { return i.ActivityURI == answer })
	like, _ := m.acts(t, "like", map[string]any{"object": m.posts[1]})
	boost, _ := m.acts(t, "announce", map[string]any{"object": m.posts[1]})
	m.finds(t, "Announce,Like", `SELECT type FROM reactions WHERE object_uri = $1 AND actor_uri = $2 ORDER BY type`, m.posts[1], m.peer.Actor())
	m.acts(t, "undo", map[string]any{"activity": like})
	m.acts(t, "undo", map[string]any{"activity": boost})
	m.finds(t, "", `SELECT type FROM reactions WHERE object_uri = $1`, m.posts[1])
	m.acts(t, "update", map[string]any{"object": note, "content": "hello again"})
	m.finds(t, "hello again", `SELECT raw ->> 'content' FROM objects WHERE uri = $1`, note)
	m.acts(t, "delete", map[string]any{"object": note})
	m.finds(t, "Tombstone", `SELECT raw ->> 'type' FROM objects WHERE uri = $1`, note)
	m.finds(t, "0", `SELECT count(*) FROM feed WHERE activity_uri = $1`, create)
}

func (m *meeting) theyRead(t *testing.T) {
	outbox := m.peer.Call(t, "traverse", map[string]any{"collection": m.alice.ID + "/outbox"})
	var ids []string
	for _, item := range outbox.Subs("items") {
		if item.Text("type") == "Create" {
			ids = append(ids, item.Text("id"))
		}
	}
	if len(ids) < 2 || !slices.Contains(ids, m.creates[0]) || !slices.Contains(ids, m.creates[1]) || slices.Index(ids, m.creates[1]) > slices.Index(ids, m.creates[0]) {
		t.Errorf("Fedify reads the outbox as %s, want %q in it, the newest first", outbox.JSON(), m.creates[:2])
	}
	if strings.Contains(string(outbox.JSON()), "between us") {
		t.Errorf("the outbox shows a private post: %s", outbox.JSON())
	}
	followers := m.peer.Call(t, "traverse", map[string]any{"collection": m.alice.ID + "/followers"})
	if items := followers.Subs("items"); len(items) != 1 || items[0].Text("id") != m.peer.Actor() {
		t.Errorf("Fedify reads the followers as %s, want bob", followers.JSON())
	}
}

// theyReadWhatClientsWrite lets alice write posts with links, mentions, hashtags and the like. It
// checks that Fedify reads them.
func (m *meeting) theyReadWhatClientsWrite(t *testing.T) {
	bob := "@bob@" + strings.TrimPrefix(m.peer.Origin, "http://")
	create, note := m.alice.Post(t, map[string]any{"content": "see https://example.org/a?b=c with " + bob + " #Bees", "visibility": "public"})
	heard := m.hears(t, "Create", create, note).Sub("object")
	if content := heard.Text("content"); !strings.Contains(content, `href="https://example.org/a?b=c"`) || !strings.Contains(content, m.peer.Actor()) {
		t.Errorf("Fedify reads the links in %q", content)
	}
	found := m.peer.Call(t, "lookup", map[string]any{"resource": note}).Sub("object")
	var tags []string
	for _, tag := range found.Subs("tag") {
		tags = append(tags, tag.Text("type")+" "+tag.Text("href"))
	}
	slices.Sort(tags)
	if want := []string{"Hashtag " + m.i.URL + "/@alice/tags/bees", "Mention " + m.peer.Actor()}; !slices.Equal(tags, want) {
		t.Errorf("Fedify reads the tags %q of %s, want %q", tags, found.JSON(), want)
	}

	reply := m.alice.Do(t, "Reply", map[string]any{"objectId": note, "content": "more of it"}).ActivityID
	answer := enginetest.ObjectOf(t, m.alice, reply)
	m.hears(t, "Create", reply, answer)
	for collection, want := range map[string][]string{note + "/replies": {answer}, note + "/context": {note, answer}} {
		var ids []string
		read := m.peer.Call(t, "traverse", map[string]any{"collection": collection})
		for _, item := range read.Subs("items") {
			ids = append(ids, item.Text("id"))
		}
		if !slices.Equal(ids, want) {
			t.Errorf("Fedify reads %s as %s, want %q", collection, read.JSON(), want)
		}
	}

	add := m.alice.Do(t, "AddToStream", map[string]any{"objectId": note, "streamId": "featured"}).ActivityID
	if h := m.peer.Expect(t, "Add"); h.ID != add || h.ObjectID != note {
		t.Errorf("Fedify heard %+v, want the Add of a pin", h)
	}
	m.alice.Do(t, "UpdateProfile", map[string]any{"name": "Alice the second"})
	if h := m.peer.Expect(t, "Update"); h.ObjectID != m.alice.ID {
		t.Errorf("Fedify heard %+v, want the Update of alice", h)
	}
	if actor := m.peer.Call(t, "lookup", map[string]any{"resource": m.alice.Handle}).Sub("object"); actor.Text("name") != "Alice the second" {
		t.Errorf("Fedify reads the profile as %s", actor.JSON())
	}
	m.theyReadAStamp(t, note)
}

// theyReadAStamp lets carol quote alice's note. It checks that Fedify reads the quote
// authorization.
func (m *meeting) theyReadAStamp(t *testing.T, note string) {
	carol := m.i.CreateUser(t, "carol")
	carol.Post(t, map[string]any{"content": "look", "visibility": "public", "quote": note})
	var stamps []string
	enginetest.Eventually(t, "alice has approved the quote", func() bool {
		stamps = m.alice.Column(t, `SELECT uri FROM objects WHERE raw ->> 'type' = 'QuoteAuthorization'`)
		return len(stamps) == 1
	})
	found := m.peer.Call(t, "lookup", map[string]any{"resource": stamps[0]}).Sub("object")
	if found.Text("type") != "QuoteAuthorization" || found.Text("attributedTo") != m.alice.ID || found.Text("interactionTarget") != note {
		t.Errorf("Fedify reads the stamp as %s", found.JSON())
	}
}

func (m *meeting) bothPart(t *testing.T) {
	undo := m.alice.Do(t, "Unfollow", map[string]any{"actorUri": m.peer.Actor()}).ActivityID
	if h := m.peer.Expect(t, "Undo"); h.ID != undo {
		t.Errorf("Fedify heard %+v, want %s", h, undo)
	}
	if left, ok := m.peer.Look(t, "log")["followers"].([]any); !ok || len(left) != 0 {
		t.Errorf("Fedify still has the followers %v", left)
	}
	m.acts(t, "unfollow", map[string]any{"actor": m.alice.ID})
	m.finds(t, "", `SELECT status FROM relationships`)
}

// weChangeKeys lets alice sign with new keys that the peer has not seen.
func (m *meeting) weChangeKeys(t *testing.T) {
	if got := m.i.Run(t, "user", "rotate-keys", "alice", "--yes"); got.Code != 0 {
		t.Fatalf("user rotate-keys ended with %d: %s", got.Code, got.Stderr)
	}
	if h := m.peer.Expect(t, "Update"); h.ObjectID != m.alice.ID || h.Verified == "" {
		t.Errorf("Fedify heard %+v, want the Update of alice, proven by a new key", h)
	}
	create, note := m.alice.Post(t, map[string]any{"content": "signed anew", "visibility": "public"})
	m.hears(t, "Create", create, note)
}

// A user that bob follows moves to another instance by weMove. bob becomes a follower of the new
// account and receives its posts.
func (m *meeting) weMove(t *testing.T) {
	was, is := m.i.CreateUser(t, "wanda"), m.far.CreateUser(t, "wanja")
	m.peer.Call(t, "follow", map[string]any{"actor": was.ID})
	m.peer.Expect(t, "Accept")
	healed(t, m.far, []string{"user", "move", is.Name, "--from", was.Handle})
	enginetest.Eventually(t, "the new account has said that it is the old one, too", func() bool {
		return len(is.Column(t, `SELECT uri FROM activities WHERE type = 'Update'`)) == 1
	})
	healed(t, m.i, []string{"user", "move", was.Name, "--to", is.Handle, "--yes"})
	h := m.peer.Expect(t, "Move")
	if h.Actor != was.ID || h.ObjectID != was.ID || h.Activity.Text("target") != is.ID || h.Signature != m.dialect || h.Verified != "object-proof" {
		t.Errorf("Fedify heard %+v, want the Move of %s to %s, proven, in a request with a signature by %s", h, was.ID, is.ID, m.dialect)
	}
	enginetest.Eventually(t, "the old account has said that it moved", func() bool {
		return len(was.Column(t, `SELECT uri FROM activities WHERE type = 'Update'`)) == 1
	})
	want := map[string]string{"Accept": is.ID}
	if len(was.Column(t, `SELECT d.inbox FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.type = 'Update'`)) > 0 {
		want["Update"] = was.ID // bob still followed the old account
	}
	heard := map[string]string{} // two servers send to bob, so the order is open
	for range want {
		h := m.peer.Expect(t, "")
		heard[h.Activity.Text("type")] = h.Actor
	}
	if !maps.Equal(heard, want) {
		t.Errorf("Fedify heard %v after the Move, want %v", heard, want)
	}
	if got := m.peer.Look(t, "log").Subs("following"); len(got) != 1 || got[0].Text("id") != is.ID || got[0].Text("state") != "accepted" {
		t.Errorf("Fedify follows %v, want the new account alone", got)
	}
	enginetest.Eventually(t, "bob follows the new account alone", func() bool {
		const followers = `SELECT actor_uri FROM relationships WHERE type = 'follower' AND status = 'accepted'`
		return len(was.Column(t, followers)) == 0 && slices.Equal(is.Column(t, followers), []string{m.peer.Actor()})
	})
	create, note := is.Post(t, map[string]any{"content": "from my new home", "visibility": "public"})
	if h := m.peer.Expect(t, "Create"); h.ID != create || h.ObjectID != note {
		t.Errorf("Fedify heard %+v, want the new account's post", h)
	}
}

// weAreDeleted deletes alice after the peer has seen her posts.
func (m *meeting) weAreDeleted(t *testing.T) {
	if got := m.i.Run(t, "user", "delete", "alice", "--yes"); got.Code != 0 {
		t.Fatalf("user delete ended with %d: %s", got.Code, got.Stderr)
	}
	if h := m.peer.Expect(t, "Delete"); h.ObjectID != m.alice.ID || h.Actor != m.alice.ID || h.Verified == "" {
		t.Errorf("Fedify heard %+v, want the Delete of alice, by alice", h)
	}
	expectDeleted(t, m.i, m.alice)
	for _, resource := range []string{m.alice.ID, m.posts[1]} {
		if got := m.peer.Try(t, "lookup", map[string]any{"resource": resource}); got.Status != http.StatusUnprocessableEntity && got.Status != http.StatusNotFound {
			t.Errorf("Fedify still finds something at %s: %d %s", resource, got.Status, got.Body)
		}
	}
}

func (m *meeting) nothingElse(t *testing.T) {
	for _, e := range m.peer.Look(t, "log").Subs("errors") {
		t.Errorf("Fedify complained: %s", e.Text("message"))
	}
	m.finds(t, "", `SELECT reason FROM poison`)
}
