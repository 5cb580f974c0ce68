package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Other servers know users by their ids, which begin with public_url. So an instance keeps its
// public_url.
func TestTheOriginIsForGood(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	const other, third = "https://social.example", "https://elsewhere.example"
	set := func(origin string) { i.Set("LIGHTWEB_PUBLIC_URL=" + origin) }
	remembered := func(want string) {
		t.Helper()
		var got string
		if err := i.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT public_url FROM origin`).Scan(&got); err != nil || got != want {
			t.Errorf("the instance remembers %q, %v; want %q", got, err, want)
		}
	}

	// Until an activity is sent to another server, the instance accepts a new origin. One line
	// in the log says so.
	set(other)
	if got := i.Run(t, "user", "create", "alice"); got.Code == 69 {
		enginetest.Skip(t, "no PostgreSQL to test with:\n"+got.Stderr)
	} else if got.Code != 0 {
		t.Fatalf("user create: %d %s", got.Code, got.Stderr)
	}
	set(i.URL)
	i.Start(t)
	remembered(i.URL)
	if log := i.Log(); strings.Count(log, "public_url changed") != 1 || !strings.Contains(log, "for trying only") {
		t.Errorf("the log does not say once that the origin changed, or not that loopback is for trying only:\n%s", log)
	}

	// Beside a serving engine, commands refuse another origin, before and after an activity is
	// sent.
	beside := func(origin, says string) {
		t.Helper()
		set(origin)
		for _, line := range []string{"user create bob", "user token create alice", "relay list", "db migrate"} {
			got := i.Run(t, strings.Fields(line)...)
			if got.Code != 78 || !strings.Contains(got.Stderr, origin) || !strings.Contains(got.Stderr, i.URL) || !strings.Contains(got.Stderr, says) {
				t.Errorf("%s under %s ended with %d %s, want 78, both origins and %q", line, origin, got.Code, got.Stderr, says)
			}
		}
		set(i.URL)
	}
	beside(other, "stop the engine first")
	remembered(i.URL)

	// The first activity that is sent makes the origin permanent.
	alice := i.CreateUser(t, "carol")
	alice.Post(t, map[string]any{"content": "hello", "visibility": "public"})
	beside(third, "for good")
	i.Stop(t)
	beside(third, "set public_url to "+i.URL)
	set(third)
	if got := i.Run(t, "serve"); got.Code != 78 || !strings.Contains(got.Stderr, "for good") {
		t.Errorf("serve under another origin ended with %d %s, want 78", got.Code, got.Stderr)
	}

	// An instance of an earlier lightweb takes its origin from the activities that it has
	// sent.
	set(i.URL)
	i.Start(t)
	if _, err := i.SQL(t, "lightweb").ExecContext(t.Context(), `DELETE FROM origin`); err != nil {
		t.Fatal(err)
	}
	beside(third, "for good")
	remembered(i.URL)
	if got := i.Run(t, "user", "show", "carol", "--json"); got.Code != 0 || !strings.Contains(got.Stdout, fmt.Sprintf("%s/users/carol", i.URL)) {
		t.Errorf("under the origin that is remembered: %d %s %s", got.Code, got.Stdout, got.Stderr)
	}
}
