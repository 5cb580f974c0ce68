package inbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
)

// withVotes lets a group that alice follows announce a post of eve's. It returns a function that
// builds an Announce of a vote for the post.
func withVotes(s *peertest.Scene) (vote func(n int, voter string) string) {
	announce := group(s)
	post := `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","to":"as:Public","cc":"p:/group","content":"hi"}`
	s.Actor("q:/eve")
	s.Serve("q:/notes/1", post)
	s.MustSend("p:/group", shared, announce(1, `{"id":"q:/creates/1","type":"Create","actor":"q:/eve","to":"as:Public","object":`+post+`}`))
	return func(n int, voter string) string {
		return announce(n, fmt.Sprintf(`{"id":"q:/likes/%d","type":"Like","actor":%q,"object":"q:/notes/1"}`, n, voter))
	}
}

// voters returns the last path segment of each actor whose vote alice holds.
func voters(t *testing.T, s *peertest.Scene) (all []string) {
	t.Helper()
	for _, v := range s.Column(t, s.Alice, `SELECT actor_uri FROM reactions WHERE kind = 'review' ORDER BY 1`) {
		all = append(all, v[strings.LastIndexByte(v, '/')+1:])
	}
	return all
}

// A group announced a vote. The voter's Delete removes the vote, although the engine never fetched
// the voter and the voter never wrote to this server.
func TestAVoteThatAGroupBroughtGoesWithItsActor(t *testing.T) {
	s := newScene(t)
	vote := withVotes(s)
	s.Actor("q:/dave")
	s.MustSend("p:/group", shared, vote(2, "q:/dave"))
	if got := voters(t, s); !slices.Equal(got, []string{"dave"}) || acquainted(t, s, "q:/dave") != 1 {
		t.Fatalf("votes of %q, and dave may concern %d users; want dave's, and alice", got, acquainted(t, s, "q:/dave"))
	}
	s.Answer("q:/dave", http.StatusGone)
	s.MustSend("q:/dave", shared, `{"id":"q:/deletes/1","type":"Delete","actor":"q:/dave","object":"q:/dave"}`)
	settled(t, s)
	if got := voters(t, s); len(got) != 0 {
		t.Errorf("votes of %q are left, want none", got)
	}
}

// A budget limits the new voters of a group, because a group could invent voters. A follow by
// alice does not exempt the group.
func TestNewVotersOfAGroupHaveABudget(t *testing.T) {
	s := newScene(t)
	bob := s.With("bob")
	vote := withVotes(s)
	s.Inbox.NewVotersDaily(2)
	named := func(n int, voter string) string { // bob does not follow the group
		return strings.Replace(vote(n, voter), `"as:Public"`, fmt.Sprintf(`["as:Public",%q]`, bob.Long("us:/alice")), 1)
	}
	for n := range 4 {
		s.MustSend("p:/group", shared, named(10+n, fmt.Sprintf("q:/invented/%d", n)))
	}
	settled(t, s, bob)
	if got := voters(t, s); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("votes of %q, want the first two", got)
	}
	for n, want := range []int{1, 1, 0, 0} {
		if got := acquainted(t, s, fmt.Sprintf("q:/invented/%d", n)); got != want {
			t.Errorf("voter %d may concern %d users, want %d", n, got, want)
		}
	}
	if got := why(t, s, "p:/announces/13"); got != inbox.IgnoredGroupBudget {
		t.Errorf("the last one is remembered as %q, want %q", got, inbox.IgnoredGroupBudget)
	}
	s.MustSend("p:/group", shared, strings.Replace(vote(20, "q:/invented/0"), `"Like"`, `"Dislike"`, 1))
	if got := s.Column(t, s.Alice, `SELECT type FROM reactions WHERE kind = 'review' ORDER BY 1`); !slices.Equal(got, []string{"Dislike", "Like"}) {
		t.Errorf("the votes are %q, want that of a known voter replaced", got)
	}
}
