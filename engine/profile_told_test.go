package engine_test

import (
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A profile is changed by a client, by a command or in the file, even while the engine does not
// serve. Followers see the new profile.
func profilesAreTold(t *testing.T, a, b *enginetest.Instance) {
	otto, odette := a.CreateUser(t, "otto"), b.CreateUser(t, "odette")
	odette.Do(t, "Follow", map[string]any{"actorUri": otto.ID})
	shown := func(want string) {
		t.Helper()
		enginetest.Eventually(t, "odette sees "+want, func() bool {
			var page struct {
				Actors map[string]struct{ Name string }
			}
			odette.Ask(t, http.MethodGet, "/api/relationships?type=following&status=accepted", nil).Decode(t, &page)
			return page.Actors[otto.ID].Name == want
		})
	}
	enginetest.Eventually(t, "odette follows otto", func() bool {
		return len(odette.Column(t, `SELECT actor_uri FROM relationships WHERE type = 'following' AND status = 'accepted'`)) == 1
	})
	otto.Do(t, "UpdateProfile", map[string]any{"name": "by a program"})
	shown("by a program")
	if got := a.Run(t, "user", "config", "set", "otto", "profile.name", "by a command"); got.Code != 0 {
		t.Fatalf("user config set ended with %d: %s", got.Code, got.Stderr)
	}
	shown("by a command")
	otto.Configure(t, `{"profil":{"name":"a slip"}}`)
	otto.Configure(t, `{"profile":{"name":"by hand"}}`)
	shown("by hand")
	told := otto.Column(t, `SELECT count(*)::text FROM activities WHERE type = 'Update' AND direction = 'outbound'`)
	if len(told) != 1 || told[0] != "3" {
		t.Errorf("otto's profile was told %s times, want 3", told)
	}
	a.Stop(t)
	otto.Configure(t, `{"profile":{"name":"in the dark"}}`)
	a.Start(t)
	shown("in the dark")
}
