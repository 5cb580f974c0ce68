package inbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// passed is carol's reply to erin, who is on another server. erin forwards the reply to her
// followers.
const passed = `{"id":"p:/acts/1","type":"Create","actor":"p:/carol","to":"as:Public","cc":["us:/alice","q:/erin/followers"],
	"object":{"id":"p:/replies/1","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"hi","inReplyTo":"q:/notes/1"}}`

const (
	boostOf5 = `{"id":"p:/acts/1","type":"Announce","actor":"p:/carol","to":"as:Public","object":"q:/notes/5"}`
	pinned   = `{"id":"p:/acts/1","type":"Add","actor":"p:/carol","to":"as:Public","object":"p:/notes/6","target":"p:/carol/featured"}`
)

const removed = `{"id":"p:/acts/2","type":"Delete","actor":"p:/carol","to":"q:/erin/followers","object":"p:/replies/1"}`

// came holds the changes that occur when the engine accepts passed.
var came = []string{"+ object p:/replies/1 Note hi", "+ activity inbound Create p:/acts/1 p:/replies/1", "+ feed p:/acts/1 by p:/carol",
	"+ event create.received p:/acts/1 p:/replies/1 by stranger p:/carol"}

// went holds the changes of the Delete that the engine itself makes of the reply.
var went = []string{"- object p:/replies/1 Note hi", "- feed p:/acts/1 by p:/carol", "+ object p:/replies/1 Tombstone",
	"+ activity inbound Delete p:/replies/1#delete p:/replies/1", "+ event delete.received p:/replies/1#delete p:/replies/1 by stranger p:/carol", "+ tombstones 1"}

// changed returns an activity that change() changes after its proof was made.
func changed(s *peertest.Scene, by, body string, change func(vocab.Doc)) []byte {
	d, err := vocab.ParseDoc(s.Proven(by, body))
	if err != nil {
		panic("inbox_test: " + err.Error())
	}
	change(d)
	return d.JSON()
}

func TestActivitiesThatArePassedOn(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	plain := func(body string) func(*peertest.Scene) []byte {
		return func(s *peertest.Scene) []byte { return []byte(s.Long(body)) }
	}
	proven := func(by, body string) func(*peertest.Scene) []byte {
		return func(s *peertest.Scene) []byte { return s.Proven(by, body) }
	}
	aged := func(body string) func(*peertest.Scene) []byte {
		return func(s *peertest.Scene) []byte { return s.ProvenAt("p:/carol", body, s.Now().Add(-49*time.Hour)) }
	}
	boosted := func(s *peertest.Scene) {
		s.Follows("p:/carol")
		s.Serve("q:/notes/5", `{"id":"q:/notes/5","type":"Note","attributedTo":"q:/eve","to":"as:Public","content":"hi"}`)
	}
	deleted := func(s *peertest.Scene) { s.Answer("p:/acts/1", http.StatusGone) }
	hidden := strings.Replace(passed, `"to":"as:Public",`, "", 1) // without it, the Create does not say that the reply is public
	altered := func(change func(vocab.Doc)) func(*peertest.Scene) []byte {
		return func(s *peertest.Scene) []byte { return changed(s, "p:/carol", passed, change) }
	}
	shown := func(body string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.Serve("p:/acts/1", body) }
	}
	forged := strings.Replace(passed, `"hi"`, `"buy"`, 1)
	lds := strings.Replace(passed, `"object"`, `"signature":{"type":"RsaSignature2017"},"object"`, 1)
	held := func(s *peertest.Scene) { s.MustSend("p:/carol", mine, passed) }
	status := func(name string, code int) func(*peertest.Scene) {
		return func(s *peertest.Scene) { held(s); s.Answer(name, code) }
	}
	for _, tt := range []struct {
		name  string
		given func(*peertest.Scene)
		from  string // if empty, q:/erin
		inbox string // if empty, mine
		body  func(*peertest.Scene) []byte
		kind  fault.Kind
		code  string
		want  []string
		// the documents that the engine fetches, among those that it could fetch
		asked []string
	}{
		{name: "FE-06 with its author's proof", body: proven("p:/carol", passed), kind: accepted, want: came},
		{name: "FE-06 to the shared inbox", inbox: shared, body: proven("p:/carol", passed), kind: accepted, want: came},
		{name: "with a proof, by another actor of the same server", from: "p:/dave", body: proven("p:/carol", passed), kind: accepted, want: came},
		{name: "with a Linked Data signature besides", body: altered(func(d vocab.Doc) { d["signature"] = vocab.Doc{"type": "RsaSignature2017"} }), kind: accepted, want: came},

		{name: "with an old proof, as its author's server still shows it", given: shown(passed), body: aged(passed), kind: accepted, want: came, asked: []string{"p:/acts/1"}},
		{name: "with an old proof, when its author has deleted it", given: deleted, body: aged(passed), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/acts/1"}},
		{name: "with an old proof, of a public reply in a Create that is not", given: deleted, body: aged(hidden), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/acts/1"}},
		{name: "with an old proof, of what is not public", given: deleted, body: aged(strings.Replace(hidden, `"to":"as:Public"`, `"to":"us:/alice"`, 1)), kind: accepted,
			want: []string{"+ object p:/replies/1 Note hi", "+ activity inbound Create p:/acts/1 p:/replies/1", "+ event request.received p:/acts/1 p:/replies/1 by stranger p:/carol"}},
		{name: "with an old proof, a boost that its author's server still shows", inbox: shared, given: func(s *peertest.Scene) { boosted(s); s.Serve("p:/acts/1", boostOf5) }, body: aged(boostOf5), kind: accepted,
			want: []string{"+ object q:/notes/5 Note hi", "+ activity inbound Announce p:/acts/1 q:/notes/5", "+ reaction p:/carol Announce q:/notes/5 p:/acts/1", "+ feed p:/acts/1 by p:/carol",
				"+ event announce.received p:/acts/1 q:/notes/5 by contact p:/carol"}, asked: []string{"p:/acts/1"}},
		{name: "with an old proof, a boost that its author took back", inbox: shared, given: func(s *peertest.Scene) { boosted(s); deleted(s) }, body: aged(boostOf5), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/acts/1"}},
		{name: "with an old proof, a pin that its author took back", inbox: shared, given: func(s *peertest.Scene) { boosted(s); deleted(s) }, body: aged(pinned), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/acts/1"}},
		{name: "D7 as its author's server shows it", given: shown(passed), body: plain(forged), kind: accepted, want: came, asked: []string{"p:/acts/1"}},
		{name: "D7 by another actor of the same server", given: shown(passed), from: "p:/dave", body: plain(forged), kind: accepted, want: came, asked: []string{"p:/acts/1"}},
		{name: "SIG-33 with a Linked Data signature, which counts for nothing", given: shown(passed), body: plain(strings.Replace(lds, `"hi"`, `"buy"`, 1)), kind: accepted, want: came, asked: []string{"p:/acts/1"}},
		{name: "SIG-02 that its author's server does not show", body: plain(passed), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/acts/1"}},
		{name: "SIG-33 that it does not show, with a Linked Data signature", body: plain(lds), kind: accepted, asked: []string{"p:/acts/1"}},
		{name: "that its author's server shows as another one", given: shown(strings.Replace(passed, "p:/acts/1", "p:/acts/3", 1)), body: plain(passed), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/acts/1"}},
		{name: "SIG-02 that its author's server shows as somebody else's", given: shown(strings.Replace(passed, `"actor":"p:/carol"`, `"actor":"p:/dave"`, 1)), body: plain(passed), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/acts/1"}},
		{name: "when its author's server is down", given: func(s *peertest.Scene) { s.Answer("p:/acts/1", http.StatusServiceUnavailable) }, body: plain(passed), kind: fault.Unavailable, asked: []string{"p:/acts/1"}},
		{name: "ORG-10 under the id of another server", given: func(s *peertest.Scene) { s.Serve("q:/acts/1", passed) }, body: plain(strings.Replace(passed, "p:/acts/1", "q:/acts/1", 1)), kind: fault.Unauthenticated, code: "foreign_key"},
		{name: "ORG-10 proven, under the id of another server", body: proven("p:/carol", strings.Replace(passed, "p:/acts/1", "q:/acts/1", 1)), kind: fault.Invalid, code: "foreign_id"},
		{name: "SIG-34 proven, with an object of another's", body: proven("p:/carol", strings.Replace(passed, `"attributedTo":"p:/carol"`, `"attributedTo":"p:/dave"`, 1)), kind: fault.Invalid, code: "foreign_object"},
		{name: "ORG-22 about something without id", body: proven("p:/carol", strings.Replace(passed, `"id":"p:/replies/1",`, "", 1)), kind: fault.Invalid},

		{name: "SIG-34 with a proof by who passes it on", given: shown(passed), body: proven("q:/erin", passed), kind: fault.Unauthenticated, code: "foreign_proof"},
		{name: "SIG-34 with a proof by another actor of its author's server", given: shown(passed), body: proven("p:/dave", passed), kind: fault.Unauthenticated, code: "foreign_proof"},
		{name: "SIG-34 with two proofs", given: shown(passed), body: altered(func(d vocab.Doc) { d["proof"] = []any{d["proof"], d["proof"]} }), kind: fault.Unauthenticated, code: "proof_not_one"},
		{name: "SIG-34 with another purpose", given: shown(passed), body: altered(func(d vocab.Doc) { d.Sub("proof")["proofPurpose"] = "authentication" }), kind: fault.Unauthenticated, code: "proof_purpose"},
		{name: "SIG-34b with an option that was added", given: shown(passed), body: altered(func(d vocab.Doc) { d.Sub("proof")["nonce"] = "x" }), kind: fault.Unauthenticated, code: "proof_wrong"},
		{name: "with other words than were proven", given: shown(passed), body: altered(func(d vocab.Doc) { d.Sub("object")["content"] = "buy" }), kind: fault.Unauthenticated, code: "proof_wrong"},
		{name: "with a proof by a key that its author lists no more", given: func(s *peertest.Scene) {
			carol := s.Actor("p:/carol")
			delete(carol.Doc, "assertionMethod")
			carol.Show()
			shown(passed)(s)
		}, body: proven("p:/carol", forged), kind: accepted, want: came, asked: []string{"p:/acts/1"}},
		{name: "with a proof of another kind", given: shown(passed), body: altered(func(d vocab.Doc) { d.Sub("proof")["cryptosuite"] = "x"; d.Sub("object")["content"] = "buy" }), kind: accepted, want: came, asked: []string{"p:/acts/1"}},

		{name: "SIG-29 as a local actor's", body: plain(strings.ReplaceAll(passed, "p:/carol", "us:/alice")), kind: fault.Unauthenticated, code: "local_actor"},
		{name: "that names alice nowhere, to her inbox", body: proven("p:/carol", strings.Replace(passed, `"us:/alice",`, "", 1)), kind: accepted},

		{name: "SG-18 a Delete with a proof", given: held, body: proven("p:/carol", removed), kind: accepted, want: []string{"- object p:/replies/1 Note hi", "- feed p:/acts/1 by p:/carol", "+ object p:/replies/1 Tombstone",
			"+ activity inbound Delete p:/acts/2 p:/replies/1", "+ event delete.received p:/acts/2 p:/replies/1 by stranger p:/carol", "+ tombstones 1"}},
		{name: "SG-18 a Delete of what its server says is gone", given: status("p:/replies/1", http.StatusGone), body: plain(removed), kind: accepted, want: went, asked: []string{"p:/replies/1"}},
		{name: "a Delete of what its server shows as a Tombstone", given: func(s *peertest.Scene) {
			held(s)
			s.Serve("p:/replies/1", `{"id":"p:/replies/1","type":"Tombstone"}`)
		}, body: plain(removed), kind: accepted, want: went, asked: []string{"p:/replies/1"}},
		{name: "SIG-32 a Delete of what its server does not show", given: status("p:/replies/1", http.StatusNotFound), body: plain(removed), kind: accepted, asked: []string{"p:/replies/1"}},
		{name: "SIG-32 a Delete of what is still there", given: func(s *peertest.Scene) {
			held(s)
			s.Serve("p:/replies/1", `{"id":"p:/replies/1","type":"Note","attributedTo":"p:/carol"}`)
		}, body: plain(removed), kind: fault.Unauthenticated, code: "foreign_key", asked: []string{"p:/replies/1"}},
		{name: "a Delete whose object's server is down", given: status("p:/replies/1", http.StatusServiceUnavailable), body: plain(removed), kind: fault.Unavailable, asked: []string{"p:/replies/1"}},
		{name: "ORG-08 a Delete in another's name of what is gone", given: status("p:/replies/1", http.StatusGone), body: plain(strings.Replace(removed, "p:/carol", "p:/dave", 1)), kind: accepted, asked: []string{"p:/replies/1"}},
		{name: "ORG-08 a Delete of what another server has", given: status("p:/replies/1", http.StatusGone), from: "p:/dave", body: plain(strings.Replace(removed, "p:/carol", "q:/erin", 1)), kind: fault.Unauthenticated, code: "foreign_key"},
		{name: "a Delete of a part of a document", given: status("p:/replies/1", http.StatusGone), body: plain(strings.Replace(removed, `"p:/replies/1"`, `"p:/replies/1#a"`, 1)), kind: fault.Unauthenticated, code: "foreign_key"},
		{name: "SIG-32 a Delete of an actor who is there", given: held, body: plain(strings.Replace(removed, "p:/replies/1", "p:/carol", 1)), kind: fault.Unauthenticated, code: "foreign_key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Actor("p:/carol")
			if tt.given != nil {
				tt.given(s)
			}
			from, inbox, body := tt.from, tt.inbox, tt.body(s)
			if from == "" {
				from = "q:/erin"
			}
			if inbox == "" {
				inbox = mine
			}
			var err error
			for range 2 { // the second arrival changes nothing; the cached state of the server does not matter
				expect(t, s, tt.want, tt.kind, func() error { err = s.Pass(from, inbox, body); return err })
				if e := fault.Of(err); tt.code != "" && (e == nil || e.Code != tt.code) {
					t.Errorf("err = %v, want code %s", err, tt.code)
				}
				tt.want = nil
			}
			for _, what := range []string{"p:/acts/1", "p:/acts/2", "p:/replies/1", "q:/acts/1"} {
				n := s.Asked(what)
				if wanted := strings.Contains(strings.Join(tt.asked, " "), what); wanted != (n > 0) || n > 2 {
					t.Errorf("asked %d times for %s, want it asked for: %v", n, what, wanted)
				}
			}
		})
	}
}

// An activity needs no proof if its actor signs the request. If it has a proof, the proof must be
// valid and by the actor.
func TestProofsBesideTheActorsOwnSignature(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	by := func(who string) func(*peertest.Scene) []byte {
		return func(s *peertest.Scene) []byte { return s.Proven(who, passed) }
	}
	with := func(change func(vocab.Doc)) func(*peertest.Scene) []byte {
		return func(s *peertest.Scene) []byte { return changed(s, "p:/carol", passed, change) }
	}
	for _, tt := range []struct {
		name string
		body func(*peertest.Scene) []byte
		code string // the code of the refusal; empty if the activity is accepted
	}{
		{"FE-06 its own", by("p:/carol"), ""},
		{"SIG-34 another actor's", by("p:/dave"), "foreign_proof"},
		{"SIG-34 another server's", by("q:/erin"), "foreign_proof"},
		{"SIG-34 two", with(func(d vocab.Doc) { d["proof"] = []any{d["proof"], d["proof"]} }), "proof_not_one"},
		{"SIG-34 for another purpose", with(func(d vocab.Doc) { d.Sub("proof")["proofPurpose"] = "authentication" }), "proof_purpose"},
		{"SIG-34b expired", with(func(d vocab.Doc) { d.Sub("proof")["expires"] = "2024-01-01T00:00:00Z" }), "proof_expired"},
		{"of other words", with(func(d vocab.Doc) { d.Sub("object")["name"] = "x" }), "proof_wrong"},
		{"of a kind that is not known here", with(func(d vocab.Doc) { d.Sub("proof")["cryptosuite"] = "bbs-2023" }), ""},
		{"by a key that cannot be found", func(s *peertest.Scene) []byte {
			carol := s.Actor("p:/carol")
			delete(carol.Doc, "assertionMethod")
			carol.Show()
			return s.Proven("p:/carol", passed)
		}, ""},
		{"by a key whose server cannot be asked now", func(s *peertest.Scene) []byte {
			s.Answer("p:/keys/1", http.StatusServiceUnavailable)
			carol := s.Actor("p:/carol")
			carol.Keys.Ed25519.ID = s.Long("p:/keys/1")
			return s.Proven("p:/carol", passed)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Dialect = signature.Cavage // the request is signed with another key than the proofs
			body := tt.body(s)
			want, kind := came, accepted
			if tt.code != "" {
				want, kind = nil, fault.Unauthenticated
			}
			var err error
			expect(t, s, want, kind, func() error { err = s.Pass("p:/carol", mine, body); return err })
			if e := fault.Of(err); tt.code != "" && (e == nil || e.Code != tt.code) {
				t.Errorf("err = %v, want code %s", err, tt.code)
			}
		})
	}
}

// FE-06: alice follows erin and gets other actors' answers to erin. They enter erin's thread, but
// not the feed.
func TestAThreadIsCompletedByWhoIsFollowed(t *testing.T) {
	s := newScene(t)
	s.Follows("q:/erin")
	toErin := strings.Replace(passed, `"us:/alice",`, "", 1)
	none := func(what string, send func() error) { t.Log(what); expect(t, s, nil, accepted, send) }
	none("a reply to what alice does not have", func() error { return s.Pass("q:/erin", shared, s.Proven("p:/carol", toErin)) })
	s.MustSend("q:/erin", shared, `{"id":"q:/acts/1","type":"Create","actor":"q:/erin","to":["as:Public","q:/erin/followers"],"object":{"id":"q:/notes/1","type":"Note","attributedTo":"q:/erin","to":"as:Public","content":"well?"}}`)
	none("somebody else passes it on", func() error { return s.Pass("q:/mallory", shared, s.Proven("p:/carol", toErin)) })
	none("it does not name erin's followers", func() error {
		return s.Pass("q:/erin", shared, s.Proven("p:/carol", strings.Replace(toErin, "q:/erin/followers", "q:/notes/1", 1)))
	})
	none("it is for carol's followers", func() error {
		return s.Pass("q:/erin", shared, s.Proven("p:/carol", strings.NewReplacer("as:Public", "p:/carol/followers", "q:/erin/followers", "q:/notes/1").Replace(toErin)))
	})
	expect(t, s, []string{"+ object p:/replies/1 Note hi", "+ activity inbound Create p:/acts/1 p:/replies/1", "+ event create.received p:/acts/1 p:/replies/1 by stranger p:/carol"},
		accepted, func() error { return s.Pass("q:/erin", shared, s.Proven("p:/carol", toErin)) })
	expect(t, s, []string{"- object p:/replies/1 Note hi", "+ object p:/replies/1 Tombstone", "+ activity inbound Delete p:/acts/2 p:/replies/1",
		"+ event delete.received p:/acts/2 p:/replies/1 by stranger p:/carol", "+ tombstones 1"},
		accepted, func() error { return s.Pass("q:/erin", shared, s.Proven("p:/carol", removed)) })
}

// SEE-05: an answer that is not public is addressed to erin's followers. alice follows erin, so
// she gets it.
func TestAThreadIsCompletedForFollowers(t *testing.T) {
	s := newScene(t)
	s.Follows("q:/erin")
	toErin := strings.ReplaceAll(strings.Replace(passed, `"us:/alice",`, "", 1), "as:Public", "p:/carol/followers")
	s.MustSend("q:/erin", shared, `{"id":"q:/acts/1","type":"Create","actor":"q:/erin","to":["as:Public","q:/erin/followers"],"object":{"id":"q:/notes/1","type":"Note","attributedTo":"q:/erin","to":"as:Public","content":"well?"}}`)
	expect(t, s, []string{"+ object p:/replies/1 Note hi", "+ activity inbound Create p:/acts/1 p:/replies/1", "+ event create.received p:/acts/1 p:/replies/1 by stranger p:/carol"},
		accepted, func() error { return s.Pass("q:/erin", shared, s.Proven("p:/carol", toErin)) })
}

// SIG-32: an unsigned Delete proves only that its object is gone. Its id stays free for another
// activity.
func TestADeleteThatIsPassedOnTakesNoId(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/carol", mine, passed)
	s.Answer("p:/replies/1", http.StatusGone)
	expect(t, s, went, accepted, func() error {
		return s.Send("q:/mallory", mine, strings.Replace(removed, "p:/acts/2", "p:/listens/1", 1))
	})
	expect(t, s, listened, accepted, func() error { return s.Send("p:/carol", mine, listen) })
}

func TestActorsWhoseDeletionIsPassedOn(t *testing.T) {
	for name, tell := range map[string]func(*peertest.Scene) error{
		"SG-18 its server says so": func(s *peertest.Scene) error {
			s.Answer("p:/carol", http.StatusGone)
			return s.Send("q:/erin", shared, strings.Replace(removed, "p:/replies/1", "p:/carol", 1))
		},
		"it has proven it, and its server says so": func(s *peertest.Scene) error {
			s.Answer("p:/carol", http.StatusGone)
			return s.Pass("q:/erin", shared, s.Proven("p:/carol", strings.Replace(removed, "p:/replies/1", "p:/carol", 1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.MustSend("p:/carol", mine, passed)
			if err := tell(s); err != nil {
				t.Fatal(err)
			}
			if left := s.Column(t, s.Alice, `SELECT uri FROM objects WHERE raw ->> 'type' <> 'Tombstone'`); len(left) > 0 {
				t.Errorf("left of the actor: %q", left)
			}
			expect(t, s, nil, fault.Unauthenticated, func() error { return s.Send("p:/carol", mine, listen) })
		})
	}
}

// FRS-03: the engine refuses a forwarded proof of an account's Delete, because the account may
// have come back after the Delete.
func TestAnOldProofBuriesNobody(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/carol", mine, passed)
	expect(t, s, nil, fault.Unauthenticated, func() error {
		return s.Pass("q:/erin", shared, s.Proven("p:/carol", strings.Replace(removed, "p:/replies/1", "p:/carol", 1)))
	})
	expect(t, s, listened, accepted, func() error { return s.Send("p:/carol", mine, listen) })
}

func TestNobodyIsAskedForWhatBlockedHostsHaveToDoWith(t *testing.T) {
	for name, host := range map[string]string{"the author's": "127.0.0.2", "of who passes it on": "127.0.0.3"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Block(host)
			expect(t, s, nil, fault.Forbidden, func() error { return s.Send("q:/erin", mine, passed) })
			expect(t, s, nil, fault.Forbidden, func() error { return s.Pass("q:/erin", mine, s.Proven("p:/carol", passed)) })
			if n := s.Asked("p:/carol") + s.Asked("p:/acts/1") + s.Asked("q:/erin"); n > 0 {
				t.Errorf("%d requests, want none", n)
			}
		})
	}
}

// ORG-28: alice blocks an actor. Its activities have no effect when another actor forwards them
// either.
func TestABlockedActorIsNotHeardThroughOthers(t *testing.T) {
	s := newScene(t)
	s.Act("p:/carol", `{"id":"us:/alice/activities/b","type":"Block","actor":"us:/alice","object":"p:/carol"}`)
	expect(t, s, nil, accepted, func() error { return s.Pass("q:/erin", mine, s.Proven("p:/carol", passed)) })
}

// NET-00: actors of one domain forward activities without proof. The engine asks other servers
// about a limited number of them.
func TestWhatIsPassedOnWithoutProofHasAnEnd(t *testing.T) {
	s := newScene(t)
	s.Actor("p:/carol")
	n := 0
	for ; n < 150; n++ {
		err := s.Send("q:/erin", mine, strings.ReplaceAll(listen, "p:/listens/1", fmt.Sprintf("p:/listens/%d", n)))
		if fault.KindOf(err) == fault.RateLimited {
			break
		}
	}
	if n < 100 || n == 150 || s.Asked("p:/carol") > 0 {
		t.Fatalf("asked about %d activities at once, want 100, and %d times for an actor", n, s.Asked("p:/carol"))
	}
	s.MustSend("p:/carol", mine, listen)
	if err := s.Pass("q:/erin", mine, s.Proven("p:/carol", passed)); err != nil {
		t.Errorf("with a proof: %v", err)
	}
}

// SIG-29: the engine refuses a request that comes from outside and is signed by a user of this
// server.
func TestALocalActorPassesNothingOnFromOutside(t *testing.T) {
	s := newScene(t)
	keys, err := s.Keys.Keys(s.Alice)
	if err != nil {
		t.Fatal(err)
	}
	body := s.Proven("p:/carol", passed)
	r := httptest.NewRequest(http.MethodPost, s.Long(mine), strings.NewReader(string(body)))
	r.Header.Set("Content-Type", vocab.ActivityJSON)
	if err := signature.Sign(r, body, keys.RSA, signature.RFC9421, s.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Inbox.Receive(t.Context(), r, body, s.Alice); fault.KindOf(err) != fault.Unauthenticated || fault.Of(err).Code != "local_actor" {
		t.Errorf("err = %v, want it refused", err)
	}
}
