package handler_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

const moves = `{"id":"p:/moves/1","type":"Move","actor":"p:/carol","object":"p:/carol","target":"q:/carol","to":"p:/carol/followers"}`

// says adds a property to an actor's document. The actor's server serves the changed document.
func says(name, property, value string) func(*peertest.Scene) {
	return func(s *peertest.Scene) {
		a := s.Actor(name)
		a.Doc[property] = s.Long(value)
		if property == "alsoKnownAs" {
			a.Doc[property] = []any{"acct:carol@elsewhere.example", s.Long(value)}
		}
		a.Show()
	}
}

// linked makes both of carol's accounts confirm that carol moved.
var linked = both(says("q:/carol", "alsoKnownAs", "p:/carol"), says("p:/carol", "movedTo", "q:/carol"))

// grouped puts carol into two of alice's groups, and carol's other account into one of the two.
func grouped(t *testing.T) func(*peertest.Scene) {
	return func(s *peertest.Scene) {
		s.Column(t, s.Alice, `WITH g AS (INSERT INTO groups (id, name, uri, activity_uri) SELECT gen_random_uuid(), n, n, '' FROM unnest(ARRAY['family', 'friends']) n RETURNING *)
		INSERT INTO group_members (group_id, actor_uri, activity_uri) SELECT id, u, '' FROM g, unnest(ARRAY[$1, $2]) u WHERE u = $1 OR name = 'friends' RETURNING actor_uri`,
			s.Long("p:/carol"), s.Long("q:/carol"))
	}
}

func TestMove(t *testing.T) {
	const (
		undone = `+ delivery p:/carol/inbox `
		asks   = `+ delivery q:/carol/inbox {"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1",{"Hashtag":"as:Hashtag","focalPoint":{"@container":"@list","@id":"toot:focalPoint"},"lw":"https://lightwebbrowser.org/ns#","lwMetadata":"lw:metadata","lwTags":"lw:tags","sensitive":"as:sensitive","toot":"http://joinmastodon.org/ns#"}],"actor":"us:/alice","id":"us:/alice/activities/*","object":"q:/carol","to":["q:/carol"],"type":"Follow"}`
	)
	undo := ended("Undo", "us:/alice/activities/f", "us:/alice", "p:/carol")
	left := []string{
		"+ activity inbound Move p:/moves/1 p:/carol",
		"+ activity outbound Undo us:/alice/activities/* us:/alice/activities/f"}
	events := []string{
		"+ event undo.sent us:/alice/activities/* us:/alice/activities/f by self us:/alice",
		"+ event follow.sent us:/alice/activities/* q:/carol by self us:/alice",
		"+ event move.received p:/moves/1 p:/carol by stranger p:/carol",
		"+ event relationship.changed p:/moves/1 p:/carol by stranger p:/carol"}
	swapped := func(status string) []string {
		return []string{
			"- relationship following p:/carol " + status + " us:/alice/activities/f",
			"+ relationship following q:/carol pending us:/alice/activities/*",
			left[0], "+ activity outbound Follow us:/alice/activities/* q:/carol", left[1],
			"+ actor q:/carol",
			events[0], events[1], events[2], events[3],
			undone + undo, asks}
	}
	daves := strings.NewReplacer("moves/1", "moves/2", `"actor":"p:/carol"`, `"actor":"p:/dave"`).Replace(moves)
	play(t, []row{
		{name: "that both accounts confirm", given: both(follows, linked), inbox: "us:/inbox", body: moves, forged: daves, want: swapped("accepted")},
		{name: "to her own inbox", given: both(follows, linked), body: moves, want: swapped("accepted")},
		{name: "of who is in groups, one of which has the new account already", given: both(follows, linked, grouped(t)), body: moves, want: slices.Concat(
			swapped("accepted")[:1], []string{"- member p:/carol of family", "- member p:/carol of friends"}, swapped("accepted")[1:], []string{"+ member q:/carol of family"})},
		{name: "of who is in groups, to an account that blocks her", given: both(follows, linked, grouped(t), func(s *peertest.Scene) {
			s.MustSend("q:/carol", "us:/alice/inbox", `{"id":"q:/blocks/1","type":"Block","actor":"q:/carol","object":"us:/alice"}`)
		}), body: moves, want: slices.Concat(
			swapped("accepted")[:1], []string{"- member p:/carol of family", "- member p:/carol of friends"}, swapped("accepted")[1:])},
		{name: "of who has not answered yet", given: both(asked, linked), body: moves, want: swapped("pending")},
		{name: "to an account that she follows already", given: both(follows, func(s *peertest.Scene) { s.Follows("q:/carol") }, linked), body: moves, want: []string{
			"- relationship following p:/carol accepted us:/alice/activities/f",
			left[0], left[1], events[0], events[2], events[3], undone + undo}},
		{name: "ORG-23 without a link back", given: both(follows, says("p:/carol", "movedTo", "q:/carol")), body: moves},
		{name: "ORG-23 with a link back to somebody else", given: both(follows, linked, says("q:/carol", "alsoKnownAs", "p:/dave")), body: moves},
		{name: "ORG-23 by an account that has not moved", given: both(follows, says("q:/carol", "alsoKnownAs", "p:/carol")), body: moves},
		{name: "ORG-23 by an account that moved elsewhere", given: both(follows, linked, says("p:/carol", "movedTo", "q:/eve")), body: moves},
		{name: "ORG-23 back, in a loop", given: both(follows, linked, says("q:/carol", "movedTo", "p:/carol")), body: moves},
		{name: "ORG-23 to alice herself", given: both(follows, says("p:/carol", "movedTo", "us:/alice")), body: strings.Replace(moves, `"target":"q:/carol"`, `"target":"us:/alice"`, 1)},
		{name: "to an account that is gone", given: both(follows, linked, func(s *peertest.Scene) { s.Actor("q:/carol").Gone() }), body: moves},
		{name: "to an account on a blocked host", given: both(follows, linked, says("p:/carol", "movedTo", "https://blocked.example/carol"), func(s *peertest.Scene) { s.Block("blocked.example") }),
			body: strings.Replace(moves, "q:/carol", "https://blocked.example/carol", 1)},
		{name: "to an account that she blocks", given: both(follows, linked, func(s *peertest.Scene) { s.Act("q:/carol", strings.ReplaceAll(blocks, "p:/carol", "q:/carol")) }), body: moves},
		{name: "of a follower of hers", given: both(func(s *peertest.Scene) { s.Followed("p:/carol") }, linked), body: moves},
		{name: "of who is nothing to her", given: linked, body: moves},
		{name: "of who rejected her", given: both(asked, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/rejects/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`)
		}, linked), body: moves},
	})
}

func TestAMoveThatIsMalformedIsRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	follows(s)
	for what, change := range map[string][2]string{
		"of another actor":  {`"object":"p:/carol"`, `"object":"q:/dave"`},
		"to nowhere":        {`"target":"q:/carol",`, ``},
		"to itself":         {`"target":"q:/carol"`, `"target":"p:/carol"`},
		"to everybody":      {`"target":"q:/carol"`, `"target":"as:Public"`},
		"of several actors": {`"object":"p:/carol"`, `"object":["p:/carol","p:/dave"]`},
	} {
		expect(t, s, what, nil, fault.Invalid, func() error { return s.Send("p:/carol", "us:/inbox", strings.Replace(moves, change[0], change[1], 1)) })
	}
}

func TestAnAccountMovesOnceInThirtyDays(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	both(follows, linked)(s)
	s.MustSend("p:/carol", "us:/inbox", moves)
	s.Follows("p:/carol")
	again := func(id string) string { return strings.Replace(moves, "moves/1", "moves/"+id, 1) }
	s.Later(29 * 24 * time.Hour)
	expect(t, s, "again", nil, accepted, func() error { return s.Send("p:/carol", "us:/inbox", again("2")) })

	both(says("q:/eve", "alsoKnownAs", "q:/carol"), says("q:/carol", "movedTo", "q:/eve"))(s)
	on := `{"id":"q:/moves/1","type":"Move","actor":"q:/carol","object":"q:/carol","target":"q:/eve"}`
	expect(t, s, "the new account moves on", nil, accepted, func() error { return s.Send("q:/carol", "us:/inbox", on) })

	delete(s.Actor("q:/carol").Doc, "movedTo")
	s.Actor("q:/carol").Show()
	s.Later(2 * 24 * time.Hour)
	s.MustSend("p:/carol", "us:/inbox", again("3"))
	if n := s.Column(t, s.Alice, `SELECT count(*) FROM relationships WHERE type = 'following'`); n[0] != "1" {
		t.Errorf("after 31 days she follows %s accounts, want the new one alone", n[0])
	}
}

// A Move needs a fresh copy of its target actor. If the target's server does not answer, the
// engine answers Unavailable. The Move takes effect when it is sent again.
func TestAMoveWhoseTargetDoesNotAnswerComesAgain(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	both(follows, linked)(s)
	if _, err := s.Actors.Resolve(t.Context(), s.ID("q:/carol")); err != nil { // so that the engine has an earlier copy of the target
		t.Fatal(err)
	}
	s.Answer("q:/carol", http.StatusServiceUnavailable)
	expect(t, s, "while the target is away", nil, fault.Unavailable, func() error { return s.Send("p:/carol", "us:/inbox", moves) })
	s.Actor("q:/carol").Show()
	s.Later(2 * time.Minute)
	s.MustSend("p:/carol", "us:/inbox", moves)
	if got := s.Column(t, s.Alice, `SELECT actor_uri FROM relationships WHERE type = 'following'`); len(got) != 1 || got[0] != s.Long("q:/carol") {
		t.Errorf("she follows %q, want the new account", got)
	}
	if got, err := s.Store.Instance.Acquaintances.Users(t.Context(), s.ID("q:/carol"), true); err != nil || len(got) != 1 {
		t.Errorf("users that the new account may concern: %v, %v; want alice", got, err)
	}
}

func TestNobodyIsAskedAboutAMoveThatConcernsNobody(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	linked(s)
	s.Followed("p:/carol")
	expect(t, s, "of a follower", nil, accepted, func() error { return s.Send("p:/carol", "us:/inbox", moves) })
	if n := s.Asked("q:/carol"); n != 0 {
		t.Errorf("the target's server was asked %d times, want never", n)
	}
}

// When somebody puts a topic into another category, NodeBB sends a Move of the topic.
func TestAMoveOfSomethingElseIsIgnored(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	both(follows, linked)(s)
	before := s.Reached("p:") + s.Reached("q:")
	for _, target := range []string{`"p:/category/2"`, `"q:/carol"`} {
		body := `{"id":"p:/moves/1","type":"Move","actor":"p:/carol","object":"p:/topic/1","origin":"p:/category/1","target":` + target + `,"to":"as:Public","cc":"p:/carol/followers"}`
		expect(t, s, "a topic to "+target, nil, accepted, func() error { return s.Send("p:/carol", "us:/inbox", body) })
	}
	if n := s.Reached("p:") + s.Reached("q:"); n != before {
		t.Errorf("other servers were asked %d times, want never", n-before)
	}
}
