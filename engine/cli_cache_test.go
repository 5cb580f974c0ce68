package engine_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// cacheCommands rebuilds the cache of a serving engine.
func cacheCommands(t *testing.T, i *enginetest.Instance) {
	runAll(t, i, []command{
		{"cache rebuild", 64, "give either users or --all"},
		{"cache rebuild alice --feed nonsense", 64, "is no feed"},
		{"cache rebuild alice --warm-pages 21", 64, "not from 0 to 20"},
		{"cache rebuild nobody_here", 67, ""},
		{"cache rebuild alice --flush --dry-run", 0, ""},
		{"cache rebuild --all --objects --actors", 0, ""},
	})
	var r struct {
		Users []struct {
			User    string
			Deleted int `json:"deleted_keys"`
			Feeds   int
		}
		Skipped bool
	}
	for _, deleted := range []int{0, 4} { // the second run deletes at least the tokens of the feeds and the actors' profiles
		got := i.Run(t, "cache", "rebuild", "alice", "--actors", "--json")
		got.Decode(t, &r)
		if got.Code != 0 || !r.Skipped && (len(r.Users) != 1 || r.Users[0].Feeds != 3 || r.Users[0].Deleted < deleted) {
			t.Errorf("cache rebuild wrote %s %s", got.Stdout, got.Stderr)
		}
	}
	warmAndFlush(t, i)
	release, err := i.DB(t).Instance.Locks.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	runAll(t, i, []command{{"cache rebuild --all", 75, "another 'lightweb cache rebuild' runs (process "}})
}

// warmAndFlush makes the pages of a feed with an entry, and then deletes them and makes none.
func warmAndFlush(t *testing.T, i *enginetest.Instance) {
	t.Helper()
	reader, author := i.CreateUser(t, "cache_reader"), i.CreateUser(t, "cache_author")
	reader.Do(t, "Follow", map[string]any{"actorUri": author.ID})
	enginetest.Eventually(t, "the follow is accepted", func() bool {
		return len(reader.Column(t, `SELECT 1 FROM relationships WHERE type = 'following' AND status = 'accepted'`)) == 1
	})
	create, _ := author.Post(t, map[string]any{"content": "to be cached", "visibility": "public"})
	reader.Await(t, "main", "the post", func(item enginetest.Item) bool { return item.ActivityURI == create })
	for _, tt := range []struct {
		line           string
		deleted        int // at least so many keys
		pages, entries int
	}{
		{"cache rebuild cache_reader --feed main --json", 0, 1, 1},
		{"cache rebuild cache_reader --flush --json", 5, 0, 0}, // two tokens, the page, the activity and the object; the local author has no card there
		{"cache rebuild cache_reader --flush --json", 0, 0, 0},
	} {
		var r struct {
			Users []struct {
				Deleted int `json:"deleted_keys"`
				Pages   int
				Objects int
			}
			Skipped bool
		}
		got := i.Run(t, strings.Fields(tt.line)...)
		if got.Decode(t, &r); r.Skipped {
			continue
		}
		if got.Code != 0 || len(r.Users) != 1 || r.Users[0].Deleted < tt.deleted || r.Users[0].Pages != tt.pages || r.Users[0].Objects != tt.entries {
			t.Errorf("%s wrote %s %s, want %d keys or more, %d pages and %d entries", tt.line, got.Stdout, got.Stderr, tt.deleted, tt.pages, tt.entries)
		}
	}
}
