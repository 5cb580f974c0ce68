package actor

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestActorsAreFetchedOnceAndBelievedForAWhile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{}), newPeer(t)
	const path = "/users/bob"
	p.show(path, with(p.person(t, "bob", 0), vocab.Doc{"name": "first"}))
	is := func(what, name string, want fault.Kind, asked int) {
		t.Helper()
		a, err := n.Resolve(ctx, p.id(path))
		checkKind(t, what, err, want)
		if err == nil && a.Name != name {
			t.Errorf("%s: actor %q, want %q", what, a.Name, name)
		}
		if got := p.asked(path); got != asked {
			t.Errorf("%s: the peer was asked %d times, want %d", what, got, asked)
		}
	}
	is("the first time", "first", 0, 1)
	is("from memory", "first", 0, 1)
	n = n.restarted(t)
	is("from the store", "first", 0, 1)

	p.show(path, with(p.person(t, "bob", 0), vocab.Doc{"name": "second"}))
	n.clock.pass(testTTL - time.Second)
	is("just before it is too old", "first", 0, 1)
	n.clock.pass(time.Second)
	is("too old", "second", 0, 2)

	n.clock.pass(testTTL)
	p.status(path, http.StatusServiceUnavailable)
	is("while the peer is down, the old copy", "second", 0, 3)
	is("and the peer is left alone", "second", 0, 3)
	n.clock.pass(firstPause)
	is("until a while later", "second", 0, 4)
	n.clock.pass(firstPause)
	is("and then for longer", "second", 0, 4)
	n.clock.pass(firstPause)
	is("but not for good", "second", 0, 5)

	n.clock.pass(lastPause)
	p.status(path, http.StatusGone)
	is("gone", "", fault.Gone, 6)
	is("still gone", "", fault.Gone, 6)
	n = n.restarted(t)
	is("also after a restart", "", fault.Gone, 6)
	n.clock.pass(2 * testTTL)
	is("gone for good", "", fault.Gone, 7)
	n.clock.pass(2 * testTTL)
	p.status(path, http.StatusServiceUnavailable)
	is("also when the peer is down", "", fault.Gone, 8)
	n.clock.pass(lastPause)

	p.show(path, with(p.person(t, "bob", 0), vocab.Doc{"name": "third"}))
	if a, err := n.Refresh(ctx, p.id(path)); err != nil || a.Name != "third" {
		t.Errorf("Refresh of an actor that came back = %v, %v", a, err)
	}
	is("back", "third", 0, 9)
	if err := n.Bury(ctx, p.id(path)); err != nil {
		t.Fatal(err)
	}
	is("it says that it is gone", "", fault.Gone, 9)
	n = n.restarted(t)
	is("also after a restart", "", fault.Gone, 9)
	n.clock.pass(2 * testTTL)
	is("until its server shows it", "third", 0, 10)
}

func TestAnActorNobodyKnewIsGone(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{}), newPeer(t)
	p.status("/users/bob", http.StatusGone)
	for range 3 {
		_, err := n.Resolve(context.Background(), p.id("/users/bob"))
		checkKind(t, "Resolve", err, fault.Gone)
	}
	if got := p.asked("/users/bob"); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
}

func TestFailuresAreRemembered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		want   fault.Kind
		code   string
		asked  int // requests that one Resolve makes
	}{
		{"400", 400, fault.Protocol, PeerRefused, 2},
		{"401", 401, fault.NotFound, PeerRefused, 2},
		{"403", 403, fault.NotFound, PeerRefused, 2},
		{"404", 404, fault.NotFound, "", 1},
		{"429", 429, fault.Unavailable, "", 1},
		{"500", 500, fault.Unavailable, "", 1},
		{"204", 204, fault.Protocol, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
			p.status("/users/bob", tt.status)
			for range 5 {
				_, err := n.Resolve(context.Background(), p.id("/users/bob"))
				checkKind(t, "Resolve", err, tt.want)
				if e := fault.Of(err); e != nil && e.Code != tt.code {
					t.Errorf("Resolve: code %q, want %q", e.Code, tt.code)
				}
			}
			if got := p.asked("/users/bob"); got != tt.asked {
				t.Errorf("asked %d times, want %d", got, tt.asked)
			}
			n.clock.pass(firstPause)
			p.show("/users/bob", p.person(t, "bob", 0))
			if _, err := n.Resolve(context.Background(), p.id("/users/bob")); err != nil {
				t.Errorf("after a while: %v", err)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
		p.Close()
		_, err := n.Resolve(context.Background(), p.id("/users/bob"))
		checkKind(t, "Resolve", err, fault.Unavailable)
	})
}

func TestWhatAPeerShowsMustBeItsOwnActor(t *testing.T) {
	t.Parallel()
	n, p, other := newNode(t, settings{store: forgetful{}}), newPeer(t), newPeer(t)
	bob := p.person(t, "bob", 0)
	serve := func(contentType string, d vocab.Doc) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(d.JSON()) // fails if the client has hung up
		}
	}
	redirect := func(to vocab.ID) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, string(to), http.StatusFound) }
	}
	p.show("/users/bob", bob)
	p.say("/moved", redirect(p.id("/users/bob")))
	p.show("/one", with(bob, vocab.Doc{"id": p.URL + "/two"}))
	p.show("/two", with(bob, vocab.Doc{"id": p.URL + "/three"}))
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want fault.Kind // zero: bob is returned
	}{
		{"a second address of the actor", activity(bob), 0},
		{"an address that leads to the actor", redirect(p.id("/users/bob")), 0},
		{"two redirects", redirect(p.id("/moved")), 0},
		{"ld+json", serve(vocab.MediaType, bob), 0},
		{"an id that leads to another one", activity(with(bob, vocab.Doc{"id": p.URL + "/one"})), fault.Protocol},
		{"ORG-19 text", serve("text/plain", bob), fault.Protocol},
		{"ORG-19 plain JSON", serve("application/json", bob), fault.Protocol},
		{"ORG-19 JSON-LD of another profile", serve("application/ld+json", bob), fault.Protocol},
		{"an id of another server", activity(with(bob, vocab.Doc{"id": other.URL + "/users/bob", "inbox": other.URL + "/inbox"})), fault.Protocol},
		{"our own id", activity(with(bob, vocab.Doc{"id": "https://us.example/users/alice", "inbox": "https://us.example/inbox"})), fault.Protocol},
		{"no id", activity(with(bob, vocab.Doc{"id": nil})), fault.Protocol},
		{"ORG-18 a redirect to another server", redirect(other.id("/users/bob")), fault.Protocol},
		{"AC-10 without inbox", activity(with(bob, vocab.Doc{"inbox": nil})), fault.Protocol},
		{"AC-10 without key", activity(with(bob, vocab.Doc{"publicKey": nil})), fault.Protocol},
		{"NET-12 an inbox elsewhere", activity(with(bob, vocab.Doc{"inbox": other.URL + "/inbox"})), fault.Protocol},
		{"a Note", activity(with(bob, vocab.Doc{"type": "Note"})), fault.Protocol},
		{"no JSON", serve(vocab.ActivityJSON, nil), fault.Protocol},
		{"SIG-28 too large", activity(with(bob, vocab.Doc{"summary": strings.Repeat("x", maxActor)})), fault.Protocol},
		{"SIG-28 a loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, fault.Protocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := "/" + strings.ReplaceAll(tt.name, " ", "-")
			p.say(path, tt.h)
			// The other server would serve the actor. So the test fails if the engine
			// follows a redirect there.
			other.show("/users/bob", with(bob, vocab.Doc{"id": p.URL + path}))
			a, err := n.Resolve(context.Background(), p.id(path))
			checkKind(t, "Resolve", err, tt.want)
			if tt.want == 0 && (err != nil || a.ID != p.id("/users/bob")) {
				t.Errorf("Resolve = %+v", a)
			}
		})
	}
}

// If Sharkey and some other servers cannot read a signature, they answer 200 with an actor that
// lacks members. The engine then requests the actor again in the other dialect.
func TestAStrippedActorBringsASecondKnock(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	bob := p.person(t, "bob", 0)
	p.say("/users/bob", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Signature-Input") != "" {
			activity(with(bob, vocab.Doc{"inbox": nil}))(w, r)
			return
		}
		activity(bob)(w, r)
	})
	if a, err := n.Resolve(context.Background(), p.id("/users/bob")); err != nil || a.Inbox == "" {
		t.Errorf("MS-14: Resolve = %v, %v", a, err)
	}
	n = newNode(t, settings{store: forgetful{}})
	if a, err := n.ByKey(context.Background(), p.id("/users/bob#main-key")); err != nil || a.Inbox == "" {
		t.Errorf("MS-14: ByKey = %v, %v", a, err)
	}
}

func TestFetchesAreSignedByTheInstance(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	var signature string
	p.say("/users/bob", func(w http.ResponseWriter, r *http.Request) {
		signature = r.Header.Get("Signature-Input")
		activity(p.person(t, "bob", 0))(w, r)
	})
	if _, err := n.Resolve(context.Background(), p.id("/users/bob")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(signature, `keyid="https://us.example/actor#main-key"`) { // NET-19: the instance actor signs, not a user
		t.Errorf("signed as %s", signature)
	}
}

func TestRefreshAsksOnceAMinute(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	is := func(what string, asked int) {
		t.Helper()
		if _, err := n.Refresh(ctx, p.id("/users/bob")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := p.asked("/users/bob"); got != asked {
			t.Errorf("%s: asked %d times, want %d", what, got, asked)
		}
	}
	is("unknown", 1)
	is("just fetched", 1)
	n.clock.pass(refreshEvery)
	is("a minute later", 2)
	n.clock.pass(refreshEvery)
	p.status("/users/bob", http.StatusBadGateway)
	is("the peer is down", 3)
	is("the peer is still down", 3)
}

func TestLocalActorsAreNeverFetched(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	n := newNode(t, settings{origin: p.URL, store: forgetful{}})
	ctx := context.Background()
	a, err := n.Resolve(ctx, p.id("/users/alice"))
	if err != nil || a.PreferredUsername != "alice" {
		t.Errorf("Resolve of a local actor = %v, %v", a, err)
	}
	if a, err := n.Resolve(ctx, p.id("/actor")); err != nil || a.Type != "Application" {
		t.Errorf("Resolve of the instance actor = %v, %v", a, err)
	}
	for _, tt := range []struct {
		id   vocab.ID
		want fault.Kind
	}{
		{p.id("/users/nobody"), fault.NoUser},
		{p.id("/users/alice/inbox"), fault.NotFound},
		{p.id("/"), fault.NotFound},
		{vocab.ID(strings.Replace(p.URL, "http:", "https:", 1) + "/users/alice"), fault.NotFound},
	} {
		_, err := n.Resolve(ctx, tt.id)
		checkKind(t, "Resolve "+string(tt.id), err, tt.want)
		_, err = n.Refresh(ctx, tt.id)
		checkKind(t, "Refresh "+string(tt.id), err, tt.want)
		_, _, err = n.Object(ctx, tt.id, nil)
		checkKind(t, "Object "+string(tt.id), err, fault.NotFound)
	}
	for _, key := range []vocab.ID{"/users/alice#other", "/users/nobody#main-key", "/keys/1", "/"} { // SIG-29: no key of this server has these ids
		if _, err := n.ByKey(ctx, p.id(string(key))); err == nil {
			t.Errorf("ByKey(%s) found somebody", key)
		}
	}
	if a, err := n.ByKey(ctx, p.id("/users/alice#main-key")); err != nil || a.PreferredUsername != "alice" {
		t.Errorf("ByKey of a local key = %v, %v", a, err)
	}
	if p.all() != 0 {
		t.Errorf("we asked ourselves %d times", p.all())
	}
}

// The directory of a user's keys may be on a disk that is not mounted yet. So missing keys do not
// mean that the user is gone.
func TestAUserWithoutKeysIsNotGone(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	bob := dbtest.User(t, c, "bob")
	db := dbtest.InstanceSQL(t, c, bob)
	n := newNode(t, settings{store: c.Instance.Actors, users: c.Instance.Users})
	id := n.local.ID(bob)
	for _, tt := range []struct {
		state string
		want  fault.Kind
	}{
		{instance.UserSuspended, fault.Unavailable}, {instance.UserCreating, fault.NoUser}, {instance.UserDeleting, fault.NoUser},
		{instance.UserDeleted, fault.NoUser}, {instance.UserActive, fault.Unavailable},
	} {
		if _, err := db.ExecContext(t.Context(), `UPDATE users SET state = $1 WHERE username = 'bob'`, tt.state); err != nil {
			t.Fatal(err)
		}
		for name, find := range map[string]func() (*vocab.Actor, error){
			"Resolve": func() (*vocab.Actor, error) { return n.Resolve(t.Context(), id) },
			"Fresh":   func() (*vocab.Actor, error) { return n.Fresh(t.Context(), id) },
			"Known":   func() (*vocab.Actor, error) { return n.Known(t.Context(), id) },
			"Changed": func() (*vocab.Actor, error) { return n.Changed(t.Context(), id, n.clock.now(), true) },
			"ByKey":   func() (*vocab.Actor, error) { return n.ByKey(t.Context(), id+"#main-key") },
			"Handle":  func() (*vocab.Actor, error) { return n.Handle(t.Context(), "bob@us.example") },
		} {
			_, err := find()
			checkKind(t, name+" of a user who is "+tt.state, err, tt.want)
		}
		_, err := n.KnownAll(t.Context(), []vocab.ID{id})
		if tt.want == fault.NoUser {
			tt.want = 0
		}
		checkKind(t, "KnownAll of a user who is "+tt.state, err, tt.want)
	}
}

func TestBlockedHostsAreNotAsked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	if _, err := n.Resolve(ctx, p.id("/users/bob")); err != nil {
		t.Fatal(err)
	}
	before := p.all()
	n.policy.Blocked = []string{"127.0.0.1"}
	_, err := n.Resolve(ctx, p.id("/users/bob"))
	checkKind(t, "Resolve of one we know", err, fault.Forbidden)
	_, err = n.ByKey(ctx, p.id("/users/bob#main-key"))
	checkKind(t, "ByKey", err, fault.Forbidden)
	_, err = n.Handle(ctx, "bob@"+p.host())
	checkKind(t, "Handle", err, fault.Forbidden)
	_, _, err = n.Object(ctx, p.id("/notes/1"), nil)
	checkKind(t, "Object", err, fault.Forbidden)
	if p.all() != before {
		t.Errorf("a blocked host was asked %d times", p.all()-before)
	}
}

func TestSuspendedActorsAreNobody(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	p.show("/@bob", p.person(t, "bob", 0))
	p.show("/users/dan", p.person(t, "dan", 0))
	p.show("/notes/1", vocab.Doc{"id": string(p.id("/notes/1")), "type": "Note", "attributedTo": string(p.id("/users/bob"))})
	p.show("/notes/2", vocab.Doc{"id": string(p.id("/notes/2")), "type": "Note", "attributedTo": []any{string(p.id("/users/dan")), string(p.id("/users/bob"))}})
	p.show("/notes/3", vocab.Doc{"id": string(p.id("/notes/3")), "type": "Note", "attributedTo": string(p.id("/users/dan"))})
	n.policy.Suspended = []vocab.ID{p.id("/users/bob")}
	private, _ := theirs(t, 0)
	_, err := n.Resolve(ctx, p.id("/users/bob"))
	checkKind(t, "Resolve", err, fault.Forbidden)
	_, err = n.Fresh(ctx, p.id("/users/bob"))
	checkKind(t, "Fresh", err, fault.Forbidden)
	if p.all() != 0 {
		t.Errorf("its server was asked %d times for who it is", p.all())
	}
	_, err = n.Resolve(ctx, p.id("/@bob"))
	checkKind(t, "Resolve by another id", err, fault.Forbidden)
	_, err = n.signer(t, mainKey(p, "bob", private), signature.RFC9421, "")
	checkKind(t, "Signer", err, fault.Unauthenticated) // the engine does not know this actor
	for _, note := range []string{"/notes/1", "/notes/2"} {
		_, _, err = n.Object(ctx, p.id(note), nil)
		checkKind(t, "MOD-02 Object "+note, err, fault.Forbidden)
	}
	if _, _, err := n.Object(ctx, p.id("/notes/3"), nil); err != nil {
		t.Errorf("Object of somebody else there = %v", err)
	}
	if _, err := n.Resolve(ctx, p.id("/users/dan")); err != nil {
		t.Errorf("Resolve of somebody else there = %v", err)
	}
}

func TestAStoreThatIsDownIsNotThePeersFault(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	broken := &failing{}
	n := newNode(t, settings{store: broken})
	for _, code := range []string{"database_unavailable", "database_full", "database_disk_full"} {
		broken.set(fault.New(fault.Unavailable, "down").WithCode(code))
		_, err := n.Resolve(context.Background(), p.id("/users/bob"))
		checkKind(t, "Resolve", err, fault.Unavailable)
	}
	broken.set(nil)
	if _, err := n.Resolve(context.Background(), p.id("/users/bob")); err != nil {
		t.Errorf("once the store is back: %v", err)
	}
	broken.set(errors.New("a bug"))
	n.clock.pass(testTTL)
	_, err := n.Refresh(context.Background(), p.id("/users/bob"))
	if fault.KindOf(err) != fault.Internal || err == nil {
		t.Errorf("Refresh = %v, want our own fault", err)
	}
}

func TestKnownAsksNobody(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{}), newPeer(t)
	const path = "/users/bob"
	p.show(path, p.person(t, "bob", 0))
	known := func(what string, want bool, asked int) {
		t.Helper()
		a, err := n.Known(ctx, p.id(path))
		if err != nil || (a != nil) != want {
			t.Errorf("%s: Known = %v, %v", what, a, err)
		}
		if got := p.asked(path); got != asked {
			t.Errorf("%s: the peer was asked %d times, want %d", what, got, asked)
		}
	}
	known("never heard of", false, 0)
	if _, err := n.Resolve(ctx, p.id(path)); err != nil {
		t.Fatal(err)
	}
	n = n.restarted(t)
	n.clock.pass(2 * testTTL)
	known("an old copy", true, 1)
	p.status(path, http.StatusGone)
	_, err := n.Resolve(ctx, p.id(path))
	checkKind(t, "Resolve", err, fault.Gone)
	known("deleted", false, 2)
}

func TestKnownAllAnswersByCanonicalIDs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	bob := p.id("/users/bob")
	if _, err := n.Resolve(ctx, bob); err != nil {
		t.Fatal(err)
	}
	spelled := vocab.ID(strings.Replace(string(bob), "http://", "HTTP://", 1))
	known, err := n.KnownAll(ctx, []vocab.ID{spelled, bob, p.id("/users/nobody")})
	if err != nil || len(known) != 2 || known[bob] == nil || known[bob].ID != bob {
		t.Errorf("KnownAll = %v, %v", known, err)
	}
}
