package handler_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// In each Undo of a vote, Lemmy names the vote a Like. The Like has an id that Lemmy makes for the
// Undo.
func TestAnUndoOfALikeTakesADislikeBack(t *testing.T) {
	play(t, []row{
		{name: "of an article", given: both(article, func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/alice/inbox", dislike) }),
			body: `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"id":"p:/likes/77","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}}`,
			want: []string{
				"- activity inbound Dislike p:/dislikes/1 us:/alice/objects/1",
				"- reaction p:/carol Dislike us:/alice/objects/1 p:/dislikes/1",
				"+ activity inbound Undo p:/undos/1 p:/likes/77",
				"+ event undo.received p:/undos/1 p:/likes/77 by stranger p:/carol"}},
		{name: "of an article, but the Like came before the Dislike", given: both(article, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", strings.NewReplacer("dislikes/1", "likes/1", "Dislike", "Like").Replace(dislike))
			s.MustSend("p:/carol", "us:/alice/inbox", dislike)
		}), body: `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}}`,
			want: []string{
				"- activity inbound Like p:/likes/1 us:/alice/objects/1",
				"+ activity inbound Undo p:/undos/1 p:/likes/1",
				"+ event undo.received p:/undos/1 p:/likes/1 by stranger p:/carol"}},
		{name: "of a boost", given: both(posted("as:Public"), func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol","to":"as:Public","cc":"us:/alice","object":"us:/alice/objects/1"}`)
		}), body: `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"id":"p:/likes/77","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}}`},
	})
}

const dislike = `{"id":"p:/dislikes/1","type":"Dislike","actor":"p:/carol","object":"us:/alice/objects/1"}`

// article makes alice publish an article.
func article(s *peertest.Scene) {
	s.Act("", `{"id":"us:/alice/activities/c","type":"Create","actor":"us:/alice","object":{"id":"us:/alice/objects/1","type":"Article","attributedTo":"us:/alice","to":"as:Public"}}`)
}

func TestAGroupsUndoOfALikeTakesADislikeBack(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	moderates(s)
	s.Serve("p:/post/5", objectOf(t, lemmy(t, "announce_create")))
	s.MustSend(community, "us:/inbox", lemmy(t, "announce_create"))
	s.MustSend(community, "us:/inbox", lemmy(t, "announce_dislike"))
	expect(t, s, "an Undo of a Like that was a Dislike", []string{"- reaction q:/u/eve Dislike p:/post/5 p:/activities/announce/l2"}, accepted,
		func() error { return s.Send(community, "us:/inbox", lemmy(t, "announce_undo_like")) })
}
