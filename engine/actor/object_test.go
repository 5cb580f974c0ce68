package actor

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestObjectsComeFromTheirOwnServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p, other := newNode(t, settings{store: forgetful{}}), newPeer(t), newPeer(t)
	note := func(p *peer, path string) vocab.Doc {
		return vocab.Doc{"@context": vocab.ContextAS, "id": p.URL + path, "type": "Note", "content": "hi", "attributedTo": p.URL + "/users/bob"}
	}
	redirect := func(to vocab.ID) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, string(to), http.StatusFound) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	p.show("/notes/1", note(p, "/notes/1"))
	p.show("/notes/2", note(p, "/notes/3"))
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want fault.Kind // zero: note 1 is returned
	}{
		{"another address", activity(note(p, "/notes/1")), 0},
		{"an address that leads there", redirect(p.id("/notes/1")), 0},
		{"ids that lead from one to another", activity(note(p, "/notes/2")), fault.Protocol},
		{"ORG-18 another server's id", activity(note(other, "/notes/1")), fault.Protocol},
		{"ORG-18 a redirect to another server", redirect(other.id("/notes/1")), fault.Protocol},
		{"ORG-19 a file", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(note(p, "/notes/1").JSON()) // fails if the client has hung up
		}, fault.Protocol},
		{"no type", activity(with(note(p, "/notes/1"), vocab.Doc{"type": nil, "id": p.URL + "/no-type"})), fault.Protocol},
		{"more than is taken", activity(with(note(p, "/more-than-is-taken"), vocab.Doc{"content": strings.Repeat("x", 129<<10)})), fault.Protocol},
		{"not there", status(404), fault.NotFound},
		{"gone", status(410), fault.Gone},
		{"down", status(502), fault.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := "/" + strings.ReplaceAll(tt.name, " ", "-")
			p.say(path, tt.h)
			other.show("/notes/1", note(p, path))
			o, raw, err := n.Object(ctx, p.id(path), nil)
			checkKind(t, "Object", err, tt.want)
			if tt.want == 0 && (err != nil || o.ID != p.id("/notes/1") || o.AttributedTo != p.id("/users/bob") || !strings.Contains(string(raw), `"hi"`)) {
				t.Errorf("Object = %+v, %s", o, raw)
			}
		})
	}
}

// A peer redirects a request to another server. The engine sends that server no request, charges
// nothing to its budget, and records no failure of it.
func TestARedirectSpendsNothingOfAnotherServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p, other := newNode(t, settings{rate: policy.Rate{PerSecond: 1.0 / 3600, Burst: 3}}), newPeer(t), newPeer(t)
	slow := make(chan struct{})
	defer close(slow)
	other.say("/notes/1", func(http.ResponseWriter, *http.Request) { <-slow })
	other.show("/users/bob", other.person(t, "bob", 0))
	for i := range 9 {
		path := fmt.Sprint("/away/", i)
		p.say(path, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/notes/1", http.StatusFound)
		})
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, _, err := n.Object(within, p.id(path), nil)
		cancel()
		checkKind(t, "Object", err, fault.Protocol)
	}
	p.say("/users/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/users/bob", http.StatusFound)
	})
	_, err := n.Resolve(ctx, p.id("/users/away"))
	checkKind(t, "Resolve", err, fault.Protocol)
	if asked := other.all(); asked != 0 {
		t.Errorf("the other server was asked %d times, want never", asked)
	}
	if _, err := n.Resolve(ctx, other.id("/users/bob")); err != nil {
		t.Errorf("its own actor cannot be resolved afterwards: %v", err)
	}
	if err := n.recentFailure("object " + string(other.id("/notes/1"))); err != nil {
		t.Errorf("a failure is remembered as the other server's: %v", err)
	}
}

func TestPrivateObjectsAreAskedForByTheUser(t *testing.T) {
	t.Parallel()
	alice := username(t, "alice")
	for _, tt := range []struct {
		name   string
		as     *vocab.Username
		public bool
		status int // the status that the peer answers to actors that may not read the object
		want   fault.Kind
		signer string // the signer of the last request
	}{
		{"public", &alice, true, 0, 0, "/actor"},
		{"private, refused", nil, false, 403, fault.NotFound, "/actor"},
		{"private, for alice", &alice, false, 403, 0, "/users/alice"},
		{"private, for alice, from a server that tells nobody", &alice, false, 404, 0, "/users/alice"},
		{"gone", &alice, false, 410, fault.Gone, "/actor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
			last := ""
			p.say("/notes/1", func(w http.ResponseWriter, r *http.Request) {
				h := r.Header.Get("Signature-Input") + r.Header.Get("Signature")
				last = "/actor"
				if strings.Contains(h, "https://us.example/users/alice#main-key") {
					last = "/users/alice"
				}
				if !tt.public && (last == "/actor" || tt.status == 410) {
					w.WriteHeader(tt.status)
					return
				}
				activity(vocab.Doc{"id": p.URL + "/notes/1", "type": "Note"})(w, r)
			})
			_, _, err := n.Object(context.Background(), p.id("/notes/1"), tt.as)
			checkKind(t, "Object", err, tt.want)
			if last != tt.signer { // NET-19: only a fetch for alice is signed by alice
				t.Errorf("asked last by %s, want %s", last, tt.signer)
			}
		})
	}
}

// A fetch for a user makes two requests: one signed by the instance actor, one signed by the user.
// Both count against the domain's budget.
func TestThePrivateObjectsOfADomainAreBudgeted(t *testing.T) {
	t.Parallel()
	alice := username(t, "alice")
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	n.objectRate = policy.ObjectFetches.SharedAt(policy.Rate{PerSecond: 1.0 / 3600, Burst: 5}, n.Now)
	for i, want := range []fault.Kind{0, 0, fault.RateLimited, fault.RateLimited} {
		path := fmt.Sprint("/notes/", i)
		p.say(path, func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Signature-Input")+r.Header.Get("Signature"), "/users/alice#") {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			activity(vocab.Doc{"id": p.URL + path, "type": "Note"})(w, r)
		})
		_, _, err := n.Object(context.Background(), p.id(path), &alice)
		checkKind(t, fmt.Sprintf("Object %d, of two requests each", i), err, want)
	}
}
