package instance_test

import (
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
)

// SetOrigin changes the origin only if the caller names the stored origin. Of two processes that
// saw the same origin, only one is told that it set the new one.
func TestTheOriginIsSetByWhoSawWhatStoodThere(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	is := func(want string) {
		t.Helper()
		if got, err := c.Instance.Origin(t.Context()); err != nil || got != want {
			t.Errorf("Origin() = %q, %v, want %q", got, err, want)
		}
	}
	const first, second = "https://first.example", "https://second.example"
	is("")
	for _, tt := range []struct {
		old, origin string
		want        bool
		then        string
	}{
		{first, second, false, ""},
		{"", first, true, first},
		{"", second, false, first},
		{second, second, false, first},
		{first, second, true, second},
	} {
		if set, err := c.Instance.SetOrigin(t.Context(), tt.old, tt.origin); err != nil || set != tt.want {
			t.Errorf("SetOrigin(%q, %q) = %t, %v, want %t", tt.old, tt.origin, set, err, tt.want)
		}
		is(tt.then)
	}
}
