package engine_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// relayServer is a peer that a test uses as a relay.
type relayServer struct {
	*peertest.Peer
	actor *peertest.Actor
}

func newRelayServer(t *testing.T, address string) *relayServer {
	p := peertest.New(t, address)
	r := &relayServer{p, p.Actor("/actor")}
	r.actor.Doc["type"], r.actor.Doc["inbox"] = "Application", p.Origin+"/inbox"
	r.actor.Show()
	return r
}

// got returns the activities of a type that were posted to the relay.
func (r *relayServer) got(t *testing.T, kind string) (all []*vocab.Activity) {
	t.Helper()
	for _, p := range r.Posted() {
		a, err := vocab.ParseActivity(p.Content)
		if err != nil {
			t.Fatal(err)
		}
		if a.Type == kind {
			all = append(all, a)
		}
	}
	return all
}

// next waits for the nth activity of a type. It checks that signer sent and signed the activity.
func (r *relayServer) next(t *testing.T, kind string, n int, signer string) *vocab.Activity {
	t.Helper()
	enginetest.Eventually(t, fmt.Sprintf("%s %d comes to the relay", kind, n), func() bool { return len(r.got(t, kind)) >= n })
	a := r.got(t, kind)[n-1]
	for _, p := range r.Posted() {
		if !bytes.Contains(p.Content, []byte(a.ID)) {
			continue
		}
		claims, err := signature.Parse(p.Request, p.Content, signature.Options{Origin: r.Origin, Now: time.Now()})
		if err != nil || len(claims) == 0 || !strings.HasPrefix(claims[0].KeyID, signer+"#") {
			t.Errorf("%s is signed by %+v, %v; want a key of %s", kind, claims, err, signer)
			continue
		}
		if err := claims[0].Verify(keyOf(t, signer)); err != nil {
			t.Errorf("the signature of %s: %v", kind, err)
		}
	}
	if a.Actor != vocab.ID(signer) {
		t.Errorf("%s is by %s, want %s", kind, a.Actor, signer)
	}
	return a
}

// says posts an activity of the relay to the shared inbox.
func (r *relayServer) says(t *testing.T, i *enginetest.Instance, id, rest string) {
	t.Helper()
	post(t, r.actor, i.URL+"/inbox", fmt.Sprintf(`{"id":"%s/%s","actor":"%s",%s}`, r.actor.ID, id, r.actor.ID, rest))
}

type listed struct{ Actor, Inbox, Style, State, Follow string }

func relays(t *testing.T, i *enginetest.Instance) []listed {
	t.Helper()
	var doc struct{ Relays []listed }
	ran := i.Run(t, "relay", "list", "--json")
	if ran.Code != 0 {
		t.Fatalf("relay list ended with %d: %s", ran.Code, ran.Stderr)
	}
	ran.Decode(t, &doc)
	return doc.Relays
}

func stateOf(t *testing.T, i *enginetest.Instance, r *relayServer) string {
	t.Helper()
	for _, l := range relays(t, i) {
		if l.Actor == string(r.actor.ID) {
			return l.State
		}
	}
	return ""
}

// FE-16: a server subscribes to relays of both styles. It sends them public posts, takes posts by
// followed authors from them, and unsubscribes. Relay commands take effect in the running engine.
func TestRelays(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	instance := i.URL + "/actor"
	alice := i.CreateUser(t, "alice")
	mastodon, litepub := newRelayServer(t, "127.0.0.2"), newRelayServer(t, "127.0.0.3")
	authors := peertest.New(t, "127.0.0.4")
	carol := authors.Actor("/carol")

	t.Run("Follow", func(t *testing.T) {
		runAll(t, i, []command{
			{"relay add " + mastodon.Origin + "/inbox", 0, ""},
			{"relay add " + litepub.Origin + "/actor", 0, ""},
		})
		if a := mastodon.next(t, "Follow", 1, instance); a.Object.ID != vocab.Public {
			t.Errorf("the Follow is of %s, want everybody", a.Object.ID)
		}
		if a := litepub.next(t, "Follow", 1, instance); a.Object.ID != litepub.actor.ID {
			t.Errorf("the Follow is of %s, want the relay's actor", a.Object.ID)
		}
		before, _ := alice.Post(t, map[string]any{"content": "too early", "visibility": "public"})
		if n := alice.Column(t, `SELECT count(*) FROM delivery_jobs WHERE activity_uri = $1`, before); n[0] != "0" {
			t.Errorf("a post is sent to %s relays that have not accepted", n)
		}
		runAll(t, i, []command{{"relay add " + mastodon.Origin + "/inbox", 0, ""}})
		if one, two := mastodon.next(t, "Follow", 1, instance), mastodon.next(t, "Follow", 2, instance); one.ID != two.ID {
			t.Errorf("the Follow is sent again as %s, was %s", two.ID, one.ID)
		}
	})
	t.Run("Accept", func(t *testing.T) {
		forger := authors.Actor("/mallory")
		follow := mastodon.got(t, "Follow")[0].ID
		post(t, forger, i.URL+"/inbox", fmt.Sprintf(`{"id":"%s/accepts/1","type":"Accept","actor":"%s","object":"%s"}`, forger.ID, forger.ID, follow))
		if got := stateOf(t, i, mastodon); got != "pending" {
			t.Errorf("somebody else's Accept makes the relay %s", got)
		}
		mastodon.says(t, i, "accepts/1", `"type":"Accept","object":{"id":"`+string(follow)+`","type":"Follow","actor":"`+instance+`","object":"as:Public"}`)
		litepub.says(t, i, "accepts/1", `"type":"Accept","object":"`+string(litepub.got(t, "Follow")[0].ID)+`"`)
		for _, r := range []*relayServer{mastodon, litepub} {
			if got := stateOf(t, i, r); got != "accepted" {
				t.Errorf("the relay is %s, want it accepted", got)
			}
		}
		litepub.says(t, i, "follows/1", `"type":"Follow","object":"`+instance+`"`)
		litepub.next(t, "Accept", 1, instance)
		runAll(t, i, []command{{"relay add " + mastodon.Origin + "/inbox --json", 73, `"conflict"`}})
	})
	t.Run("out", func(t *testing.T) {
		create, note := alice.Post(t, map[string]any{"content": "hello", "visibility": "public"})
		if a := mastodon.next(t, "Create", 1, alice.ID); a.ID != vocab.ID(create) {
			t.Errorf("the relay got %s, want %s", a.ID, create)
		}
		if a := litepub.next(t, "Announce", 1, instance); a.Object.ID != vocab.ID(note) {
			t.Errorf("the relay was told of %s, want %s", a.Object.ID, note)
		}
		for _, v := range []string{"unlisted", "followers"} {
			alice.Post(t, map[string]any{"content": "not so loud", "visibility": v})
		}
		alice.Post(t, map[string]any{"content": "psst", "visibility": "direct", "to": []string{string(carol.ID)}})
		alice.Do(t, "DeleteObject", map[string]any{"objectId": note})
		mastodon.next(t, "Delete", 1, alice.ID)
		litepub.next(t, "Delete", 1, alice.ID)
		enginetest.Eventually(t, "everything is delivered", func() bool {
			return alice.Column(t, `SELECT count(*) FROM deliveries WHERE status = 'pending'`)[0] == "0"
		})
		for r, kinds := range map[*relayServer]map[string]int{mastodon: {"Create": 1, "Announce": 0, "Delete": 1}, litepub: {"Create": 0, "Announce": 1, "Delete": 1}} {
			for kind, want := range kinds {
				if got := len(r.got(t, kind)); got != want {
					t.Errorf("%s got %d of %s, want %d", r.Origin, got, kind, want)
				}
			}
		}
	})
	t.Run("in", func(t *testing.T) {
		follow := alice.Do(t, "Follow", map[string]any{"actorUri": string(carol.ID)}).ActivityID
		post(t, carol, alice.ID+"/inbox", fmt.Sprintf(`{"id":"%s/accepts/1","type":"Accept","actor":"%s","object":"%s"}`, carol.ID, carol.ID, follow))
		stranger := authors.Actor("/dave")
		elsewhere := peertest.New(t, "127.0.0.5")
		note := func(p *peertest.Peer, path string, by *peertest.Actor) string {
			p.Serve(path, []byte(fmt.Sprintf(`{"id":"%s","type":"Note","attributedTo":"%s","to":"as:Public","content":"hi"}`, p.Origin+path, by.ID)))
			return p.Origin + path
		}
		followed := note(authors, "/notes/1", carol)
		strangers := note(authors, "/notes/2", stranger)
		far := note(elsewhere, "/notes/3", elsewhere.Actor("/erin"))
		forged := note(elsewhere, "/notes/4", carol)
		for n, object := range []string{followed, strangers, far, forged, followed} {
			litepub.says(t, i, fmt.Sprintf("announces/%d", n), `"type":"Announce","to":"`+string(litepub.actor.ID)+`/followers","object":"`+object+`"`)
		}
		post(t, mastodon.actor, i.URL+"/inbox", fmt.Sprintf(`{"id":"%s/create","type":"Create","actor":"%s","to":"as:Public","object":{"id":"%s","type":"Note","attributedTo":"%s","to":"as:Public","content":"forged"}}`, followed, carol.ID, followed, carol.ID))
		post(t, carol, i.URL+"/inbox", fmt.Sprintf(`{"id":"%s/create","type":"Create","actor":"%s","to":"as:Public","object":{"id":"%s","type":"Note","attributedTo":"%s","to":"as:Public","content":"hi"}}`, followed, carol.ID, followed, carol.ID))

		alice.Await(t, "main", "carol's post", func(i enginetest.Item) bool { return i.ActorURI == string(carol.ID) && i.Type == "Create" })
		if got := alice.Column(t, `SELECT uri || ' ' || (raw ->> 'content') FROM objects WHERE raw ->> 'attributedTo' <> $1`, alice.ID); !slices.Equal(got, []string{followed + " hi"}) {
			t.Errorf("alice holds %q, want carol's post", got)
		}
		theirs := slices.DeleteFunc(alice.Feed(t, "main"), func(i enginetest.Item) bool { return i.ActorURI == alice.ID })
		if len(theirs) != 1 {
			t.Errorf("the feed shows %+v, want one post", theirs)
		}
		if asked := elsewhere.Asked(); len(asked) > 0 {
			t.Errorf("a server where nobody is followed was asked for %q", asked)
		}
		for outcome, want := range map[string]float64{"taken": 3, "stranger": 3} {
			if got := i.Metric(t, `lightweb_relay_activities_total{outcome="`+outcome+`"}`); got != want {
				t.Errorf("%s: %v, want %v", outcome, got, want)
			}
		}
	})
	t.Run("Undo", func(t *testing.T) {
		follow := mastodon.got(t, "Follow")[0]
		runAll(t, i, []command{{"relay remove " + mastodon.Origin + "/inbox", 0, ""}})
		if a := mastodon.next(t, "Undo", 1, instance); a.Object.ID != follow.ID || a.Object.Type() != "Follow" {
			t.Errorf("the Undo is of %s, want the Follow %s", a.Raw, follow.ID)
		}
		litepub.Handle("/inbox", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
		gone := i.Run(t, "relay", "remove", string(litepub.actor.ID))
		if gone.Code != 0 || !strings.Contains(gone.Stderr, "410") {
			t.Errorf("removing a relay that is gone ended with %d and said %q", gone.Code, gone.Stderr)
		}
		if left := relays(t, i); len(left) > 0 {
			t.Errorf("left are %+v, want none", left)
		}
		enginetest.Eventually(t, "posts are sent to no relay", func() bool {
			create, _ := alice.Post(t, map[string]any{"content": "alone", "visibility": "public"})
			return alice.Column(t, `SELECT count(*) FROM delivery_jobs j JOIN deliveries d ON d.job_id = j.id WHERE activity_uri = $1 AND inbox LIKE $2`, create, mastodon.Origin+"%")[0] == "0"
		})
	})
	t.Run("refusals", func(t *testing.T) {
		dead := peertest.New(t, "127.0.0.6")
		dead.Handle("/inbox", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		a := dead.Actor("/actor")
		a.Doc["inbox"] = dead.Origin + "/inbox"
		a.Show()
		runAll(t, i, []command{
			{"relay add " + i.URL + "/actor", 65, "this server"},
			{"relay add nonsense", 65, ""},
			{"relay add " + authors.Origin + "/nobody", 66, ""},
			{"relay add " + authors.Origin + "/inbox", 66, "--style mastodon"},
			{"relay add " + litepub.Origin + "/actor --style pigeon", 64, "mastodon or litepub"},
			{"relay remove " + litepub.Origin + "/actor", 66, "relay list"},
			{"relay add " + dead.Origin + "/inbox", 69, "stays pending"},
			{"domain block 127.0.0.3", 0, ""},
			{"relay add " + litepub.Origin + "/actor", 77, ""},
		})
		if got := relays(t, i); len(got) != 1 || got[0].State != "pending" || got[0].Inbox != dead.Origin+"/inbox" {
			t.Errorf("kept are %+v, want the relay that could not be told", got)
		}
	})
}
