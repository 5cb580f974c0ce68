package handler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

// Alice's outbox stores and delivers alice's activities. The test expects the further changes that
// the handlers make.
func TestSent(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const (
		likes  = `{"id":"us:/alice/activities/l","type":"Like","actor":"us:/alice","object":"p:/notes/1"}`
		boosts = `{"id":"us:/alice/activities/b","type":"Announce","actor":"us:/alice","object":"p:/notes/1"}`
	)
	requested := both(approving, func(s *peertest.Scene) { s.Followed("p:/carol") })
	does := func(body string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.Act("", body) }
	}
	act := func(kind, object string) string {
		return `{"id":"us:/alice/activities/1","type":"` + kind + `","actor":"us:/alice","object":` + object + `}`
	}
	mine := func(content string) string {
		return `{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public","bto":"p:/dave","content":"` + content + `"}`
	}
	tests := []struct {
		name         string
		given        func(*peertest.Scene)
		target, body string
		kind         fault.Kind
		want         []string
	}{
		{"Follow", nil, "p:/carol", aliceFollows, accepted, []string{"+ relationship following p:/carol pending us:/alice/activities/f", "+ actor p:/carol"}},
		{"Follow again takes nothing away", follows, "p:/carol", act("Follow", `"p:/carol"`), accepted, []string{
			"- relationship following p:/carol accepted us:/alice/activities/f", "+ relationship following p:/carol accepted us:/alice/activities/1"}},
		{"Follow after a Reject", both(asked, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/rejects/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`)
		}), "p:/carol", act("Follow", `"p:/carol"`), accepted, []string{
			"- relationship following p:/carol rejected us:/alice/activities/f", "+ relationship following p:/carol pending us:/alice/activities/1"}},
		{"Undo Follow", follows, "p:/carol", act("Undo", aliceFollows), accepted, []string{"- relationship following p:/carol accepted us:/alice/activities/f"}},
		{"Accept", requested, "p:/carol", act("Accept", `"p:/carol/follows/f"`), accepted, []string{
			"- relationship follower p:/carol pending p:/carol/follows/f", "+ relationship follower p:/carol accepted p:/carol/follows/f"}},
		{"Accept of who does not ask any more", nil, "p:/carol", act("Accept", `"p:/carol/follows/f"`), fault.Conflict, nil},
		{"Reject", requested, "p:/carol", act("Reject", `"p:/carol/follows/f"`), accepted, []string{"- relationship follower p:/carol pending p:/carol/follows/f"}},
		{"Create", nil, "", act("Create", mine("hi")), accepted, []string{"+ object us:/alice/objects/1 Note hi", "+ feed us:/alice/activities/1 by us:/alice"}},
		{"Update", posted("as:Public"), "", act("Update", mine("new")), accepted, []string{"- object us:/alice/objects/1 Note mine", "+ object us:/alice/objects/1 Note new"}},
		{"Update of what was deleted meanwhile", both(posted("as:Public"), does(`{"id":"us:/alice/activities/d","type":"Delete","actor":"us:/alice","object":{"id":"us:/alice/objects/1","type":"Tombstone"}}`)),
			"", act("Update", mine("new")), fault.Conflict, nil},
		{"Update of herself", nil, "", act("Update", `{"id":"us:/alice","type":"Person"}`), accepted, nil},
		{"Delete", posted("as:Public"), "", act("Delete", `{"id":"us:/alice/objects/1","type":"Tombstone"}`), accepted, []string{
			"- object us:/alice/objects/1 Note mine", "+ object us:/alice/objects/1 Tombstone", "+ tombstones 1"}},
		{"Like", nil, "", likes, accepted, []string{"+ reaction us:/alice Like p:/notes/1 us:/alice/activities/l"}},
		{"Dislike in its place", does(likes), "", act("Dislike", `"p:/notes/1"`), accepted, []string{
			"- reaction us:/alice Like p:/notes/1 us:/alice/activities/l", "+ reaction us:/alice Dislike p:/notes/1 us:/alice/activities/1"}},
		{"Undo Like", does(likes), "", act("Undo", likes), accepted, []string{"- reaction us:/alice Like p:/notes/1 us:/alice/activities/l"}},
		{"Announce", nil, "", boosts, accepted, []string{"+ reaction us:/alice Announce p:/notes/1 us:/alice/activities/b", "+ feed us:/alice/activities/b by us:/alice"}},
		{"Undo Announce", does(boosts), "", act("Undo", boosts), accepted, []string{"- reaction us:/alice Announce p:/notes/1 us:/alice/activities/b", "- feed us:/alice/activities/b by us:/alice"}},
		{"Undo Dislike", does(strings.Replace(likes, `"Like"`, `"Dislike"`, 1)), "", act("Undo", strings.Replace(likes, `"Like"`, `"Dislike"`, 1)), accepted, []string{
			"- reaction us:/alice Dislike p:/notes/1 us:/alice/activities/l"}},
		{"Block of a stranger", nil, "p:/carol", act("Block", `"p:/carol"`), accepted, []string{"+ actor p:/carol", "+ block outbound p:/carol us:/alice/activities/1"}},
		{"Block of who asks to follow", requested, "p:/carol", act("Block", `"p:/carol"`), accepted, []string{
			"- relationship follower p:/carol pending p:/carol/follows/f",
			"+ activity outbound Reject us:/alice/activities/* p:/carol/follows/f",
			"+ event reject.sent us:/alice/activities/* p:/carol/follows/f by self us:/alice",
			"+ delivery p:/carol/inbox " + ended("Reject", "p:/carol/follows/f", "p:/carol", "us:/alice"),
			"+ block outbound p:/carol us:/alice/activities/1"}},
		{"Block of who is followed", follows, "p:/carol", act("Block", `"p:/carol"`), accepted, []string{
			"- relationship following p:/carol accepted us:/alice/activities/f",
			"+ activity outbound Undo us:/alice/activities/* us:/alice/activities/f",
			"+ event undo.sent us:/alice/activities/* us:/alice/activities/f by self us:/alice",
			"+ delivery p:/carol/inbox " + ended("Undo", "us:/alice/activities/f", "us:/alice", "p:/carol"),
			"+ block outbound p:/carol us:/alice/activities/1"}},
		{"Block of whose posts are in the feed", both(follows, func(s *peertest.Scene) {
			s.Follows("q:/eve")
			s.MustSend("p:/carol", "us:/inbox", createOf(note, toAll))
			s.Serve("p:/notes/1", note)
			s.MustSend("q:/eve", "us:/inbox", `{"id":"q:/boosts/1","type":"Announce","actor":"q:/eve",`+toAll+`,"object":"p:/notes/1"}`)
			s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve",`+toAll+`}`)
			s.MustSend("q:/eve", "us:/inbox", `{"id":"q:/boosts/2","type":"Announce","actor":"q:/eve",`+toAll+`,"object":"q:/notes/1"}`)
			s.Act("p:/carol", act("Undo", aliceFollows))
		}), "p:/carol", act("Block", `"p:/carol"`), accepted, []string{
			"- feed p:/creates/1 by p:/carol",
			"- feed q:/boosts/1 by q:/eve",
			"+ block outbound p:/carol us:/alice/activities/1"}},
		{"Undo Block", func(s *peertest.Scene) { s.Act("p:/carol", blocks) }, "p:/carol", act("Undo", blocks), accepted, []string{
			"- block outbound p:/carol us:/alice/activities/b"}},
		{"a type of no effect", nil, "", act("Listen", `"p:/songs/1"`), accepted, nil},
	}
	t.Run("rows", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s := stage.Scene(t)
				if tt.given != nil {
					tt.given(s)
				}
				expect(t, s, tt.name, tt.want, tt.kind, func() error { return s.Try(tt.target, tt.body) })
				if raw := s.Column(t, s.Alice, `SELECT raw::text FROM objects`); slices.ContainsFunc(raw, func(r string) bool { return strings.Contains(r, "bto") }) {
					t.Errorf("stored %s, with hidden recipients", raw)
				}
			})
		}
	})
}
