package actor

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestHandlesAreConfirmedByBothSides(t *testing.T) {
	t.Parallel()
	n := newNode(t, settings{})
	p, short, evil := newPeer(t), newPeer(t), newPeer(t)
	at := func(name string, p *peer) string { return name + "@" + p.host() }

	// Bob's handle has the same host as his actor. Carol's handle has another, shorter host
	// than her actor (WF-13).
	p.show("/users/bob", p.person(t, "bob", 0))
	p.finger(at("bob", p), at("Bob", p), p.id("/users/bob"))
	p.show("/users/carol", p.person(t, "carol", 0))
	p.finger(at("carol", p), at("carol", short), p.id("/users/carol"))
	short.finger(at("carol", short), at("carol", short), p.id("/users/carol"))

	// The other actors and handles lie.
	evil.finger(at("bob", evil), at("bob", evil), p.id("/users/bob"))
	evil.finger(at("victim", evil), at("bob", p), evil.id("/users/victim"))
	evil.show("/users/victim", evil.person(t, "victim", 0))
	evil.show("/users/bob", with(evil.person(t, "bob", 0), vocab.Doc{"id": evil.URL + "/users/mallory", "preferredUsername": "bob"}))
	evil.show("/users/mallory", with(evil.person(t, "mallory", 0), vocab.Doc{"preferredUsername": "eve"}))
	evil.finger(at("mallory", evil), at("mallory", evil), evil.id("/users/mallory"))
	evil.finger(at("nameless", evil), at("nameless", evil), evil.id("/users/nameless"))
	evil.show("/users/nameless", with(evil.person(t, "nameless", 0), vocab.Doc{"preferredUsername": nil}))
	evil.finger(at("chain", evil), at("chain", p), evil.id("/users/victim"))
	p.finger(at("chain", p), at("bob", p), p.id("/users/bob"))
	evil.finger(at("ours", evil), "alice@us.example", "https://us.example/users/alice")
	evil.finger(at("inner", evil), at("inner", evil), "https://us.example/users/alice")

	for _, tt := range []struct {
		name, handle string
		id           vocab.ID
		want         fault.Kind
	}{
		{"user@host", at("bob", p), p.id("/users/bob"), 0},
		{"@user@host", "@" + at("bob", p), p.id("/users/bob"), 0},
		{"acct:user@host", "acct:" + at("BOB", p), p.id("/users/bob"), 0},
		{"WF-13 the handle", at("carol", short), p.id("/users/carol"), 0},
		{"WF-13 the host of the actor", at("carol", p), p.id("/users/carol"), 0},
		{"ours", "@alice@us.example", "https://us.example/users/alice", 0},
		{"ours in capitals", "Alice@US.example", "https://us.example/users/alice", 0},
		{"the instance", "instance@us.example", "https://us.example/actor", 0},
		{"nobody of ours", "bob@us.example", "", fault.NoUser},
		{"no user of ours can be called so", "admin@us.example", "", fault.NoUser},
		{"nobody there", at("dave", p), "", fault.NotFound},
		{"NAM-06 a host that names another's actor", at("bob", evil), "", fault.Protocol},
		{"WF-12 NAM-06 a subject of another host", at("victim", evil), "", fault.Protocol},
		{"WF-12 a name the actor does not bear", at("mallory", evil), "", fault.NotFound},
		{"an actor without a name", at("nameless", evil), "", fault.Protocol},
		{"WF-12 two hops", at("chain", evil), "", fault.Protocol},
		{"a subject of ours", at("ours", evil), "", fault.Protocol},
		{"an actor of ours", at("inner", evil), "", fault.Protocol},
		{"no handle", "bob", "", fault.Invalid},
		{"no user", "@" + p.host(), "", fault.Invalid},
		{"no host", "bob@", "", fault.Invalid},
		{"NAM-01 a path", "bob@" + p.host() + "/users", "", fault.Invalid},
		{"NAM-01 three parts", "bob@us.example@" + p.host(), "", fault.Invalid},
		{"NAM-01 a query", "bob?x@" + p.host(), "", fault.Invalid},
		{"user info", "bob:x@" + p.host(), "", fault.Invalid},
		{"NAM-05 a dot at the end", "bob@them.example.", "", fault.Invalid},
		{"64 kB", strings.Repeat("a", 64<<10) + "@" + p.host(), "", fault.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := n.Handle(context.Background(), tt.handle)
			checkKind(t, "Handle", err, tt.want)
			if tt.want == 0 && (err != nil || a.ID != tt.id) || tt.want != 0 && a != nil {
				t.Errorf("Handle = %+v, want %s", a, tt.id)
			}
		})
	}
	row, err := n.store.FindByHandle(context.Background(), at("carol", short))
	if err != nil || row == nil || row.Actor.ID != p.id("/users/carol") {
		t.Errorf("carol is stored as %+v, %v", row, err)
	}
	if row, err := n.store.FindByHandle(context.Background(), at("victim", evil)); err != nil || row != nil {
		t.Errorf("a lie is stored: %+v, %v", row, err)
	}
}

func TestHandlesOutliveTheirHost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{}), newPeer(t)
	path := "/.well-known/webfinger acct:bob@" + p.host()
	p.show("/users/bob", p.person(t, "bob", 0))
	p.finger("bob@"+p.host(), "bob@"+p.host(), p.id("/users/bob"))
	is := func(what string, want fault.Kind, asked int) {
		t.Helper()
		a, err := n.Handle(ctx, "Bob@"+p.host())
		checkKind(t, what, err, want)
		if want == 0 && (err != nil || a.ID != p.id("/users/bob")) {
			t.Errorf("%s: %v", what, a)
		}
		if got := p.asked(path); got != asked {
			t.Errorf("%s: asked %d times, want %d", what, got, asked)
		}
	}
	is("the first time", 0, 1)
	is("remembered", 0, 1)
	p.status(path, http.StatusBadGateway)
	n.clock.pass(testTTL)
	is("the host is down", 0, 2)
	n = n.restarted(t)
	is("the host is down, and we were too", 0, 3)
	p.status(path, http.StatusNotFound)
	is("the host says no", fault.NotFound, 4)
}

// On Lemmy a person and a community may have the same name.
func TestAHandleOfAPersonAndAGroupIsTheGroups(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	const personal, shared = "/users/android", "/users/c-android"
	p.show(personal, p.person(t, "android", 0))
	p.show(shared, with(p.person(t, "c-android", 0), vocab.Doc{"type": "Group", "preferredUsername": "android"}))
	link := func(path, more string) string {
		return `{"rel":"self","type":"application/activity+json","href":"` + p.URL + path + `"` + more + `}`
	}
	const person, group = `,"properties":{"https://www.w3.org/ns/activitystreams#type":"Person"}`, `,"properties":{"https://www.w3.org/ns/activitystreams#type":"Group"}`
	for name, links := range map[string]string{
		"as Lemmy sends them":      link(personal, person) + "," + link(shared, group),
		"the other way round":      link(shared, group) + "," + link(personal, person),
		"as old Lemmy sends them":  link(personal, "") + "," + link(shared, ""),
		"with a page between them": link(personal, "") + `,{"rel":"me","href":"x"},` + link(shared, ""),
	} {
		t.Run(name, func(t *testing.T) {
			n.handles.drop("android@" + p.host())
			p.say("/.well-known/webfinger acct:android@"+p.host(), func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"subject":"acct:android@` + p.host() + `","links":[` + links + `]}`)) // the client may have hung up
			})
			a, err := n.Handle(context.Background(), "android@"+p.host())
			if err != nil || a.ID != p.id(shared) {
				t.Errorf("Handle = %v, %v, want the group", a, err)
			}
		})
	}
}

func TestWebFingerAnswersOfOthers(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	self := `{"rel":"self","type":"application/activity+json","href":"` + p.URL + `/users/bob"}`
	for _, tt := range []struct {
		name, body string
		want       fault.Kind
	}{
		{"no subject", `{"links":[` + self + `]}`, 0},
		{"a subject that is no handle", `{"subject":"` + p.URL + `/@bob","links":[` + self + `]}`, 0},
		{"one link, not a list", `{"links":` + self + `}`, 0},
		{"other links before", `{"links":[{"rel":"self","type":"text/html","href":"x"},{"rel":"me"},7,` + self + `]}`, 0},
		{"an address that is none, before", `{"links":[{"rel":"self","type":"application/activity+json","href":"x"},` + self + `]}`, 0},
		{"no links", `{"subject":"acct:bob@x"}`, fault.Protocol},
		{"another relation", `{"links":[` + strings.Replace(self, "self", "me", 1) + `]}`, fault.Protocol},
		{"another type", `{"links":[` + strings.Replace(self, "activity+json", "json", 1) + `]}`, fault.Protocol},
		{"WF-15 XML", `<XRD/>`, fault.Protocol},
		{"WF-15 too large", `{"links":[` + self + `],"x":"` + strings.Repeat("x", maxJRD) + `"}`, fault.Protocol},
		{"not an object", `[]`, fault.Protocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n.handles.drop("bob@" + p.host())
			p.say("/.well-known/webfinger acct:bob@"+p.host(), func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Signature") != "" || !strings.Contains(r.Header.Get("Accept"), "application/jrd+json") {
					t.Errorf("asked with %v", r.Header)
				}
				_, _ = w.Write([]byte(tt.body)) // fails if the client has hung up
			})
			a, err := n.Handle(context.Background(), "bob@"+p.host())
			checkKind(t, "Handle", err, tt.want)
			if tt.want == 0 && (err != nil || a.ID != p.id("/users/bob")) {
				t.Errorf("Handle = %v", a)
			}
		})
	}
}
