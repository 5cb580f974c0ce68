package engine_test

import (
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// An activity that is taken back disappears from the notifications: a deleted reply, and an undone
// like, boost or follow. Its author is on this server or on another.
func takenBackLeavesTheNotifications(t *testing.T, a, b *enginetest.Instance) {
	reader := a.CreateUser(t, "nora")
	_, note := reader.Post(t, map[string]any{"content": "say something"})
	for _, u := range []*enginetest.User{a.CreateUser(t, "nils"), b.CreateUser(t, "nina")} {
		told := func(activity string) func(enginetest.Item) bool {
			return func(i enginetest.Item) bool { return i.ActivityURI == activity }
		}
		about := map[string]any{"objectId": note}
		for _, c := range []struct {
			does, takesBack string
			params          map[string]any
		}{
			{"Follow", "Unfollow", map[string]any{"actorUri": reader.ID}}, {"Like", "Unlike", about}, {"Boost", "Unboost", about},
			{"Reply", "DeleteObject", map[string]any{"objectId": note, "content": "something"}},
		} {
			did := u.Do(t, c.does, c.params)
			reader.Await(t, "notifications", c.does, told(did.ActivityID))
			params := c.params
			if c.takesBack == "DeleteObject" {
				params = map[string]any{"objectId": enginetest.ObjectOf(t, u, did.ActivityID)}
			}
			u.Do(t, c.takesBack, params)
			enginetest.Eventually(t, c.does+" of "+u.Name+" leaves the notifications", func() bool {
				return !slices.ContainsFunc(reader.Feed(t, "notifications"), told(did.ActivityID))
			})
		}
	}
}
