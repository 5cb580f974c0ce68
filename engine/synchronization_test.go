package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// FE-08: two servers disagree about a follow, in either direction. The next post to followers
// corrects both. An actor that no longer counts as a follower learns of that. An actor that never
// asked to follow sends an Undo.
func TestFollowersThatDriftedApartAreBroughtTogether(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	t.Run("one way", func(t *testing.T) { drift(t, a, b) })
	t.Run("the other way", func(t *testing.T) { drift(t, b, a) })
}

func drift(t *testing.T, home, away *enginetest.Instance) {
	author := home.CreateUser(t, "author")
	var fans []*enginetest.User
	for _, name := range []string{"faithful", "forgotten", "forgetful"} {
		u := away.CreateUser(t, name)
		u.Do(t, "Follow", map[string]any{"actorUri": author.Handle})
		enginetest.Eventually(t, name+" follows", func() bool { return followStatus(t, u, author) == "accepted" })
		fans = append(fans, u)
	}
	faithful, forgotten, forgetful := fans[0], fans[1], fans[2]
	seen := len(forgotten.Events(t, 0))
	for _, lost := range [][]string{author.Column(t, `DELETE FROM relationships WHERE type = 'follower' AND actor_uri = $1 RETURNING id`, forgotten.ID),
		forgetful.Column(t, `DELETE FROM relationships WHERE type = 'following' AND actor_uri = $1 RETURNING id`, author.ID)} {
		if len(lost) != 1 {
			t.Fatalf("%d rows were lost, want one", len(lost))
		}
	}

	note := map[string]any{"content": "to my followers", "visibility": "followers"}
	author.Do(t, "CreateNote", note)
	enginetest.Eventually(t, "the forgotten one follows no more", func() bool { return followStatus(t, forgotten, author) == "" })
	enginetest.Eventually(t, "the author has one follower", func() bool {
		return slices.Equal(author.Column(t, `SELECT actor_uri FROM relationships WHERE type = 'follower'`), []string{faithful.ID})
	})
	if got := followStatus(t, faithful, author); got != "accepted" {
		t.Errorf("the faithful one follows: %q, want accepted", got)
	}
	told := 0
	for _, e := range forgotten.Events(t, 0)[seen:] {
		if e.Type == "relationship.changed" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the forgotten one was told %d times of a changed relationship, want once", told)
	}
	undos := forgetful.Column(t, `SELECT raw -> 'object' ->> 'object' FROM activities WHERE type = 'Undo'`)
	if !slices.Equal(undos, []string{author.ID}) {
		t.Errorf("the forgetful one took back follows of %q", undos)
	}

	before := away.Metric(t, `lightweb_inbox_synchronizations_total{outcome="equal"}`)
	author.Do(t, "CreateNote", note)
	enginetest.Eventually(t, "both sides agree", func() bool {
		return away.Metric(t, `lightweb_inbox_synchronizations_total{outcome="equal"}`) > before
	})
}

// followStatus returns the state of u's follow of another user. If there is no such follow, it
// returns "".
func followStatus(t *testing.T, u, followed *enginetest.User) string {
	t.Helper()
	return strings.Join(u.Column(t, `SELECT status FROM relationships WHERE type = 'following' AND actor_uri = $1`, followed.ID), ",")
}
