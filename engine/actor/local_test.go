package actor

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// here returns a Local with keys of alice, and the user profiles that it reads.
func here(t testing.TB, origin string) (*Local, *people) {
	t.Helper()
	k := NewKeyring(t.TempDir(), t.TempDir(), origin)
	writeKeys(t, k.instanceDir, 0)
	writeKeys(t, k.Dir(username(t, "alice")), 1)
	p := &people{of: map[vocab.Username]registry.User{}}
	return NewLocal(origin, k, p, "Lightweb 0.1"), p
}

func TestActorDocument(t *testing.T) {
	t.Parallel()
	l, people := here(t, "https://us.example")
	alice := username(t, "alice")
	user := registry.DefaultUser()
	user.Profile = registry.Profile{Name: "Alice <3", Summary: "Bees & more\n\n<script>", Icon: "https://us.example/a.png",
		Fields: []registry.Field{{Name: "Home", Value: "https://alice.example/?a=1&b"}, {Name: "Mood", Value: `"<b>"`}}}
	user.FollowPolicy, user.Discoverable, user.Indexable = registry.ApprovalRequired, true, true
	people.set(alice, user)
	a, err := l.Actor(alice)
	if err != nil {
		t.Fatal(err)
	}
	d, err := vocab.ParseDoc(a.Raw)
	if err != nil {
		t.Fatal(err)
	}
	id := "https://us.example/users/alice"
	for name, want := range map[string]any{ // rows AC-01, AC-02, AC-03 and AC-06 of docs/conformance.md
		"id": id, "type": "Person", "preferredUsername": "alice", "name": "Alice <3", "url": nil,
		"summary": "<p>Bees &amp; more</p><p>&lt;script&gt;</p>",
		"inbox":   id + "/inbox", "outbox": id + "/outbox", "followers": id + "/followers", "following": id + "/following",
		"manuallyApprovesFollowers": true, "discoverable": true, "indexable": true, "webfinger": "alice@us.example",
	} {
		if d[name] != want {
			t.Errorf("%s is %v, want %v", name, d[name], want)
		}
	}
	if d.Time("published").IsZero() {
		t.Errorf("published is %v", d["published"])
	}
	if a.SharedInbox != "https://us.example/inbox" || a.Inbox != l.Inbox(alice) || a.Outbox != l.Outbox(alice) || a.Followers != l.Followers(alice) || a.Following != l.Following(alice) {
		t.Errorf("read back: %+v", a)
	}
	if !a.TakesEd25519() || d.Sub("generator").Text("id") != "https://us.example/actor" || d.Sub("generator").Text("name") != "Lightweb 0.1" {
		t.Errorf("MS-11: generator %v", d["generator"])
	}
	if d.Sub("icon").Text("url") != "https://us.example/a.png" || d["image"] != nil {
		t.Errorf("icon %v, image %v", d["icon"], d["image"])
	}
	fields := d.Subs("attachment")
	if len(fields) != 2 || fields[0].Text("value") != `<a href="https://alice.example/?a=1&amp;b" rel="me nofollow noopener noreferrer">https://alice.example/?a=1&amp;b</a>` ||
		fields[1].Text("value") != "&#34;&lt;b&gt;&#34;" {
		t.Errorf("attachment %v", fields)
	}
	ours, err := l.keys.Keys(alice)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		id     string
		public any
	}{{id + "#main-key", ours.RSA.Private.Public()}, {id + "#ed25519-key", ours.Ed25519.Private.Public()}} { // rows AC-04 and FE-05 of docs/conformance.md
		if got, err := ListedKey(a, vocab.ID(k.id)); err != nil || !sameKey(got, k.public) {
			t.Errorf("key %s: %v, %v", k.id, got, err)
		}
	}
	if bytes.Contains(a.Raw, []byte("PRIVATE")) {
		t.Error("the document holds a private key")
	}
	context, err := json.Marshal(d["@context"])
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"https://www.w3.org/ns/activitystreams", "https://w3id.org/security/v1", "https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"} {
		if !bytes.Contains(context, []byte(url)) {
			t.Errorf("no %s in @context", url)
		}
	}
	if doc, err := l.Document(alice); err != nil || !bytes.Equal(doc.JSON(), a.Raw) {
		t.Errorf("Document and Actor differ, or %v", err)
	}
}

func TestActorDocumentFollowsTheProfile(t *testing.T) {
	t.Parallel()
	l, people := here(t, "https://us.example")
	alice := username(t, "alice")
	first, err := l.Actor(alice)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Actor(alice); err != nil || again != first {
		t.Errorf("an actor that did not change was made anew, or %v", err)
	}
	if bytes.Contains(first.Raw, []byte(`"attachment"`)) {
		t.Error("a profile without fields has an empty list of them")
	}
	user := registry.DefaultUser()
	user.Profile.Fields = []registry.Field{{Name: "a", Value: "b"}}
	people.set(alice, user)
	changed, err := l.Actor(alice)
	if err != nil || bytes.Equal(changed.Raw, first.Raw) {
		t.Errorf("a new field is not in the document, or %v", err)
	}
	if _, err := l.Actor(username(t, "nobody")); fault.KindOf(err) != fault.NoUser {
		t.Errorf("Actor of nobody = %v", err)
	}
	if _, err := l.InstanceDocument(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Document(vocab.Username{}); fault.KindOf(err) != fault.NoUser {
		t.Errorf("Document of no user = %v, want no user: that is not the way to the instance", err)
	}
}

func TestInstanceActor(t *testing.T) {
	t.Parallel()
	l, _ := here(t, "https://us.example")
	d, err := l.InstanceDocument()
	if err != nil {
		t.Fatal(err)
	}
	a, err := vocab.ParseActor(d.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if a.ID != "https://us.example/actor" || a.Type != "Application" || a.PreferredUsername != "instance" || a.Inbox != "https://us.example/inbox" || a.Outbox != "" || a.Followers != "" { // row AC-05 of docs/conformance.md
		t.Errorf("instance actor %+v", a)
	}
	ours, err := l.keys.Instance()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ListedKey(a, "https://us.example/actor#main-key"); err != nil || !sameKey(got, ours.RSA.Private.Public()) {
		t.Errorf("Key = %v, %v", got, err)
	}
	if !a.TakesEd25519() {
		t.Error("the instance actor does not say what it takes")
	}
}

func TestWebFingerAnswers(t *testing.T) {
	t.Parallel()
	l, _ := here(t, "https://us.example")
	for _, tt := range []struct {
		name, resource, subject string
		want                    fault.Kind
	}{
		{"acct", "acct:alice@us.example", "alice", 0},
		{"WF-11 percent-encoded", "acct%3Aalice%40us.example", "alice", 0},
		{"WF-11 capitals", "ACCT:Alice@US.Example", "alice", 0},
		{"WF-11 without acct", "alice@us.example", "alice", 0},
		{"with an @ before it", "@alice@us.example", "alice", 0},
		{"acct with an @ before the name", "acct:@alice@us.example", "alice", 0},
		{"the usual port", "acct:alice@us.example:443", "alice", 0},
		{"WF-08 actor URL", "https://us.example/users/alice", "alice", 0},
		{"a user that is not there", "acct:bob@us.example", "bob", 0},
		{"the instance", "acct:instance@us.example", "", 0},
		{"the instance as Mastodon asks", "acct:us.example@us.example", "", 0},
		{"the instance actor's URL", "https://us.example/actor", "", 0},
		{"FE-04 the origin", "https://us.example/", "", 0},
		{"FE-04 the origin without path", "https://us.example", "", 0},
		{"WF-02 absent", "", "", fault.Invalid},
		{"WF-02 a space", "a b", "", fault.Invalid},
		{"WF-02 no URI", "alice", "", fault.Invalid},
		{"WF-02 bad escape", "acct:alice%4", "", fault.Invalid},
		{"WF-02 no host", "acct:alice", "", fault.Invalid},
		{"WF-02 an empty host", "acct:alice@", "", fault.Invalid},
		{"WF-03 another host", "acct:alice@them.example", "", fault.NotFound},
		{"WF-03 a reserved name", "acct:admin@us.example", "", fault.NotFound},
		{"WF-08 another scheme", "mailto:alice@us.example", "", fault.NotFound},
		{"another URL", "https://us.example/users/alice/inbox", "", fault.NotFound},
		{"a URL elsewhere", "https://them.example/users/alice", "", fault.NotFound},
		{"NAM-01 traversal", "acct:../../etc@us.example", "", fault.Invalid},
		{"NAM-01 NUL", "acct:alice%00@us.example", "", fault.Invalid},
		{"NAM-01 two hosts", "acct:alice@us.example@them.example", "", fault.Invalid},
		{"NAM-01 no name", "acct:@us.example", "", fault.Invalid},
		{"NAM-01 64 kB", "acct:" + strings.Repeat("a", 64<<10) + "@us.example", "", fault.Invalid},
		{"NAM-03 Cyrillic", "acct:аlice@us.example", "", fault.NotFound},
		{"NAM-03 a long name", "acct:" + strings.Repeat("a", 31) + "@us.example", "", fault.NotFound},
		{"NAM-03 a star", "acct:*@us.example", "", fault.Invalid},
		{"NAM-05 dot at the end", "acct:alice@us.example.", "", fault.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, d, err := l.WebFinger(tt.resource)
			checkKind(t, "WebFinger", err, tt.want)
			if tt.want != 0 {
				if d != nil {
					t.Errorf("a refusal with a document: %v", d)
				}
				return
			}
			id, name := "https://us.example/users/"+tt.subject, tt.subject
			if tt.subject == "" {
				id, name = "https://us.example/actor", "instance"
			}
			if u.String() != tt.subject || d.Text("subject") != "acct:"+name+"@us.example" {
				t.Errorf("WebFinger = %q, %v", u, d)
			}
			types := map[string]bool{}
			for _, raw := range d["links"].([]any) {
				link := raw.(vocab.Doc)
				if link.Text("href") != id {
					t.Errorf("link %v", link)
				}
				types[link.Text("rel")+" "+link.Text("type")] = true
			}
			if !types["self application/activity+json"] || !types[`self application/ld+json; profile="https://www.w3.org/ns/activitystreams"`] {
				t.Errorf("WF-10: self links of types %v", types)
			}
			if service := types["https://www.w3.org/ns/activitystreams#Service application/activity+json"]; service != (tt.subject == "") {
				t.Errorf("FE-04: links %v", types)
			}
		})
	}
}

// Once a server offers pages for people, the actor document and WebFinger contain links to them.
func TestPagesAreNamedWhereTheyAre(t *testing.T) {
	t.Parallel()
	l, _ := here(t, "https://us.example")
	const page = "https://us.example/@alice"
	alice := username(t, "alice")
	keys, err := l.keys.loadSet(alice)
	if err != nil {
		t.Fatal(err)
	}
	named := func() (url, link string, byPage bool) {
		d := l.personDoc(alice, registry.DefaultUser(), keys)
		_, jrd, err := l.WebFinger("acct:alice@us.example")
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range jrd["links"].([]any) {
			if of := raw.(vocab.Doc); of.Text("rel") == "http://webfinger.net/rel/profile-page" && of.Text("type") == "text/html" {
				link = of.Text("href")
			}
		}
		u, _, err := l.WebFinger(page)
		return d.Text("url"), link, err == nil && u == alice
	}
	if url, link, byPage := named(); url != "" || link != "" || byPage {
		t.Errorf("without pages: url %q, link %q, found by the page: %t", url, link, byPage)
	}
	l.OfferPages()
	if url, link, byPage := named(); url != page || link != page || !byPage {
		t.Errorf("with pages: url %q, link %q, found by the page: %t", url, link, byPage)
	}
	if got := l.PostPage("https://us.example/users/alice/objects/0197"); got != page+"/0197" {
		t.Errorf("the page of a post is %s", got)
	}
	if got := l.TagPage(alice, "Bees"); got != page+"/tags/bees" {
		t.Errorf("the page of a tag is %s", got)
	}
}

// Castopod fails at an actor without a name, and Pixelfed calls it "user". The username stands in.
// It is no part of the digest, so that a new version announces no profile anew.
func TestEveryActorHasAName(t *testing.T) {
	t.Parallel()
	l, p := here(t, "https://us.example")
	alice := username(t, "alice")
	for _, tt := range []struct{ profile, want string }{{"", "alice"}, {"Alice A.", "Alice A."}} {
		c := registry.DefaultUser()
		c.Profile.Name = tt.profile
		p.of[alice] = c
		if got := mustDocument(t, l, alice).Text("name"); got != tt.want {
			t.Errorf("with the name %q in the profile the actor is called %q, want %q", tt.profile, got, tt.want)
		}
		if tt.profile == "" && l.profileDoc(alice, c)["name"] != nil {
			t.Error("the username is in the digest of the profile")
		}
	}
}

// The digest decides whether other servers are notified of a change of the user's file. It changes
// if and only if the change alters the actor document.
func TestTheDigestOfAProfileChangesWithTheDocument(t *testing.T) {
	t.Parallel()
	l, p := here(t, "https://us.example")
	alice := username(t, "alice")
	values := map[string]func(*registry.User){
		"profile.name":     func(c *registry.User) { c.Profile.Name = "Alice" },
		"profile.summary":  func(c *registry.User) { c.Profile.Summary = "hello" },
		"profile.icon":     func(c *registry.User) { c.Profile.Icon = "https://us.example/a.png" },
		"profile.image":    func(c *registry.User) { c.Profile.Image = "https://us.example/a.png" },
		"profile.fields":   func(c *registry.User) { c.Profile.Fields = []registry.Field{{Name: "a"}} },
		"profile.moved_to": func(c *registry.User) { c.Profile.MovedTo = "https://p.example/alice" },
		"profile.aliases":  func(c *registry.User) { c.Profile.Aliases = []vocab.ID{"https://p.example/alice"} },
		"profile.mentions": func(c *registry.User) {
			c.Profile.Summary, c.Profile.Mentions = "with @bob@p.example", []registry.Mention{{Handle: "@bob@p.example", URL: "https://p.example/@bob"}}
		},
		"follow_policy":                 func(c *registry.User) { c.FollowPolicy = registry.ApprovalRequired },
		"quotes":                        func(c *registry.User) { c.Quotes = registry.NobodyQuotes },
		"collections.followers":         func(c *registry.User) { c.Collections.Followers = registry.Owner },
		"collections.following":         func(c *registry.User) { c.Collections.Following = registry.Owner },
		"messaging.strangers":           func(c *registry.User) { c.Messaging.Strangers = registry.DropStrangers },
		"permissions.insecure_dm":       func(c *registry.User) { c.Permissions.InsecureDM = registry.Rule{Any: []string{"follower"}} },
		"permissions.see_presence":      func(c *registry.User) { c.Permissions.SeePresence = registry.Rule{} },
		"permissions.see_read_receipts": func(c *registry.User) { c.Permissions.SeeReadReceipts = registry.Rule{} },
		"permissions.encrypted_chat":    func(c *registry.User) { c.Permissions.EncryptedChat = registry.Rule{} },
		"moderation.muted_actors":       func(c *registry.User) { c.Moderation.MutedActors = []vocab.ID{"https://p.example/bob"} },
		"moderation.muted_domains":      func(c *registry.User) { c.Moderation.MutedDomains = []string{"p.example"} },
		"moderation.muted_keywords":     func(c *registry.User) { c.Moderation.MutedKeywords = []string{"cats"} },
		"discoverable":                  func(c *registry.User) { c.Discoverable = true },
		"indexable":                     func(c *registry.User) { c.Indexable = true },
		"languages":                     func(c *registry.User) { c.Languages = []string{"de"} },
	}
	show := func() (document, digest []byte) {
		t.Helper()
		d, err := l.Document(alice)
		if err != nil {
			t.Fatal(err)
		}
		return d.JSON(), l.ProfileDigest(alice)
	}
	p.of[alice] = registry.DefaultUser()
	document, digest := show()
	for _, m := range registry.Members() {
		change := values[m.Key]
		if change == nil {
			t.Errorf("say here what a change of %s does", m.Key)
			continue
		}
		c := registry.DefaultUser()
		change(&c)
		p.of[alice] = c
		newDocument, newDigest := show()
		if bytes.Equal(document, newDocument) != bytes.Equal(digest, newDigest) {
			t.Errorf("%s: the digest does not say whether the document changed", m.Key)
		}
	}
}
