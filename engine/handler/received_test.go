package handler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// row is one activity that carol sends to alice. The texts in want are the rows of alice's
// database that the activity adds (+) or removes (-).
type row struct {
	name   string
	given  func(*peertest.Scene)
	inbox  string // empty for alice's own inbox
	body   string
	want   []string
	forged string // a similar activity by another actor on carol's server; it must have no effect
}

// check sends a row's activity several times: first by other actors, then by carol, then by carol
// again. Only the first one by carol may have an effect.
func check(t *testing.T, s *peertest.Scene, r row) {
	s.Actor("p:/carol")
	if r.given != nil {
		r.given(s)
	}
	inbox := r.inbox
	if inbox == "" {
		inbox = "us:/alice/inbox"
	}
	forged := fault.Unauthenticated
	if a, err := vocab.ParseActivity([]byte(s.Long(r.body))); err == nil && a.Type == "Delete" && !a.Object.ID.Same(a.Actor) {
		forged = accepted // accepted and ignored, because the object's server does not confirm that the object is gone
	}
	for _, other := range []string{"q:/mallory", "p:/dave"} {
		expect(t, s, "signed by "+other, nil, forged, func() error { return s.Send(other, inbox, r.body) })
	}
	asMallory := strings.ReplaceAll(r.body, `"actor":"p:/carol"`, `"actor":"q:/mallory"`)
	expect(t, s, "by an actor of another origin", nil, fault.Invalid, func() error { return s.Send("q:/mallory", inbox, asMallory) })
	if r.forged != "" {
		made := s.Changes(func() { _ = s.Send("p:/dave", inbox, r.forged) }) // refused or ignored, depending on its type
		if len(made) > 0 {
			t.Errorf("by another actor of the same host: %q, want no change", made)
		}
	}
	var err error
	made := s.Changes(func() { err = s.Send("p:/carol", inbox, r.body) })
	if err != nil || !slices.Equal(made, r.want) {
		t.Errorf("err = %v, changes:\n%s\nwant:\n%s", err, strings.Join(made, "\n"), strings.Join(r.want, "\n"))
	}
	expect(t, s, "again", nil, accepted, func() error { return s.Send("p:/carol", inbox, r.body) })
	expect(t, s, "again, to everybody", nil, accepted, func() error { return s.Send("p:/carol", "us:/inbox", r.body) })
}

// accepted stands for an answer without a fault.
const accepted = fault.Kind(255)

func expect(t *testing.T, s *peertest.Scene, what string, want []string, kind fault.Kind, send func() error) {
	t.Helper()
	var err error
	made := s.Changes(func() { err = send() })
	if !slices.Equal(made, want) {
		t.Errorf("%s: changes %q, want %q", what, made, want)
	}
	if kind == accepted && err != nil || kind != accepted && fault.KindOf(err) != kind {
		t.Errorf("%s: err = %v, want kind %v", what, err, kind)
	}
}

func play(t *testing.T, rows []row) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	t.Run("rows", func(t *testing.T) {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				check(t, stage.Scene(t), r)
			})
		}
	})
}

func approving(s *peertest.Scene) {
	c := registry.DefaultUser()
	c.FollowPolicy = registry.ApprovalRequired
	if err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error { *now = c; return nil }); err != nil {
		panic(err)
	}
}

const (
	follow       = `{"id":"p:/follows/1","type":"Follow","actor":"p:/carol","object":"us:/alice"}`
	followed     = `{"id":"p:/follows/1","type":"Follow","actor":"p:/carol","object":"us:/alice"}`
	acceptOf1    = `{"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1",{"Hashtag":"as:Hashtag","focalPoint":{"@container":"@list","@id":"toot:focalPoint"},"lw":"https://lightwebbrowser.org/ns#","lwMetadata":"lw:metadata","lwTags":"lw:tags","sensitive":"as:sensitive","toot":"http://joinmastodon.org/ns#"}],"actor":"us:/alice","id":"us:/alice/activities/*","object":{"actor":"p:/carol","id":"p:/follows/1","object":"us:/alice","type":"Follow"},"to":["p:/carol"],"type":"Accept"}`
	deliveryOf1  = "+ delivery p:/carol/inbox " + acceptOf1
	aliceFollows = `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`
)

func asked(s *peertest.Scene) { s.Act("p:/carol", aliceFollows) }

func TestFollow(t *testing.T) {
	play(t, []row{
		{name: "is accepted at once", body: follow, want: []string{
			"+ relationship follower p:/carol accepted p:/follows/1",
			"+ activity inbound Follow p:/follows/1 us:/alice",
			"+ activity outbound Accept us:/alice/activities/* p:/follows/1",
			"+ actor p:/carol",
			"+ event accept.sent us:/alice/activities/* p:/follows/1 by self us:/alice",
			"+ event follow.received p:/follows/1 us:/alice by stranger p:/carol",
			"+ event relationship.changed p:/follows/1 us:/alice by stranger p:/carol",
			deliveryOf1}},
		{name: "through the shared inbox", inbox: "us:/inbox", body: follow, want: []string{
			"+ relationship follower p:/carol accepted p:/follows/1",
			"+ activity inbound Follow p:/follows/1 us:/alice",
			"+ activity outbound Accept us:/alice/activities/* p:/follows/1",
			"+ actor p:/carol",
			"+ event accept.sent us:/alice/activities/* p:/follows/1 by self us:/alice",
			"+ event follow.received p:/follows/1 us:/alice by stranger p:/carol",
			"+ event relationship.changed p:/follows/1 us:/alice by stranger p:/carol",
			deliveryOf1}},
		{name: "waits for approval", given: approving, body: follow, want: []string{
			"+ relationship follower p:/carol pending p:/follows/1",
			"+ activity inbound Follow p:/follows/1 us:/alice",
			"+ actor p:/carol",
			"+ event follow.received p:/follows/1 us:/alice by stranger p:/carol",
			"+ event relationship.changed p:/follows/1 us:/alice by stranger p:/carol"}},
		{name: "that is repeated under a new id is answered again", given: func(s *peertest.Scene) { s.Followed("p:/carol") }, body: follow, want: []string{
			"- relationship follower p:/carol accepted p:/carol/follows/f",
			"+ relationship follower p:/carol accepted p:/follows/1",
			"+ activity inbound Follow p:/follows/1 us:/alice",
			"+ activity outbound Accept us:/alice/activities/* p:/follows/1",
			"+ event accept.sent us:/alice/activities/* p:/follows/1 by self us:/alice",
			"+ event follow.received p:/follows/1 us:/alice by stranger p:/carol",
			deliveryOf1}},
		{name: "of a follower needs no approval again", given: func(s *peertest.Scene) { s.Followed("p:/carol"); approving(s) }, body: follow, want: []string{
			"- relationship follower p:/carol accepted p:/carol/follows/f",
			"+ relationship follower p:/carol accepted p:/follows/1",
			"+ activity inbound Follow p:/follows/1 us:/alice",
			"+ activity outbound Accept us:/alice/activities/* p:/follows/1",
			"+ event accept.sent us:/alice/activities/* p:/follows/1 by self us:/alice",
			"+ event follow.received p:/follows/1 us:/alice by stranger p:/carol",
			deliveryOf1}},
		{name: "of somebody else is nothing to alice", body: `{"id":"p:/follows/1","type":"Follow","actor":"p:/carol","object":"us:/users/nobody"}`},
		{name: "of something of alice's is none", body: `{"id":"p:/follows/1","type":"Follow","actor":"p:/carol","object":"us:/alice/followers"}`},
	})
}

// asksAgain is alice's second Follow of carol. It has another id than the first.
const asksAgain = `{"id":"us:/alice/activities/g","type":"Follow","actor":"us:/alice","object":"p:/carol"}`

func rejects(s *peertest.Scene) {
	s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/rejects/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`)
}

func rejected(s *peertest.Scene) {
	asked(s)
	rejects(s)
}

func TestAnswersToFollow(t *testing.T) {
	accept := func(object string) string {
		return `{"id":"p:/answers/1","type":"Accept","actor":"p:/carol","object":` + object + `}`
	}
	effect := []string{
		"- relationship following p:/carol pending us:/alice/activities/f",
		"+ relationship following p:/carol accepted us:/alice/activities/f",
		"+ activity inbound Accept p:/answers/1 us:/alice/activities/f",
		"+ event accept.received p:/answers/1 us:/alice/activities/f by contact p:/carol",
		"+ event relationship.changed p:/answers/1 us:/alice/activities/f by contact p:/carol"}
	daves := `{"id":"p:/answers/2","type":"Accept","actor":"p:/dave","object":"us:/alice/activities/f"}`
	play(t, []row{
		{name: "Accept by id", given: asked, body: accept(`"us:/alice/activities/f"`), forged: daves, want: effect},
		{name: "Accept through the shared inbox", given: asked, inbox: "us:/inbox", body: accept(`"us:/alice/activities/f"`), want: effect},
		{name: "Accept with the Follow embedded", given: asked, body: accept(aliceFollows), forged: strings.ReplaceAll(accept(aliceFollows), `"actor":"p:/carol"`, `"actor":"p:/dave"`), want: effect},
		{name: "Accept with a Follow that has no id", given: asked, body: accept(`{"type":"Follow","actor":"us:/alice","object":"p:/carol"}`),
			forged: `{"id":"p:/answers/2","type":"Accept","actor":"p:/dave","object":{"type":"Follow","actor":"us:/alice","object":"p:/carol"}}`,
			want: []string{effect[0], effect[1],
				"+ activity inbound Accept p:/answers/1",
				"+ event accept.received p:/answers/1 by contact p:/carol",
				"+ event relationship.changed p:/answers/1 by contact p:/carol"}},
		{name: "Accept with the Follow under another id", given: asked, body: accept(`{"id":"p:/follows/77","type":"Follow","actor":"us:/alice","object":"p:/carol"}`),
			forged: `{"id":"p:/answers/2","type":"Accept","actor":"p:/dave","object":{"id":"p:/follows/77","type":"Follow","actor":"us:/alice","object":"p:/carol"}}`,
			want: []string{effect[0], effect[1],
				"+ activity inbound Accept p:/answers/1 p:/follows/77",
				"+ event accept.received p:/answers/1 p:/follows/77 by contact p:/carol",
				"+ event relationship.changed p:/answers/1 p:/follows/77 by contact p:/carol"}},
		{name: "Accept with the Follow of another actor under another id", given: asked, body: accept(`{"id":"p:/follows/77","type":"Follow","actor":"us:/alice","object":"p:/dave"}`)},
		{name: "ORG-12 Accept of what was never asked", body: accept(`"us:/alice/activities/f"`)},
		{name: "ORG-12 Accept of another Follow", given: asked, body: accept(`"us:/alice/activities/g"`)},
		{name: "ORG-13 Accept of one's own request", given: func(s *peertest.Scene) {
			approving(s)
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/follows/9","type":"Follow","actor":"p:/carol","object":"us:/alice"}`)
		}, body: accept(`"p:/follows/9"`)},
		{name: "Reject", given: asked, body: `{"id":"p:/answers/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`,
			forged: `{"id":"p:/answers/2","type":"Reject","actor":"p:/dave","object":"us:/alice/activities/f"}`,
			want: []string{
				"- relationship following p:/carol pending us:/alice/activities/f",
				"+ relationship following p:/carol rejected us:/alice/activities/f",
				"+ activity inbound Reject p:/answers/1 us:/alice/activities/f",
				"+ event reject.received p:/answers/1 us:/alice/activities/f by stranger p:/carol",
				"+ event relationship.changed p:/answers/1 us:/alice/activities/f by stranger p:/carol"}},
		{name: "late Reject", given: func(s *peertest.Scene) { s.Follows("p:/carol") }, body: `{"id":"p:/answers/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`,
			want: []string{
				"- relationship following p:/carol accepted us:/alice/activities/f",
				"+ relationship following p:/carol rejected us:/alice/activities/f",
				"+ activity inbound Reject p:/answers/1 us:/alice/activities/f",
				"+ event reject.received p:/answers/1 us:/alice/activities/f by stranger p:/carol",
				"+ event relationship.changed p:/answers/1 us:/alice/activities/f by stranger p:/carol"}},
		{name: "late Reject of a Follow under an id of the sender's server, as Misskey sends it", given: func(s *peertest.Scene) { s.Follows("p:/carol") },
			body:   `{"id":"p:/answers/1","type":"Reject","actor":"p:/carol","object":{"id":"p:/follows/alice/carol","type":"Follow","actor":"us:/alice","object":"p:/carol"}}`,
			forged: `{"id":"p:/answers/2","type":"Reject","actor":"p:/dave","object":{"id":"p:/follows/alice/carol","type":"Follow","actor":"us:/alice","object":"p:/carol"}}`,
			want: []string{
				"- relationship following p:/carol accepted us:/alice/activities/f",
				"+ relationship following p:/carol rejected us:/alice/activities/f",
				"+ activity inbound Reject p:/answers/1 p:/follows/alice/carol",
				"+ event reject.received p:/answers/1 p:/follows/alice/carol by stranger p:/carol",
				"+ event relationship.changed p:/answers/1 p:/follows/alice/carol by stranger p:/carol"}},
		{name: "Reject of a Follow of somebody else's, under an id of the sender's server", given: func(s *peertest.Scene) { s.Follows("p:/carol") },
			body: `{"id":"p:/answers/1","type":"Reject","actor":"p:/carol","object":{"id":"p:/follows/alice/carol","type":"Follow","actor":"q:/eve","object":"p:/carol"}}`},
		{name: "Reject of an earlier Follow", given: func(s *peertest.Scene) { s.Follows("p:/carol") },
			body: `{"id":"p:/answers/1","type":"Reject","actor":"p:/carol","object":{"id":"us:/alice/activities/e","type":"Follow","actor":"us:/alice","object":"p:/carol"}}`},
		{name: "Accept after a Reject, with the Follow under another id", given: rejected, body: accept(`{"id":"p:/follows/77","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)},
		{name: "Accept of an earlier Follow, embedded", given: asked, body: accept(`{"id":"us:/alice/activities/e","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)},
		{name: "Accept after a Reject of the same Follow", given: rejected, body: accept(`"us:/alice/activities/f"`)},
		{name: "Accept after a Reject, of a Follow without id", given: rejected, body: accept(`{"type":"Follow","actor":"us:/alice","object":"p:/carol"}`)},
		{name: "Accept after the end of an accepted Follow", given: both(func(s *peertest.Scene) { s.Follows("p:/carol") }, rejects), body: accept(`"us:/alice/activities/f"`)},
		{name: "Accept after a Reject, of a Follow that was sent again", given: both(rejected, func(s *peertest.Scene) { s.Act("p:/carol", asksAgain) }), body: accept(`"us:/alice/activities/g"`),
			want: []string{
				"- relationship following p:/carol pending us:/alice/activities/g",
				"+ relationship following p:/carol accepted us:/alice/activities/g",
				"+ activity inbound Accept p:/answers/1 us:/alice/activities/g",
				"+ event accept.received p:/answers/1 us:/alice/activities/g by contact p:/carol",
				"+ event relationship.changed p:/answers/1 us:/alice/activities/g by contact p:/carol"}},
		{name: "Accept after a Reject, of the Follow before the one that was sent again", given: both(rejected, func(s *peertest.Scene) { s.Act("p:/carol", asksAgain) }), body: accept(`"us:/alice/activities/f"`)},
		{name: "ORG-14 Reject by a stranger", body: `{"id":"p:/answers/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`},
	})
}

const (
	toAll    = `"to":"https://www.w3.org/ns/activitystreams#Public"`
	toFans   = `"to":"p:/carol/followers"`
	toAlice  = `"to":"us:/alice"`
	note     = `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","content":"hi",` + toAll + `}`
	stored   = "+ object p:/notes/1 Note hi"
	received = "+ activity inbound Create p:/creates/1 p:/notes/1"
	inFeed   = "+ feed p:/creates/1 by p:/carol"
)

func createOf(object, addressing string) string {
	return `{"id":"p:/creates/1","type":"Create","actor":"p:/carol",` + addressing + `,"object":` + object + `}`
}

func follows(s *peertest.Scene) { s.Follows("p:/carol") }

func lets(s *peertest.Scene) {
	c := registry.DefaultUser()
	c.Messaging.AllowInsecureDM = true
	if err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error { *now = c; return nil }); err != nil {
		panic(err)
	}
}

func both(given ...func(*peertest.Scene)) func(*peertest.Scene) {
	return func(s *peertest.Scene) {
		for _, g := range given {
			g(s)
		}
	}
}

func TestCreate(t *testing.T) {
	event := func(kind, trust string) string {
		return "+ event " + kind + " p:/creates/1 p:/notes/1 by " + trust + " p:/carol"
	}
	post := func(more string) string {
		return `{"id":"p:/notes/1","type":"Note","content":"hi"` + more + `}`
	}
	play(t, []row{
		{name: "of somebody she follows", given: follows, inbox: "us:/inbox", body: createOf(note, toAll),
			forged: strings.ReplaceAll(createOf(note, toAll), `"actor":"p:/carol"`, `"actor":"p:/dave"`),
			want:   []string{stored, received, inFeed, event("create.received", "contact")}},
		{name: "for followers", given: follows, inbox: "us:/inbox", body: createOf(post(``), toFans),
			want: []string{stored, received, inFeed, event("create.received", "contact")}},
		{name: "for followers, and she is none", body: createOf(post(``), toFans)},
		{name: "for followers, and she is none, to everybody's inbox", inbox: "us:/inbox", body: createOf(post(``), toFans)},
		{name: "PRV-14 for followers, while she only asked", given: asked, inbox: "us:/inbox", body: createOf(post(``), toFans)},
		{name: "for followers, and her besides", inbox: "us:/inbox", body: createOf(post(``), toFans+`,"cc":"us:/alice"`),
			want: []string{stored, received, inFeed, event("create.received", "stranger")}},
		{name: "that mentions her", inbox: "us:/inbox", body: createOf(post(`,"tag":[{"type":"Mention","href":"us:/alice"}]`), toAll+`,"cc":["us:/alice"]`),
			want: []string{stored, received, inFeed, event("create.received", "stranger"), event("mention.received", "stranger")}},
		{name: "PRV-10 that mentions her without addressing her", given: follows, body: createOf(post(`,"tag":[{"type":"Mention","href":"us:/alice"}]`), toFans),
			want: []string{stored, received, inFeed, event("create.received", "contact")}},
		{name: "direct, of somebody she follows", given: follows, body: createOf(post(``), toAlice),
			want: []string{stored, received, inFeed, event("create.received", "contact"), event("dm.received", "contact")}},
		{name: "direct, of a stranger", body: createOf(post(``), toAlice), want: []string{stored, received, event("request.received", "stranger")}},
		{name: "direct, of a stranger, and she lets", given: lets, body: createOf(post(``), toAlice),
			want: []string{stored, received, inFeed, event("create.received", "stranger"), event("dm.received", "stranger")}},
		{name: "PRV-09 for followers of an actor who shows no such collection", given: both(func(s *peertest.Scene) {
			delete(s.Actor("p:/carol").Doc, "followers")
			s.Actor("p:/carol").Show()
		}, follows), inbox: "us:/inbox", body: createOf(post(``), toFans)},
		{name: "IN-23 for nobody, of somebody she follows", given: follows, body: createOf(post(``), `"x":1`),
			want: []string{stored, received, inFeed, event("create.received", "contact"), event("dm.received", "contact")}},
		{name: "IN-23 for nobody, of a stranger", body: createOf(post(``), `"x":1`), want: []string{stored, received, event("request.received", "stranger")}},
		{name: "PRV-08 for everybody in a hidden field is not public", body: createOf(post(``), `"bto":"as:Public"`),
			want: []string{stored, received, event("request.received", "stranger")}},
		{name: "a reply to her, named nowhere", given: func(s *peertest.Scene) { s.Posts("us:/alice/objects/1", "as:Public") }, inbox: "us:/inbox",
			body: createOf(post(`,"inReplyTo":"us:/alice/objects/1"`), toAll),
			want: []string{stored, received, event("create.received", "stranger")}},
		{name: "ORG-26 a reply to what its author cannot see", given: func(s *peertest.Scene) { s.Posts("us:/alice/objects/1", "p:/dave") }, inbox: "us:/inbox",
			body: createOf(post(`,"inReplyTo":"us:/alice/objects/1"`), toAll)},
		{name: "with the object's id only", given: both(follows, func(s *peertest.Scene) { s.Serve("p:/notes/1", note) }), inbox: "us:/inbox", body: createOf(`"p:/notes/1"`, toAll),
			want: []string{stored, received, inFeed, event("create.received", "contact")}},
		{name: "with an object's id that nobody shows", given: follows, inbox: "us:/inbox", body: createOf(`"p:/notes/1"`, toAll)},
		{name: "ORG-02 with the id of another's object", given: both(follows, func(s *peertest.Scene) {
			s.Serve("p:/notes/1", `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","content":"hi",`+toAll+`}`)
		}), inbox: "us:/inbox", body: createOf(`"p:/notes/1"`, toAll)},
		{name: "ORG-02 with the id of an object that somebody of another server is to have written, too", given: both(follows, func(s *peertest.Scene) {
			s.Serve("p:/notes/1", `{"id":"p:/notes/1","type":"Note","attributedTo":["p:/carol","q:/mallory"],"content":"hi",`+toAll+`}`)
		}), inbox: "us:/inbox", body: createOf(`"p:/notes/1"`, toAll)},
		{name: "ORG-30 with the id of an actor", given: both(follows, func(s *peertest.Scene) {
			s.Serve("p:/notes/1", `{"id":"p:/notes/1","type":"Person","attributedTo":"p:/carol"}`)
		}), inbox: "us:/inbox", body: createOf(`"p:/notes/1"`, toAll)},
		{name: "ORG-07 of a post that another one wrote", given: both(follows, func(s *peertest.Scene) {
			s.Follows("p:/dave")
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/creates/9","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","content":"secret"}}`)
		}), inbox: "us:/inbox", body: createOf(note, toAll)},
		{name: "PRV-06 hidden recipients are not kept", given: follows, body: createOf(post(`,"bcc":["us:/alice"],"attachment":[{"type":"Note","bto":"us:/alice"}]`), toAll+`,"bto":["us:/alice"]`),
			want: []string{stored, received, inFeed, event("create.received", "contact")}},
		{name: "of what was deleted before it came", given: both(follows, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`)
		}), inbox: "us:/inbox", body: createOf(note, toAll)},
	})
}

func TestCreateIsRefused(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	tests := []struct{ name, object string }{
		{"ORG-01 an object of another origin", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/mallory"}`},
		{"ORG-02 an object of another author", `{"id":"p:/notes/1","type":"Note","attributedTo":"q:/mallory"}`},
		{"ORG-02 an object of another author of the same host", `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave"}`},
		{"ORG-03 a local author", `{"id":"p:/notes/1","type":"Note","attributedTo":"us:/alice"}`},
		{"ORG-04 an object of ours", `{"id":"us:/alice/objects/1","type":"Note"}`},
		{"ORG-22 an object without id", `{"type":"Note","content":"hi"}`},
		{"ORG-30 an actor", `{"id":"p:/carol","type":"Person"}`},
		{"ORG-30 an activity", `{"id":"p:/likes/1","type":"Like"}`},
		{"ORG-30 a collection", `{"id":"p:/carol/followers","type":"OrderedCollection"}`},
		{"ORG-30 a link", `{"type":"Link","href":"p:/notes/1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			s.Follows("p:/carol")
			expect(t, s, tt.name, nil, fault.Invalid, func() error { return s.Send("p:/carol", "us:/alice/inbox", createOf(tt.object, toAll)) })
		})
	}
}

// The age of a post is the one that its author states. But a post is never newer than its arrival,
// so that a wrong clock does not keep it at the top of the feed.
func TestAPostIsNoNewerThanItsArrival(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for _, tt := range []struct {
		name, published string
		old             bool
	}{
		{"AS-10 long ago", `"1970-01-01T00:00:00Z"`, true},
		{"AS-10 in the year 9999", `"9999-12-31T23:59:59Z"`, false},
		{"AS-10 no time", `"yesterday"`, false},
		{"AS-10 a number", `1`, false},
		{"AS-10 absent", `null`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			s.Follows("p:/carol")
			dated := `"published":` + tt.published + `,`
			s.MustSend("p:/carol", "us:/inbox", createOf(strings.Replace(note, `"content"`, dated+`"content"`, 1), dated+toAll))
			for _, table := range []string{"feed", "objects"} {
				got := s.Column(t, s.Alice, `SELECT CASE WHEN published > now() + interval '1 minute' THEN 'ahead' WHEN published < now() - interval '1 day' THEN 'old' ELSE 'now' END FROM `+table)
				want := map[bool]string{true: "old", false: "now"}[tt.old]
				if len(got) != 1 || got[0] != want {
					t.Errorf("%s: %q, want %s", table, got, want)
				}
			}
		})
	}
}
