package inbox_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// An Undo of an answer arrives before the answer, and names it by its id alone.
func TestAnUndoByIDStopsTheAnswerThatComesLater(t *testing.T) {
	follow := func(s *peertest.Scene, n int) {
		s.Act("p:/carol", fmt.Sprintf(`{"id":"us:/alice/activities/f%d","type":"Follow","actor":"us:/alice","object":"p:/carol"}`, n))
	}
	answer := func(s *peertest.Scene, kind string, n int) {
		s.MustSend("p:/carol", mine, fmt.Sprintf(`{"id":"p:/follow/1#answer","type":%q,"actor":"p:/carol","to":"us:/alice","object":"us:/alice/activities/f%d"}`, kind, n))
	}
	undo := func(s *peertest.Scene, by string) {
		s.MustSend(by, mine, `{"id":"`+by+`/undos/1","type":"Undo","actor":"`+by+`","to":"us:/alice","object":"p:/follow/1#answer"}`)
	}
	is := func(t *testing.T, s *peertest.Scene, when, want string) {
		t.Helper()
		if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'following' AND actor_uri = $1`, s.Long("p:/carol")); !slices.Equal(got, []string{want}) {
			t.Errorf("%s the follow is %q, want %s", when, got, want)
		}
	}
	for _, kind := range []string{"Accept", "Reject"} {
		t.Run(kind, func(t *testing.T) {
			s := newScene(t)
			follow(s, 1)
			undo(s, "p:/carol")
			for range 2 {
				answer(s, kind, 1)
				is(t, s, "after the undone "+kind, "pending")
			}
			follow(s, 2)
			answer(s, kind, 2)
			is(t, s, "after the answer to the next Follow", map[string]string{"Accept": "accepted", "Reject": "rejected"}[kind])
			answer(s, kind, 1)
			is(t, s, "after a repetition of the first answer", map[string]string{"Accept": "accepted", "Reject": "rejected"}[kind])
		})
	}
	t.Run("by another actor", func(t *testing.T) {
		s := newScene(t)
		s.Follows("p:/dave")
		follow(s, 1)
		undo(s, "p:/dave")
		answer(s, "Accept", 1)
		is(t, s, "after the Accept", "accepted")
	})
	t.Run("of the second answer", func(t *testing.T) {
		s := newScene(t)
		follow(s, 1)
		answer(s, "Accept", 1)
		follow(s, 2)
		answer(s, "Accept", 2)
		is(t, s, "after the second Accept", "accepted")
		undo(s, "p:/carol")
		if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'following'`); len(got) > 0 {
			t.Errorf("after the Undo the follow is %q", got)
		}
	})
}

func TestAnUndoByIDStopsTheFollowThatComesLater(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	s.MustSend("p:/carol", mine, `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","to":"us:/alice","object":"p:/follows/1"}`)
	s.MustSend("p:/carol", mine, `{"id":"p:/follows/1","type":"Follow","actor":"p:/carol","object":"us:/alice"}`)
	if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'follower'`); len(got) > 0 {
		t.Errorf("carol's follow is %q", got)
	}
}
