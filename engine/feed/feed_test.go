package feed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(dbtest.Tidy{M: m}) }

type local struct{}

func (local) ID(u vocab.Username) vocab.ID {
	return vocab.ID("https://example.org/users/" + u.String())
}

func (l local) Owner(id vocab.ID) (vocab.Username, bool) {
	u, err := vocab.ParseUsername(strings.TrimPrefix(string(id), "https://example.org/users/"))
	return u, err == nil && l.ID(u) == id
}

func (l local) Document(u vocab.Username) (vocab.Doc, error) {
	id := string(l.ID(u))
	return vocab.Doc{"id": id, "preferredUsername": u.String(), "name": "The user", "followers": id + "/followers", "icon": id + ".png"}, nil
}

// profiles has the languages of all users, and the configuration file of a user who mutes.
type profiles struct {
	languages []string
	files     *registry.Registry // nil if no user mutes
}

func (p *profiles) User(u vocab.Username) registry.User {
	c := registry.User{Languages: p.languages}
	if p.files != nil {
		c.Moderation = p.files.User(u).Moderation
	}
	return c
}

// gate refuses the actors that it maps to true.
type gate map[vocab.ID]bool

func (g gate) CheckActor(id vocab.ID) error {
	if g[id] {
		return fault.New(fault.Forbidden, "no")
	}
	return nil
}

var start = time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)

// fixture is a user with a feed.
type fixture struct {
	*testing.T
	store *db.Cluster
	alice vocab.Username
	gate  gate
	reads *profiles

	cached *feed.Cached
	server *server // the Redis server
	*feed.Reader
}

// newFixture returns a fixture. It reads each page from the database and through the cache, and
// compares the two.
func newFixture(t *testing.T) *fixture {
	c, g, reads := dbtest.New(t), gate{}, &profiles{}
	database := feed.NewDatabase(c, local{}, reads, func(kind string) bool { return kind == "Like" })
	cached, s := newCached(t, c, database)
	return &fixture{t, c, dbtest.User(t, c, "alice"), g, reads, cached, s, feed.New(alike{database, cached, t}, g, reads, local{})}
}

// receive stores an activity by bob. The activity arrives at a time. If it is a Create, receive
// adds it to the feed.
func (f *fixture) receive(name, kind string, object vocab.ID, to string, at time.Time) user.Activity {
	f.Helper()
	a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID("https://peer.example/" + name), Direction: user.Inbound, Type: kind,
		Actor: "https://peer.example/users/bob", Object: object, Published: at}
	a.Raw = vocab.Doc{"id": string(a.URI), "type": kind, "actor": string(a.Actor), "object": string(object), "to": []any{to}}.JSON()
	f.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Activities.Add(ctx, a); err != nil || kind != "Create" {
			return err
		}
		return tx.Feed.Add(ctx, user.FeedEntry{ID: a.ID, Activity: a.URI, Actor: a.Actor, Published: at})
	})
	return a
}

func (f *fixture) object(id vocab.ID, raw string) {
	f.Helper()
	f.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Published: start, Raw: json.RawMessage(raw)})
		return err
	})
}

func (f *fixture) write(work func(context.Context, *user.Tx) error) {
	f.Helper()
	if err := f.store.Write(f.Context(), f.alice, work); err != nil {
		f.Fatal(err)
	}
}

func TestFeedIsReadPageByPageWithoutHoleOrRepeatWhileItGrows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []vocab.ID
	for i := range 7 { // pairs of them have the same time, so their ids order them
		a := f.receive(fmt.Sprint("old", i), "Create", "", "x", start.Add(time.Duration(i/2)*time.Second))
		want = append([]vocab.ID{a.URI}, want...)
	}
	var got []vocab.ID
	cursor := ""
	for n := 0; ; n++ {
		p, err := f.Page(t.Context(), f.alice, feed.Main, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Items) == 0 {
			t.Fatal("an empty page came last")
		}
		for _, i := range p.Items {
			got = append(got, i.ActivityURI)
		}
		f.receive(fmt.Sprint("new", n), "Create", "", "x", start.Add(time.Hour))
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("pages (-want +got):\n", d)
	}
}

func TestFeedEndsWithAFullPageAndNoNext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 4 {
		f.receive(fmt.Sprint(i), "Create", "", "x", start.Add(time.Duration(i)*time.Second))
	}
	first, err := f.Page(t.Context(), f.alice, feed.Main, "", 2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Page(t.Context(), f.alice, feed.Main, first.Next, 2)
	if err != nil || len(second.Items) != 2 || second.Next != "" {
		t.Errorf("the last page has %d items and next %q, %v, want 2 and none", len(second.Items), second.Next, err)
	}
}

// A page with long posts ends early, so that it does not get too large to read.
func TestAPageHoldsSoManyBytes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want, got []vocab.ID
	for i := range 9 {
		id := vocab.ID(fmt.Sprint("https://peer.example/notes/", i))
		f.object(id, `{"type":"Note","content":"`+strings.Repeat("x", 900<<10)+`"}`)
		want = append([]vocab.ID{f.receive(fmt.Sprint("large", i), "Create", id, string(local{}.ID(f.alice)), start.Add(time.Duration(i)*time.Second)).URI}, want...)
	}
	for _, name := range []string{feed.Main, feed.Notifications} {
		got = nil
		for cursor, last := "", false; !last; {
			p, err := f.Page(t.Context(), f.alice, name, cursor, feed.MaxLimit)
			if err != nil || len(p.Items) == 0 || len(p.Items) > 4 {
				t.Fatalf("%d items, %v; want no more than 4 MiB", len(p.Items), err)
			}
			for _, item := range p.Items {
				got = append(got, item.ActivityURI)
			}
			cursor, last = p.Next, p.Next == ""
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestItemIsShownInTheFormThatClientsKnow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const id = "https://peer.example/notes/1"
	f.object(id, `{"id":"`+id+`","type":"Note","content":"<p>a &amp; b</p><script>x()</script>"}`)
	a := f.receive("create", "Create", id, "x", start)
	item, err := f.Item(t.Context(), f.alice, a.ID, true)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"` + a.ID.String() + `","activityUri":"https://peer.example/create","type":"Create","actorUri":"https://peer.example/users/bob",` +
		`"published":"2026-02-21T12:00:00Z","visibility":"direct","authorUri":"https://peer.example/users/bob",` +
		`"activity":{"actor":"https://peer.example/users/bob","id":"https://peer.example/create","object":"` + id + `","to":["x"],"type":"Create"},` +
		`"object":{"content":"<p>a &amp; b</p>","id":"` + id + `","source":{"content":"a & b","mediaType":"text/plain"},"type":"Note"},` +
		`"actors":{"https://peer.example/users/bob":{"name":"","handle":"","icon":""}}}`
	if d := cmp.Diff(want, string(item.JSON())); d != "" {
		t.Error("item (-want +got):\n", d)
	}
}

// JSON writes pages and entries in the same form as encoding/json does.
func TestJSONIsThatOfTheType(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 21, 12, 0, 0, 120000000, time.UTC)
	items := []feed.Item{
		{ID: uuid.New(), ActivityURI: "https://p.example/1", Type: "Create", ActorURI: "https://p.example/<&>", Published: at, Visibility: "public",
			AuthorURI: "https://p.example/é", Activity: `{"type":"Create"}`, Object: `{"content":"<p>"}`},
		{ID: uuid.New(), ActivityURI: "https://p.example/2", Type: `"`, Activity: `{}`},
	}
	actors := map[vocab.ID]vocab.Card{"https://p.example/b": {Name: "\u2028B", Handle: "@b", Icon: "x"}, "https://p.example/a": {}}
	for _, v := range []interface{ JSON() json.RawMessage }{
		feed.Page{Items: items, Actors: actors, Next: "abc"}, feed.Page{Items: []feed.Item{}, Unread: &user.Unread{}, ReadUpTo: &feed.Mark{ID: items[0].ID, Published: at}, Actors: actors},
		feed.Page{Items: []feed.Item{}, Unread: &user.Unread{Count: 1000, More: true}, Actors: actors}, feed.Page{Items: []feed.Item{}, Actors: map[vocab.ID]vocab.Card{}}, feed.Entry{Item: items[1], Actors: actors},
	} {
		want, err := vocab.Marshal(v)
		if d := cmp.Diff(string(want), string(v.JSON())); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
}

// doc parses a document that readers are shown.
func doc(t *testing.T, raw json.RawMessage) vocab.Doc {
	t.Helper()
	d, err := vocab.ParseDoc(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestObjectsComeWithTheirWordsAsPlainText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i, c := range []struct{ name, object, want string }{
		{"HTML is reduced", `{"content":"<p>one</p><p>two</p>"}`, `{"content":"one\n\ntwo","mediaType":"text/plain"}`},
		{"a language map counts", `{"contentMap":{"en":"<b>hi</b>"}}`, `{"content":"hi","mediaType":"text/plain"}`},
		{"plain text of the author stays", `{"content":"<p>x</p>","source":{"content":"x","mediaType":"text/plain"}}`, `{"content":"x","mediaType":"text/plain"}`},
		{"Markdown gives way", `{"content":"<b>x</b>","source":{"content":"**x**","mediaType":"text/markdown"}}`, `{"content":"x","mediaType":"text/plain"}`},
		{"nonsense gives way", `{"content":"x","source":7}`, `{"content":"x","mediaType":"text/plain"}`},
		{"nothing is nothing", `{"type":"Tombstone"}`, ``},
	} {
		id := vocab.ID(fmt.Sprint("https://peer.example/objects/", i))
		f.object(id, c.object)
		a := f.receive(fmt.Sprint("create", i), "Create", id, "x", start)
		item, err := f.Item(t.Context(), f.alice, a.ID, true)
		if err != nil {
			t.Fatal(err)
		}
		compact := ""
		if source := doc(t, json.RawMessage(item.Object)).Sub("source"); source != nil {
			compact = string(source.JSON())
		}
		if compact != c.want {
			t.Errorf("%s: source = %s, want %s", c.name, compact, c.want)
		}
	}
}

func TestWhatThePolicyRefusesIsNotShownWhileItDoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const note, evil, channel = "https://clean.example/notes/1", vocab.ID("https://evil.example/users/eve"), vocab.ID("https://clean.example/channel")
	f.object(note, `{"id":"`+note+`","type":"Note","attributedTo":["https://clean.example/users/dan","`+string(channel)+`"]}`)
	f.object("https://evil.example/1", `{"id":"https://evil.example/1","type":"Note","attributedTo":"`+string(evil)+`"}`)
	first := f.receive("first", "Create", "", "x", start)
	channels := f.receive("boost", "Create", note, "x", start.Add(time.Second))
	evils := f.receive("boost of evil", "Create", "https://evil.example/1", "x", start.Add(2*time.Second))
	last := f.receive("last", "Create", "", "x", start.Add(3*time.Second))
	shown := func() (all []vocab.ID) {
		t.Helper()
		for cursor, more := "", true; more; more = cursor != "" {
			p, err := f.Page(t.Context(), f.alice, feed.Main, cursor, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range p.Items {
				all = append(all, i.ActivityURI)
			}
			cursor = p.Next
		}
		return all
	}
	for _, c := range []struct {
		name    string
		refused []vocab.ID
		want    []vocab.ID
	}{
		{"nobody", nil, []vocab.ID{last.URI, evils.URI, channels.URI, first.URI}},
		{"ORG-29 whose posts others boost", []vocab.ID{evil, channel}, []vocab.ID{last.URI, first.URI}},
		{"ORG-28 who boosts them", []vocab.ID{first.Actor}, nil},
		{"nobody any more", nil, []vocab.ID{last.URI, evils.URI, channels.URI, first.URI}},
	} {
		clear(f.gate)
		for _, id := range c.refused {
			f.gate[id] = true
		}
		if d := cmp.Diff(c.want, shown()); d != "" {
			t.Errorf("%s is refused (-want +got):\n%s", c.name, d)
		}
		_, err := f.Item(t.Context(), f.alice, evils.ID, true)
		if hidden := fault.KindOf(err) == fault.NotFound; hidden != (c.refused != nil) {
			t.Errorf("%s is refused: the entry by its id: %v", c.name, err)
		}
	}
}

func TestNotificationsTellWhatOthersDoTowardsTheUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	me := string(local{}.ID(f.alice))
	follow := f.receive("follow", "Follow", vocab.ID(me), me, start)
	f.receive("elsewhere", "Like", "https://third.example/1", me, start.Add(time.Second))
	like := f.receive("like", "Like", vocab.ID(me+"/objects/1"), me, start.Add(2*time.Second))
	f.receive("post", "Create", "https://peer.example/1", string(vocab.Public), start.Add(3*time.Second))
	mention := f.receive("mention", "Create", "https://peer.example/2", me, start.Add(4*time.Second))
	page, err := f.Page(t.Context(), f.alice, feed.Notifications, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []vocab.ID
	for _, i := range page.Items {
		got = append(got, i.ActivityURI)
	}
	if d := cmp.Diff([]vocab.ID{mention.URI, like.URI, follow.URI}, got); d != "" {
		t.Error("notifications (-want +got):\n", d)
	}
	item, err := f.Item(t.Context(), f.alice, page.Items[2].ID, true)
	if err != nil || item.ActivityURI != follow.URI || item.Object != "" {
		t.Errorf("Item of a notification = %s with object %s, %v, want %s with none", item.ActivityURI, item.Object, err, follow.URI)
	}
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 2 {
		f.receive(fmt.Sprint(i), "Create", "", "x", start.Add(time.Duration(i)*time.Second))
	}
	page, err := f.Page(t.Context(), f.alice, feed.Main, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, feed, cursor string
		limit              int
		want               fault.Kind
	}{
		{"a feed there is not", "home", "", 1, fault.NotFound},
		{"no feed", "", "", 1, fault.NotFound},
		{"CO-07 a limit that is too high", feed.Main, "", 101, fault.Invalid},
		{"a limit below one", feed.Main, "", -1, fault.Invalid},
		{"another feed's cursor", feed.Notifications, page.Next, 1, fault.Invalid},
	} {
		if _, err := f.Page(t.Context(), f.alice, c.feed, c.cursor, c.limit); fault.KindOf(err) != c.want || err == nil {
			t.Errorf("%s: %v, want kind %d", c.name, err, c.want)
		}
	}
	if _, err := f.Item(t.Context(), f.alice, uuid.New(), true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("Item of an unknown id: %v, want NotFound", err)
	}
	bob := dbtest.User(t, f.store, "bob")
	if _, err := f.Item(t.Context(), bob, page.Items[0].ID, true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("TEN-08: Item of another user's entry: %v, want NotFound", err)
	}
	if _, err := f.Page(t.Context(), bob, feed.Main, page.Next, 1); fault.KindOf(err) != fault.Invalid {
		t.Errorf("TEN-08: Page by another user's cursor: %v, want Invalid", err)
	}
}

// SEE-03, SEE-04: an item shows the text of a post only in the object, and in the latest version
// from the author's server.
func TestAnItemShowsEachTextOnceAndAsItIsNow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const id = "https://peer.example/notes/1"
	f.object(id, `{"id":"`+id+`","type":"Note","attributedTo":"https://peer.example/users/bob","to":"`+string(vocab.Public)+`","content":"new words"}`)
	a := f.create("create", `{"id":"https://peer.example/create","type":"Create","actor":"https://peer.example/users/bob","object":{"id":"`+id+`","type":"Note","content":"old words"}}`, id)
	boost := f.create("boost", `{"id":"https://peer.example/boost","type":"Announce","actor":"https://peer.example/users/bob","object":{"id":"`+id+`","type":"Note","content":"altered words"},"content":"altered words"}`, id)
	page, err := f.Page(t.Context(), f.alice, feed.Main, "", 0)
	if err != nil || len(page.Items) != 2 {
		t.Fatal(page, err)
	}
	for _, i := range page.Items {
		shown, err := vocab.Marshal(i)
		if err != nil || strings.Count(string(shown), "new words") != 2 || strings.Contains(string(shown), "old") || strings.Contains(string(shown), "altered") {
			t.Errorf("%s is shown as %s, %v", i.ActivityURI, shown, err)
		}
		if about := doc(t, json.RawMessage(i.Activity))["object"]; about != id || i.Visibility != "public" || i.AuthorURI != "https://peer.example/users/bob" {
			t.Errorf("%s is %s by %s, about %s", i.ActivityURI, i.Visibility, i.AuthorURI, about)
		}
	}
	if page.Items[0].ActivityURI != boost.URI && page.Items[1].ActivityURI != a.URI {
		t.Error(page.Items)
	}
}

// create stores an activity by bob in the form in which it arrived, and adds it to the feed.
func (f *fixture) create(name, raw string, object vocab.ID) user.Activity {
	f.Helper()
	d, err := vocab.ParseDoc([]byte(raw))
	if err != nil {
		f.Fatal(err)
	}
	a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID("https://peer.example/" + name), Direction: user.Inbound, Type: d.Text("type"),
		Actor: "https://peer.example/users/bob", Object: object, Published: start, Raw: json.RawMessage(raw)}
	f.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Activities.Add(ctx, a); err != nil {
			return err
		}
		return tx.Feed.Add(ctx, user.FeedEntry{ID: a.ID, Activity: a.URI, Actor: a.Actor, Published: a.Published})
	})
	return a
}

func TestWhatWasStoredBeforeIsMadeReadableOnceAndKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const id = vocab.ID("https://peer.example/notes/1")
	f.object(id, `{"id":"`+string(id)+`","type":"Note","content":"<b onclick=x>words</b>"}`)
	a := f.receive("create", "Create", id, "x", start)
	for range 2 {
		item, err := f.Item(t.Context(), f.alice, a.ID, true)
		if err != nil || doc(t, json.RawMessage(item.Object)).Text("content") != "<b>words</b>" {
			t.Fatalf("%v, %v", item.Object, err)
		}
		f.write(func(ctx context.Context, tx *user.Tx) error {
			o, err := tx.Objects.Find(ctx, id)
			if err == nil && string(o.Readable) != `{"text": "words", "content": "<b>words</b>"}` {
				t.Errorf("kept is %s", o.Readable)
			}
			return err
		})
	}
	f.write(func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Objects.Replace(ctx, id, json.RawMessage(`{"id":"`+string(id)+`","type":"Note","content":"other"}`), json.RawMessage(`{"text":"other"}`), start.Add(time.Hour)); err != nil {
			return err
		}
		return tx.Objects.SetReadable(ctx, map[vocab.ID]json.RawMessage{id: json.RawMessage(`{"text":"words"}`)}) // by a reader that read the version before
	})
	if item, err := f.Item(t.Context(), f.alice, a.ID, true); err != nil || doc(t, json.RawMessage(item.Object)).Sub("source").Text("content") != "other" {
		t.Errorf("%v, %v", item.Object, err)
	}
}

func TestAPageBringsItsActorsOnceAndPostsInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const bob, note = vocab.ID("https://peer.example/users/bob"), vocab.ID("https://peer.example/notes/1")
	me := local{}.ID(f.alice)
	actor, err := vocab.ParseActor([]byte(`{"id":"` + string(bob) + `","type":"Person","inbox":"` + string(bob) + `/inbox","preferredUsername":"bob","name":"Bob <b>B</b>",
		"followers":"` + string(bob) + `/followers","icon":{"type":"Image","url":"https://peer.example/bob.png"},"summary":"<script>x</script>"}`))
	if err != nil {
		t.Fatal(err)
	}
	f.write(func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, actor, start) })
	f.object(note, `{"id":"`+string(note)+`","type":"Note","attributedTo":"`+string(bob)+`","to":"`+string(bob)+`/followers","contentMap":{"de":"Wort","en":"word"}}`)
	f.object(me+"/objects/1", `{"id":"`+string(me)+`/objects/1","type":"Note","attributedTo":"`+string(me)+`","cc":"`+string(vocab.Public)+`","content":"mine"}`)
	f.receive("create", "Create", note, "x", start)
	f.create("boost", `{"id":"https://peer.example/boost","type":"Announce","actor":"`+string(bob)+`","object":"`+string(me)+`/objects/1"}`, me+"/objects/1")
	f.reads.languages = []string{"fr", "en"}
	page, err := f.Page(t.Context(), f.alice, feed.Main, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[vocab.ID]vocab.Card{
		bob: {Name: "Bob B", Handle: "@bob@peer.example", Icon: "https://peer.example/bob.png", Followers: bob + "/followers"},
		me:  {Name: "The user", Handle: "@alice@example.org", Icon: me + ".png", Followers: me + "/followers"},
	}
	if d := cmp.Diff(want, page.Actors); d != "" {
		t.Error("actors (-want +got):\n", d)
	}
	shown := map[vocab.ID]string{}
	for _, i := range page.Items {
		shown[i.AuthorURI] = i.Visibility + " " + doc(t, json.RawMessage(i.Object)).Text("content")
	}
	if d := cmp.Diff(map[vocab.ID]string{bob: "followers word", me: "unlisted mine"}, shown); d != "" {
		t.Error("items (-want +got):\n", d)
	}
}

// A page of ordinary notes is small, because it has each text once.
func TestAPageOfOrdinaryNotesIsSmall(t *testing.T) {
	t.Parallel()
	reply, err := os.ReadFile("../../testdata/activities/mastodon/create_note.json")
	if err != nil {
		t.Fatal(err)
	}
	const to = `"to":["https://www.w3.org/ns/activitystreams#Public"],"cc":["https://peer.example/users/bob/followers"]`
	const long = `{"@context":"https://www.w3.org/ns/activitystreams","id":"https://peer.example/users/bob/notes/112/activity","type":"Create","actor":"https://peer.example/users/bob",
		"published":"2026-02-21T12:00:00Z",` + to + `,"object":{"id":"https://peer.example/users/bob/notes/112","type":"Note","attributedTo":"https://peer.example/users/bob",
		"published":"2026-02-21T12:00:00Z",` + to + `,"url":"https://peer.example/users/bob/notes/112","sensitive":false,"tag":[],"content":"<p>WORDS</p>"}}`
	for _, tt := range []struct{ name, create string }{
		{"replies of Mastodon", string(reply)},
		{"notes of 370 characters", strings.ReplaceAll(long, "WORDS", strings.Repeat("A note of a length as people write them. ", 9))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for n := range 20 {
				raw := strings.ReplaceAll(tt.create, "112", fmt.Sprint(111_000_000_000_000+n))
				id := vocab.ID(doc(t, json.RawMessage(raw)).Sub("object").Text("id"))
				f.object(id, string(doc(t, json.RawMessage(raw)).Sub("object").JSON()))
				f.create(fmt.Sprint("create", n), raw, id)
			}
			page, err := f.Page(t.Context(), f.alice, feed.Main, "", 20)
			if err != nil || len(page.Items) != 20 {
				t.Fatal(len(page.Items), err)
			}
			body := page.JSON()
			if len(body) > 40_000 {
				t.Errorf("20 notes take %d bytes, want 40,000 at most: %s", len(body), body[:4000])
			}
			t.Log(len(body), "bytes")
		})
	}
}
