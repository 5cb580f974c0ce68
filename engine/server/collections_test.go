package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// walk reads a collection to its end and returns the ids of its items. After each page it calls
// between().
func (f *fixture) walk(id string, between func(), how ...asking) []vocab.ID {
	f.Helper()
	next := f.get(id, how...).want(f, 200).doc(f.T).Text("first")
	var ids []vocab.ID
	for next != "" {
		d := f.get(next, how...).want(f, 200).doc(f.T)
		if d.Text("type") != "OrderedCollectionPage" || d.Text("partOf") != id || d.Text("id") != next || d["items"] != nil {
			f.Fatalf("CO-06: %s is %v", next, d)
		}
		items, _ := d["orderedItems"].([]any)
		for _, i := range items {
			switch i := i.(type) {
			case string:
				ids = append(ids, vocab.ID(i))
			case vocab.Doc:
				ids = append(ids, vocab.ID(i.Text("id")))
			}
		}
		if next = d.Text("next"); next != "" && len(items) == 0 {
			f.Fatalf("%s is empty and not the last", d.Text("id"))
		}
		if between != nil {
			between()
		}
	}
	return ids
}

func (f *fixture) total(id string, how ...asking) string {
	f.Helper()
	n, _ := f.get(id, how...).want(f, 200).doc(f.T)["totalItems"].(json.Number)
	return n.String()
}

func TestOutboxShowsWhatTheAskerMaySee(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	toFollowers, outbox := f.local.Followers(f.alice), string(f.local.Outbox(f.alice))
	public, _ := f.post(f.alice, "public", start, vocab.Public, toFollowers)
	unlisted, _ := f.post(f.alice, "unlisted", start.Add(time.Minute), toFollowers, vocab.Public)
	private, _ := f.post(f.alice, "followers", start.Add(2*time.Minute), toFollowers)
	direct, _ := f.post(f.alice, "direct", start.Add(3*time.Minute), f.carol.ID)
	_, object := f.post(f.alice, "deleted", start.Add(4*time.Minute), vocab.Public)
	f.bury(f.alice, object)
	f.post(f.bob, "bob's", start, vocab.Public)
	_, neighbourKey := f.remote("https://peer.example/users/neighbour")
	pending, pendingKey := f.remote("https://peer.example/users/pending")
	enemy, enemyKey := f.remote("https://peer.example/users/enemy")
	f.relate(f.alice, user.Follower, user.Accepted, f.carol.ID, start)
	f.relate(f.alice, user.Follower, user.Accepted, f.local.ID(f.bob), start)
	f.relate(f.alice, user.Follower, user.Pending, pending.ID, start)
	f.relate(f.alice, user.Follower, user.Accepted, enemy.ID, start)
	f.block(f.alice, enemy.ID)

	anybody, followers := []vocab.ID{unlisted, public}, []vocab.ID{private, unlisted, public}
	for _, c := range []struct {
		name string
		want []vocab.ID
		how  []asking
	}{
		{"CO-02 anybody", anybody, nil},
		{"PRV-02 a follower who signs", followers, []asking{f.signed(f.carolKey, signature.RFC9421)}},
		{"PRV-02 the other way, without the query", followers, []asking{f.signedWithoutQuery(f.carolKey)}},
		{"a follower of this server", followers, []asking{bearerToken(f.token(f.bob, "read"))}},
		{"PRV-03 a follower's neighbour", anybody, []asking{f.signed(neighbourKey, signature.RFC9421)}},
		{"PRV-14 who waits to be let follow", anybody, []asking{f.signed(pendingKey, signature.RFC9421)}},
		{"a forged signature", anybody, []asking{f.signed(f.carolKey, signature.RFC9421), header("Signature", "sig1=:AAAA:")}},
		{"a signature by a key that cannot be fetched", anybody, []asking{f.signed(signature.Key{ID: "https://new.example/actor#main-key", Private: remoteKey()}, signature.RFC9421)}},
	} {
		if diff := cmp.Diff(c.want, f.walk(outbox, nil, c.how...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if got := f.total(outbox, c.how...); got != fmt.Sprint(len(c.want)) {
			t.Errorf("%s: totalItems %s, want %d", c.name, got, len(c.want))
		}
		if shared := strings.HasPrefix(f.get(outbox, c.how...).Header.Get("Cache-Control"), "public"); shared && len(c.want) != len(anybody) {
			t.Errorf("PRV-11: %s: a cache may show it to others", c.name)
		}
	}
	for _, path := range []string{outbox, outbox + "?page=true"} {
		f.get(path, f.signed(enemyKey, signature.RFC9421)).want(t, 403) // PRV-02: a blocked actor sees no outbox
	}
	owner := bearerToken(f.token(f.alice, "read"))
	if diff := cmp.Diff([]vocab.ID{direct, private, unlisted, public}, f.walk(outbox, nil, owner)); diff != "" {
		t.Errorf("the owner (-want +got):\n%s", diff)
	}
	r := f.get(outbox+"?page=true", owner)
	if r.Header.Get("Cache-Control") != "private, no-store" || r.Header.Get("ETag") != "" || !strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Authorization") {
		t.Errorf("PRV-11: what only the owner may see has %v", r.Header)
	}
	if strings.Contains(string(r.body), "hidden.example") {
		t.Error("OB-09: the outbox shows hidden recipients")
	}
	f.get(outbox, f.signed(f.blockedKey(), signature.RFC9421)).want(t, 403)
	f.get(outbox, bearerToken("lw_alice_"+strings.Repeat("x", 43))).want(t, 401)
	f.get("/users/nobody/outbox").want(t, 404)
}

func TestOutboxShowsObjectsAsTheyAreNow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	activity, object := f.post(f.alice, "regretted", start, vocab.Public)
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Replace(ctx, object, vocab.Doc{"id": string(object), "type": "Note", "content": "<p>better</p>", "to": []any{string(vocab.Public)}}.JSON(), nil, start.Add(time.Hour))
		return err
	})
	for _, path := range []string{string(f.local.Outbox(f.alice)) + "?page=true", string(activity), string(object)} {
		if body := string(f.get(path).want(t, 200).body); strings.Contains(body, "regretted") || !strings.Contains(body, "better") {
			t.Errorf("%s shows %s, want what the author made of it", path, body)
		}
	}
}

func TestCollectionIsReadWithoutHoleOrRepeatWhileItGrows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []vocab.ID
	for i := range 5 {
		a, _ := f.post(f.alice, "old", start.Add(time.Duration(i/2)*time.Second), vocab.Public)
		want = append([]vocab.ID{a}, want...)
	}
	got := f.walk(string(f.local.Outbox(f.alice)), func() { f.post(f.alice, "new", start.Add(time.Hour), vocab.Public) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CO-01 (-want +got):\n%s", diff)
	}
}

func TestFollowersAndFollowingAreShownAsTheUserWants(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	owner := bearerToken(f.token(f.alice, "read"))
	var want []vocab.ID
	for i := range 3 {
		id := vocab.ID(fmt.Sprintf("https://peer.example/users/%d", i))
		f.relate(f.alice, user.Follower, user.Accepted, id, start.Add(time.Duration(i)*time.Second))
		f.relate(f.alice, user.Following, user.Accepted, id, start.Add(time.Duration(i)*time.Second))
		want = append([]vocab.ID{id}, want...)
	}
	f.relate(f.alice, user.Follower, user.Pending, "https://peer.example/users/pending", start)
	f.relate(f.alice, user.Following, user.Rejected, "https://peer.example/users/rejected", start)
	for _, name := range []vocab.ID{f.local.Followers(f.alice), f.local.Following(f.alice)} {
		id := string(name)
		if diff := cmp.Diff(want, f.walk(id, nil)); diff != "" {
			t.Errorf("CO-05: %s (-want +got):\n%s", id, diff)
		}
		if got := f.total(id); got != "3" {
			t.Errorf("CO-09: totalItems of %s is %s, want 3", id, got)
		}
	}
	page := f.get(string(f.local.Followers(f.alice)) + "?page=true").doc(t).Text("next")
	p := registry.DefaultUser()
	p.Collections = registry.Collections{Followers: registry.Owner, Following: registry.Owner}
	if err := f.registry.UpdateUser(f.alice, func(now *registry.User) error { *now = p; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []vocab.ID{f.local.Followers(f.alice), f.local.Following(f.alice)} {
		id := string(name)
		d := f.get(id).want(t, 200).doc(t)
		if diff := cmp.Diff(vocab.Doc{"@context": vocab.ContextAS, "id": id, "type": "OrderedCollection"}, d); diff != "" {
			t.Errorf("PRV-04: hidden %s (-want +got):\n%s", id, diff)
		}
		f.get(id+"?page=true").want(t, 404)
		f.get(id+"?page=true", bearerToken(f.token(f.bob, "read"))).want(t, 404)
		if diff := cmp.Diff(want, f.walk(id, nil, owner)); diff != "" {
			t.Errorf("the owner's %s (-want +got):\n%s", id, diff)
		}
	}
	f.get(page).want(t, 404)
	f.get(page, owner).want(t, 200)
}

func TestCollectionsTakeOnlyCursorsOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 3 {
		f.post(f.alice, "x", start.Add(time.Duration(i)*time.Second), vocab.Public)
		f.post(f.bob, "x", start.Add(time.Duration(i)*time.Second), vocab.Public)
	}
	next := f.get("/users/alice/outbox?page=true").doc(t).Text("next")
	_, cursor, _ := strings.Cut(next, "?cursor=")
	for _, path := range []string{"/users/bob/outbox?cursor=" + cursor, "/users/alice/followers?cursor=" + cursor, "/users/alice/outbox?cursor=0",
		"/users/alice/outbox?cursor=" + cursor + "A", "/users/alice/outbox?cursor=%00", "/users/alice/outbox?cursor=" + cursor[:len(cursor)-1]} {
		if r := f.get(path); r.StatusCode != 400 {
			t.Errorf("CO-10, TEN-08: %s: %d, want 400", path, r.StatusCode)
		}
	}
	f.get(next).want(t, 200)
	items, _ := f.get("/users/alice/outbox?page=true&limit=100000").want(t, 200).doc(t)["orderedItems"].([]any)
	if len(items) != f.deps.PageSize {
		t.Errorf("CO-07: %d items, want %d whatever is asked for", len(items), f.deps.PageSize)
	}
	f.get("/users/alice/outbox?page=true", f.signed(f.carolKey, signature.RFC9421)).want(t, 200) // CO-11: the signature covers the query
}

func TestInboxIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []vocab.ID
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		for i := range 3 {
			id := vocab.ID(fmt.Sprintf("https://peer.example/activities/%d", i))
			raw := vocab.Doc{"@context": []any{vocab.ContextAS, "https://peer.example/context"}, "id": string(id), "type": "Like", "actor": string(f.carol.ID), "bto": []any{"https://hidden.example/"}}
			if err := tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: id, Direction: user.Inbound, Type: "Like", Actor: f.carol.ID,
				Published: start.Add(time.Duration(i) * time.Second), Raw: raw.JSON()}); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range 3 {
		want = append([]vocab.ID{vocab.ID(fmt.Sprintf("https://peer.example/activities/%d", i))}, want...)
	}
	if diff := cmp.Diff(want, f.walk(origin+"/users/alice/inbox", nil, bearerToken(f.token(f.alice, "read")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := f.get("/users/alice/inbox?page=true", bearerToken(f.token(f.alice, "read"))).want(t, 200)
	if strings.Contains(string(r.body), "hidden.example") || !strings.Contains(string(r.body), "https://peer.example/context") {
		t.Errorf("OB-09: %s, want activities with their own context and without hidden recipients", r.body)
	}
	for name, c := range map[string]struct {
		path   string
		how    []asking
		status int
	}{
		"CO-03 anybody":         {"/users/alice/inbox", nil, 401},
		"CO-03 of nobody":       {"/users/nobody/inbox", nil, 401},
		"CO-03 somebody signed": {"/users/alice/inbox", []asking{f.signed(f.carolKey, signature.RFC9421)}, 401},
		"another user":          {"/users/alice/inbox", []asking{bearerToken(f.token(f.bob, "read"))}, 403},
		"for writing only":      {"/users/alice/inbox", []asking{bearerToken(f.token(f.alice, "write"))}, 403},
		"an LLM engine":         {"/users/alice/inbox?page=true", []asking{bearerToken(f.token(f.alice, "llm"))}, 403},
		"an LLM engine, sent":   {"/users/alice/outbox?page=true", []asking{bearerToken(f.token(f.alice, "llm"))}, 403},
		"AC-07 the shared one":  {"/inbox", []asking{bearerToken(f.token(f.alice, "read"))}, 405},
	} {
		r := f.get(c.path, c.how...)
		if r.StatusCode != c.status || c.status == 401 && !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: %d %v, want %d", name, r.StatusCode, r.Header, c.status)
		}
	}
}
