package handler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// NodeBB and Wafrn send each Like and boost of a post by one account under one id, and Wafrn each
// Undo of it, too.
func TestAReactionComesAgainUnderItsID(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for name, body := range map[string]string{
		"Like":       `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`,
		"EmojiReact": `{"id":"p:/likes/1","type":"EmojiReact","actor":"p:/carol","content":"🐝","object":"us:/alice/objects/1"}`,
		"Announce":   `{"id":"p:/likes/1","type":"Announce","actor":"p:/carol",` + toAll + `,"object":"us:/alice/objects/1"}`,
	} {
		s := stage.Scene(t)
		posted("as:Public")(s)
		undo := `{"id":"p:/likes/1/undo","type":"Undo","actor":"p:/carol","object":` + body + `}`
		sends := func(body string) (again func()) { return sendsLater(t, s, body) }
		stands := func(when, reactions, events string) {
			t.Helper()
			got := s.Column(t, s.Alice, `SELECT count(*)::text FROM reactions UNION ALL
				SELECT count(*)::text FROM event_outbox WHERE type IN ('like.received', 'emojireact.received', 'announce.received')`)
			if want := []string{reactions, events}; !slices.Equal(got, want) {
				t.Errorf("%s %s there are %q reactions and events, want %q", name, when, got, want)
			}
		}
		first := sends(body)
		sends(body)
		stands("that comes twice while it stands:", "1", "1")
		firstUndo := sends(undo)
		stands("after its Undo", "0", "1")
		s.Later(2 * time.Second)
		first()
		stands("whose first request is sent once more", "0", "1")
		second := sends(body)
		stands("that comes again", "1", "2")
		firstUndo()
		stands("after the first request of its Undo once more", "1", "2")
		sends(undo)
		stands("after its second Undo", "0", "2")
		second()
		stands("whose second request is sent once more", "0", "2")
	}
}

// NodeBB sends no Undo of a Like that a Dislike replaces.
func TestALikeComesAgainAfterADislike(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	article(s)
	for _, kind := range []string{"Like", "Dislike", "Like", "Dislike"} {
		s.Later(2 * time.Second)
		s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/votes/`+kind+`","type":"`+kind+`","actor":"p:/carol","object":"us:/alice/objects/1"}`)
		if got := s.Column(t, s.Alice, `SELECT type FROM reactions`); !slices.Equal(got, []string{kind}) {
			t.Errorf("after a %s the reactions are %q", kind, got)
		}
	}
}

// A boost arrives after the Delete by which its server takes it back. It takes no effect.
func TestABoostThatWasTakenBackBeforeItArrivedTakesNoEffect(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Follows("p:/carol")
	s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","content":"real",`+toAll+`}`)
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol",`+toAll+`,"object":{"id":"p:/boosts/1","type":"Tombstone"}}`)
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol",`+toAll+`,"object":"q:/notes/1"}`)
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM reactions UNION ALL SELECT activity_uri FROM feed`); len(got) > 0 {
		t.Errorf("the boosts are %q, want none", got)
	}
}
