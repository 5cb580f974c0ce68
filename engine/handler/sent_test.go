package handler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

// What alice sends is stored and delivered by her outbox; these are the effects that go with it.
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
		{"a type of no effect", nil, "", act("Block", `"p:/carol"`), accepted, nil},
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
