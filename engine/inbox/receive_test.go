package inbox_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	mine   = "us:/alice/inbox"
	shared = "us:/inbox"
	listen = `{"id":"p:/listens/1","type":"Listen","actor":"p:/carol","object":"p:/songs/1"}`
)

var listened = []string{
	"+ activity inbound Listen p:/listens/1 p:/songs/1",
	"+ event listen.received p:/listens/1 p:/songs/1 by stranger p:/carol"}

// altered sends a request of carol's that change() changes after it is signed.
func altered(s *peertest.Scene, change func(http.Header)) error {
	r := s.Request("p:/carol", mine, listen)
	change(r.Header)
	return s.Receive(r, mine, listen)
}

func sends(from, to, body string) func(*peertest.Scene) error {
	return func(s *peertest.Scene) error { return s.Send(from, to, body) }
}

func TestReceive(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	tests := []struct {
		name string
		send func(*peertest.Scene) error
		kind fault.Kind
		want []string
		code string
		asks bool // whether the engine may ask carol's server for carol
	}{
		{"IN-03 SIG-01 not signed", func(s *peertest.Scene) error {
			return altered(s, func(h http.Header) { h.Del("Signature"); h.Del("Signature-Input") })
		}, fault.Unauthenticated, nil, "", false},
		{"SIG-02 signed by another server's key", sends("q:/mallory", mine, listen), fault.Unauthenticated, nil, "foreign_key", false},
		{"SIG-02 signed by another server's key, to the shared inbox", sends("q:/mallory", shared, listen), fault.Unauthenticated, nil, "foreign_key", false},
		{"signed by another actor's key", sends("p:/dave", mine, listen), fault.Unauthenticated, nil, "foreign_key", true},
		{"SIG-06 with another body", func(s *peertest.Scene) error {
			return s.Receive(s.Request("p:/carol", mine, listen), mine, strings.Replace(listen, "songs", "wrong", 1))
		}, fault.Unauthenticated, nil, "", false},
		{"SIG-09 made for another inbox", func(s *peertest.Scene) error {
			r := s.Request("p:/carol", shared, listen)
			r.URL.Path, r.RequestURI = "/users/alice/inbox", "/users/alice/inbox"
			return s.Receive(r, mine, listen)
		}, fault.Unauthenticated, nil, "bad_signature", true},
		{"SIG-29 a local actor", sends("p:/carol", mine, strings.ReplaceAll(listen, "p:/carol", "us:/alice")), fault.Unauthenticated, nil, "local_actor", false},
		{"IN-01 text", func(s *peertest.Scene) error {
			return altered(s, func(h http.Header) { h.Set("Content-Type", "text/plain") })
		}, fault.Unsupported, nil, "", false},
		{"IN-01 plain JSON", func(s *peertest.Scene) error {
			return altered(s, func(h http.Header) { h.Set("Content-Type", "application/json") })
		}, fault.Unsupported, nil, "", false},
		{"no media type", func(s *peertest.Scene) error {
			return altered(s, func(h http.Header) { h.Del("Content-Type") })
		}, fault.Unsupported, nil, "", false},
		{"two media types", func(s *peertest.Scene) error {
			return altered(s, func(h http.Header) { h.Add("Content-Type", "text/plain") })
		}, fault.Unsupported, nil, "", false},
		{"SIG-08 an encoded body", func(s *peertest.Scene) error {
			return altered(s, func(h http.Header) { h.Set("Content-Encoding", "gzip") })
		}, fault.Unsupported, nil, "", false},
		{"JSON-LD with the profile", func(s *peertest.Scene) error {
			s.MediaType = vocab.MediaType
			return s.Send("p:/carol", mine, listen)
		}, accepted, listened, "", true},
		{"IN-04 bad JSON", sends("p:/carol", mine, `{"id":`), fault.Invalid, nil, "bad_json", false},
		{"no id", sends("p:/carol", mine, strings.Replace(listen, `"id":"p:/listens/1",`, "", 1)), fault.Invalid, nil, "", false},
		{"no actor", sends("p:/carol", mine, strings.Replace(listen, `,"actor":"p:/carol"`, "", 1)), fault.Invalid, nil, "", false},
		{"ORG-10 another origin's id", sends("p:/carol", mine, strings.Replace(listen, "p:/listens", "q:/listens", 1)), fault.Invalid, nil, "foreign_id", true},
		{"ORG-04 an id of ours", sends("p:/carol", mine, strings.Replace(listen, "p:/listens", "us:/alice/activities", 1)), fault.Invalid, nil, "foreign_id", true},
		{"IN-04 nobody's inbox", sends("p:/carol", "us:/users/nobody/inbox", listen), fault.NotFound, nil, "", false},
		{"an unknown type", sends("p:/carol", mine, listen), accepted, listened, "", true},
		{"IN-20 about nothing", sends("p:/carol", mine, strings.Replace(listen, `,"object":"p:/songs/1"`, "", 1)), accepted, []string{
			"+ activity inbound Listen p:/listens/1", "+ event listen.received p:/listens/1 by stranger p:/carol"}, "", true},
		{"D12 that concerns nobody", sends("p:/carol", shared, strings.Replace(listen, `"object"`, `"to":"as:Public","object"`, 1)), accepted, nil, "", true},
		{"ORG-15 to a collection of alice's", sends("p:/carol", shared, `{"id":"p:/adds/1","type":"Add","actor":"p:/carol","object":"p:/carol","target":"us:/alice/followers"}`), accepted, nil, "", true},
		{"ORG-24 a report tells nobody", sends("p:/carol", mine, `{"id":"p:/flags/1","type":"Flag","actor":"p:/carol","to":"us:/alice","object":["us:/alice","us:/alice/objects/1"]}`), accepted, nil, "", true},
		{"IN-18 about several things", sends("p:/carol", mine, `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":["us:/alice/objects/1","us:/alice/objects/2"]}`), fault.Invalid, nil, "", false},
	}
	for _, d := range []signature.Dialect{signature.RFC9421, signature.Cavage} {
		t.Run(d.String(), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					s := stage.Scene(t)
					s.Dialect = d
					s.Actor("p:/carol")
					var err error
					expect(t, s, tt.want, tt.kind, func() error { err = tt.send(s); return err })
					if e := fault.Of(err); tt.code != "" && (e == nil || e.Code != tt.code) {
						t.Errorf("err = %v, want code %s", err, tt.code)
					}
					if asked := s.Asked("p:/carol"); asked > 0 && !tt.asks {
						t.Errorf("asked for the actor %d times, want none", asked)
					}
				})
			}
		})
	}
}

func TestBlockedHostsAreRefusedBeforeAnythingIsFetched(t *testing.T) {
	for _, from := range []string{"p:/carol", "q:/mallory"} {
		t.Run(from, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/carol")
			s.Block("127.0.0.2")
			expect(t, s, nil, fault.Forbidden, func() error { return s.Send(from, mine, listen) })
			if n := s.Asked("p:/carol") + s.Asked("q:/mallory"); n > 0 {
				t.Errorf("%d fetches, want none", n)
			}
		})
	}
}

func TestInboxesOfUsersWhoAreNotActive(t *testing.T) {
	s := newScene(t)
	for _, tt := range []struct {
		state string
		want  fault.Kind
	}{{"suspended", fault.Gone}, {"deleted", fault.Gone}, {"creating", fault.NotFound}, {"active", accepted}} { // active comes last, because the engine caches an active user for a second
		s.Instance(t, `UPDATE users SET state = '`+tt.state+`'`)
		err := s.Send("p:/carol", mine, listen)
		if tt.want == accepted && err != nil || tt.want != accepted && fault.KindOf(err) != tt.want {
			t.Errorf("%s: err = %v, want kind %v", tt.state, err, tt.want)
		}
	}
}

func TestActorsWhoCannotBeFound(t *testing.T) {
	del := `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`
	tests := []struct {
		name   string
		status int
		body   string
		want   fault.Kind
	}{
		{"D16 gone, and deletes itself", http.StatusGone, del, accepted},
		{"gone, and does something else", http.StatusGone, listen, fault.Unauthenticated},
		{"SIG-32 gone, and deletes somebody else", http.StatusGone, strings.Replace(del, `"object":"p:/carol"`, `"object":"p:/dave"`, 1), fault.Unauthenticated},
		{"D16 not found, and deletes itself", http.StatusNotFound, del, accepted},
		{"not found, and does something else", http.StatusNotFound, listen, fault.Unauthenticated},
		{"its server is down", http.StatusServiceUnavailable, listen, fault.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/carol")
			s.Answer("p:/carol", tt.status)
			expect(t, s, nil, tt.want, func() error { return s.Send("p:/carol", shared, tt.body) })
		})
	}
}

// NET-01: an actor at a forbidden address is refused like an unknown actor. Another answer would
// tell strangers which addresses the names have inside this network.
func TestAnActorWhereNobodyMayBeAskedIsNotFound(t *testing.T) {
	s := newScene(t)
	s.Actor("p:/carol").Keys.RSA.ID = "https://10.0.0.1/carol#main-key"
	expect(t, s, nil, fault.Unauthenticated, func() error { return s.Send("p:/carol", mine, strings.ReplaceAll(listen, "p:/", "https://10.0.0.1/")) })
}

func TestTooManyRequests(t *testing.T) {
	limits := map[string]func(*inbox.Deps){
		"of a host": func(d *inbox.Deps) { d.Hosts = policy.NewLimiter(policy.Rate{PerSecond: 0.001, Burst: 2}, d.Now, 10) },
		"of a key":  func(d *inbox.Deps) { d.Senders = policy.NewLimiter(policy.Rate{PerSecond: 0.001, Burst: 2}, d.Now, 10) },
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, limit)
			for range 2 {
				s.MustSend("p:/carol", mine, listen)
			}
			err := s.Send("p:/carol", mine, listen)
			if fault.KindOf(err) != fault.RateLimited || fault.Of(err).RetryAfter < time.Second {
				t.Errorf("err = %v, want RateLimited with a time to wait", err)
			}
			s.MustSend("q:/mallory", mine, `{"id":"q:/listens/1","type":"Listen","actor":"q:/mallory"}`)
		})
	}
}

func TestWhoSendsTooMuchTakesNothingFromOthersOfItsHost(t *testing.T) {
	s := newScene(t, func(d *inbox.Deps) {
		d.Hosts = policy.NewLimiter(policy.Rate{PerSecond: 0.001, Burst: 3}, d.Now, 10)
		d.Senders = policy.NewLimiter(policy.Rate{PerSecond: 0.001, Burst: 2}, d.Now, 10)
	})
	for range 2 {
		s.MustSend("p:/carol", mine, listen)
	}
	for range 5 {
		if err := s.Send("p:/carol", mine, listen); fault.KindOf(err) != fault.RateLimited {
			t.Errorf("err = %v, want RateLimited", err)
		}
	}
	s.MustSend("p:/dave", mine, `{"id":"p:/listens/2","type":"Listen","actor":"p:/dave"}`)
}

func TestAnExactReplayHasNoEffect(t *testing.T) {
	s := newScene(t)
	r := s.Request("p:/carol", mine, follow)
	if err := s.Receive(r, mine, follow); err != nil {
		t.Fatal(err)
	}
	expect(t, s, nil, accepted, func() error { return s.Receive(r, mine, follow) })
}

// Mastodon pins and unpins by an Add and a Remove without an id. A repeat of the same request has
// no effect. A later request with the same body takes effect.
func TestAnAddWithoutAnIDTakesEffectEachTimeItIsSent(t *testing.T) {
	s := newScene(t)
	s.Actor("p:/carol").Doc["featured"] = s.Long("p:/carol/featured")
	s.Actor("p:/carol").Show()
	s.Follows("p:/carol")
	s.Serve("p:/notes/1", `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","content":"hi","to":"as:Public"}`)
	pinned := func(change string) func(kind string) {
		return func(kind string) {
			t.Helper()
			body := `{"type":"` + kind + `","actor":"p:/carol","object":"p:/notes/1","target":"p:/carol/featured"}`
			r := s.Request("p:/carol", shared, body)
			made := s.Changes(func() {
				if err := s.Receive(r, shared, body); err != nil {
					t.Fatal(err)
				}
			})
			if !slices.ContainsFunc(made, func(c string) bool { return strings.HasPrefix(c, change+" pin p:/notes/1 of p:/carol") }) {
				t.Errorf("%s: changes %q, want %s pin", kind, made, change)
			}
			expect(t, s, nil, accepted, func() error { return s.Receive(r, shared, body) })
			s.Later(time.Second)
		}
	}
	for range 2 {
		pinned("+")("Add")
		pinned("-")("Remove")
	}
}

// The engine remembers ids forever. The same activity, signed again days later, has no effect. A
// Follow and a reaction that have ended are exceptions (see handler.Registry.ComesAgain).
func TestAnActivityThatComesAgainDaysLaterHasNoEffect(t *testing.T) {
	s := newScene(t)
	const (
		create = `{"id":"p:/creates/1","type":"Create","actor":"p:/carol","to":"as:Public","cc":"us:/alice","object":
			{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","content":"hi","to":"as:Public","cc":"us:/alice"}}`
		remove = `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`
		like   = `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`
		undo   = `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":"p:/likes/1"}`
	)
	s.Posts("us:/alice/objects/1", "as:Public")
	for _, body := range []string{create, remove, like, undo} {
		if made := s.Changes(func() { s.MustSend("p:/carol", mine, body) }); len(made) == 0 {
			t.Fatalf("%s has no effect at first", body)
		}
	}
	s.Later(48 * time.Hour)
	for name, body := range map[string]string{"IN-21 the Create": create, "IN-21 the Delete": remove, "IN-21 the Undo": undo} {
		t.Run(name, func(t *testing.T) {
			expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", mine, body) })
		})
	}
}

// The engine accepts activities of types for which it has no handler. If it refused them, their
// senders would repeat them.
func TestWhatOthersSendIsTaken(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for _, tt := range []struct {
		name, fields string
		kept         bool
	}{
		{"IN-17 EmojiReact", `"type":"EmojiReact","object":"us:/alice/objects/1","content":":blob:","tag":[{"type":"Emoji","name":":blob:","icon":{"type":"Image","url":"p:/blob.png"}}]`, true},
		{"IN-17 Like with content", `"type":"Like","object":"us:/alice/objects/1","content":"👍","_misskey_reaction":"👍"`, true},
		{"IN-17 QuoteRequest", `"type":"QuoteRequest","object":"us:/alice/objects/1","instrument":{"id":"p:/notes/2","type":"Note","attributedTo":"p:/carol","quote":"us:/alice/objects/1"}`, true},
		{"IN-17 FeatureRequest", `"type":"FeatureRequest","object":"us:/alice","instrument":"p:/collections/1"`, true},
		{"IN-17 LikeRequest", `"type":"LikeRequest","object":"us:/alice/objects/1","instrument":"p:/likes/9"`, true},
		{"IN-17 Question", `"type":"Question","oneOf":[{"type":"Note","name":"red"},{"type":"Note","name":"blue"}]`, true},
		{"IN-17 Block", `"type":"Block","object":"us:/alice"`, true},
		{"IN-17 Flag", `"type":"Flag","object":["us:/alice","us:/alice/objects/1"],"content":"spam"`, false},
		{"IN-17 Create of a vote", `"type":"Create","to":"us:/alice","object":{"id":"p:/votes/1","type":"Note","name":"red","inReplyTo":"us:/alice/objects/1"}`, false},
		{"IN-17 View", `"type":"View","object":"us:/alice/objects/1"`, true},
		{"IN-17 a type of somebody's own", `"type":"https://p.example/ns#Frobnicate","object":"us:/alice/objects/1"`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			s.Posts("us:/alice/objects/1", "as:Public")
			s.MustSend("p:/carol", mine, `{"id":"p:/acts/1","actor":"p:/carol",`+tt.fields+`}`)
			if kept := len(s.Column(t, s.Alice, `SELECT 1 FROM activities WHERE uri = $1`, string(s.ID("p:/acts/1")))) == 1; kept != tt.kept {
				t.Errorf("kept: %t, want %t", kept, tt.kept)
			}
		})
	}
}

func TestNothingIsFetchedForNobody(t *testing.T) {
	s := newScene(t)
	boost := `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol","to":"as:Public","object":"q:/notes/1"}`
	expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", shared, boost) })
	if n := s.Asked("q:/notes/1"); n > 0 {
		t.Errorf("asked %d times for an object that concerns nobody, want never", n)
	}
}

func TestAnObjectWhoseServerIsDownIsAskedForAgain(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	boost := `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol","to":"as:Public","object":"q:/notes/1"}`
	s.Answer("q:/notes/1", http.StatusServiceUnavailable)
	expect(t, s, nil, fault.Unavailable, func() error { return s.Send("p:/carol", shared, boost) })
	s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","to":"as:Public"}`)
	s.Later(2 * time.Minute) // after a minute the engine may ask the server again
	expect(t, s, []string{
		"+ object q:/notes/1 Note",
		"+ activity inbound Announce p:/boosts/1 q:/notes/1",
		"+ reaction p:/carol Announce q:/notes/1 p:/boosts/1",
		"+ feed p:/boosts/1 by p:/carol",
		"+ event announce.received p:/boosts/1 q:/notes/1 by contact p:/carol"}, accepted, func() error { return s.Send("p:/carol", shared, boost) })
}

func TestDeliverHandsOverWhatLocalActorsSend(t *testing.T) {
	s := newScene(t)
	bob := s.With("bob")
	deliver := func(u *peertest.Scene, body string) error {
		from := s.Alice
		if u == s {
			from = bob.Alice
		}
		return u.Inbox.Deliver(t.Context(), from, u.Alice, []byte(bob.Long(body)))
	}
	if err := deliver(s, `{"id":"us:/alice/activities/0","type":"Follow","actor":"us:/alice","object":"as:Public"}`); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a Follow of everybody: %v, want it refused, as from another server", err)
	}
	follow := `{"id":"us:/alice/activities/1","type":"Follow","actor":"us:/alice","object":"` + string(s.Local.ID(s.Alice)) + `"}`
	if err := deliver(s, follow); err != nil {
		t.Fatal(err)
	}
	if err := deliver(s, follow); err != nil {
		t.Fatal("again: ", err)
	}
	if n := s.Column(t, s.Alice, `SELECT actor_uri || status FROM relationships WHERE type = 'follower'`); len(n) != 1 || n[0] != bob.Long("us:/alice")+"accepted" {
		t.Errorf("followers = %q, want bob", n)
	}
	if n := s.Column(t, s.Alice, `SELECT inbox || '|' || host FROM deliveries`); len(n) != 1 || n[0] != bob.Long("us:/alice/inbox|") {
		t.Errorf("deliveries = %q, want one to bob, within this server", n)
	}
	if err := s.Store.Instance.Users.SetState(t.Context(), s.Alice, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	if err := deliver(s, follow); fault.KindOf(err) != fault.Gone {
		t.Errorf("to a suspended user: err = %v, want gone", err)
	}
}

func TestAHostIsKnownToTakeTheDialectThatItSignsWith(t *testing.T) {
	for _, tt := range []struct {
		name               string
		known, signs, want signature.Dialect
	}{
		{"nothing was known", 0, signature.RFC9421, signature.RFC9421},
		{"nor of one that signs by draft-cavage", 0, signature.Cavage, signature.Cavage},
		{"draft-cavage is kept", signature.Cavage, signature.RFC9421, signature.Cavage},
		{"it took RFC 9421, perhaps unread", signature.RFC9421, signature.Cavage, signature.Cavage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.Dialect = tt.signs
			host := s.ID("p:/carol").Host()
			if tt.known != 0 {
				s.Dialects.Learn(t.Context(), host, tt.known)
			}
			s.MustSend("p:/carol", mine, listen)
			if got, _ := s.Dialects.Dialect(t.Context(), host); got != tt.want {
				t.Errorf("known to take %s, want %s", got, tt.want)
			}
		})
	}
}
