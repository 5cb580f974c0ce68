package engine_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// lineOfTail is an event as the command stream tail writes it.
type lineOfTail struct {
	ID, Type, Source, Timestamp string
	Payload                     struct{ ActivityURI, EventID, Trust string }
}

func linesOfTail(t *testing.T, text string) (all []lineOfTail) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l lineOfTail
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.ID == "" || l.Timestamp == "" || l.Payload.EventID == "" {
			t.Errorf("the line %q is no event: %v", line, err)
		}
		all = append(all, l)
	}
	return all
}

// stream tail shows old and new events, even if Redis is away for a while. When it ends, it says
// how to resume.
func TestATailFollowsTheStream(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice := a.CreateUser(t, "alice")
	var posts []string
	post := func() {
		t.Helper()
		create, _ := alice.Post(t, map[string]any{"content": fmt.Sprint(len(posts))})
		posts = append(posts, create)
	}
	for range 3 {
		post()
	}
	enginetest.Eventually(t, "the posts are told of", func() bool { return onStream(server, alice, "create.sent", posts[2]) })
	follow := a.Begin(t, "stream", "tail", "alice", "-n", "2", "--type", "create.*")
	shown := func(n int) func() bool {
		return func() bool { return strings.Count(follow.Stdout(), "create.sent") == n }
	}
	enginetest.Eventually(t, "the last two are shown", shown(2))
	post()
	enginetest.Eventually(t, "the next one is shown", shown(3))
	server.Kill()
	post()
	enginetest.Eventually(t, "the tail says that Redis is away", func() bool { return strings.Contains(follow.Stderr(), "does not answer") })
	server.Restart()
	enginetest.Eventually(t, "what happened meanwhile is shown", shown(4))
	ran := follow.Interrupt()
	lines := linesOfTail(t, ran.Stdout)
	for n, l := range lines {
		if l.Payload.ActivityURI != posts[n+1] || l.Source != "ap" || l.Payload.Trust != "self" {
			t.Errorf("event %d is %+v, want that of %s", n, l, posts[n+1])
		}
	}
	resume := regexp.MustCompile(`(?m)^4 events \(create\.sent 4\)\nresume: lightweb stream tail alice --after (\S+)$`).FindStringSubmatch(ran.Stderr)
	if ran.Code != 130 || resume == nil || resume[1] != lines[len(lines)-1].ID || strings.Count(ran.Stderr, "does not answer") != 1 {
		t.Fatalf("the tail ended with %d and said\n%s", ran.Code, ran.Stderr)
	}
	post()
	enginetest.Eventually(t, "the post is told of", func() bool { return onStream(server, alice, "create.sent", posts[5]) })
	if got := linesOfTail(t, a.Run(t, "stream", "tail", "alice", "--after", resume[1], "--count", "1").Stdout); len(got) != 1 || got[0].Payload.ActivityURI != posts[5] {
		t.Errorf("resumed: %+v, want the event of %s", got, posts[5])
	}
	if got := linesOfTail(t, a.Run(t, "stream", "tail", "alice", "--since", "1h", "--follow=false", "--json").Stdout); len(got) != len(posts) {
		t.Errorf("since an hour ago: %d events, want %d", len(got), len(posts))
	}
	runAll(t, a, []command{
		{"stream tail nobody", 67, "nobody"},
		{"stream tail alice --after yesterday", 64, "is not the id of an event"},
		{"stream tail alice --since yesterday", 64, "is no time"},
		{"stream tail alice --since 1h -n 3", 64, "exclude"},
		{"stream tail alice --type [", 64, "is not a pattern"},
		{"stream tail alice --count 0", 64, "--count"},
		{"stream tail alice -n -1", 64, "--last"},
		{"stream tail", 64, "needs USER"},
		{"stream tail alice --type no.such --timeout 1s", 75, "ran out"},
		{"stream tail alice --follow=false", 0, ""},
		{"stream tail alice --timeout 5s", 0, "resume:"},
	})
	server.Kill()
	runAll(t, a, []command{{"stream tail alice", 69, "Redis does not answer"}})
}

func TestATailShowsHowFarAGroupIs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice := a.CreateUser(t, "alice")
	var ids []string
	for n := range 3 {
		create, _ := alice.Post(t, map[string]any{"content": fmt.Sprint(n)})
		enginetest.Eventually(t, "the post is told of", func() bool { return onStream(server, alice, "create.sent", create) })
	}
	enginetest.Eventually(t, "the group is there", func() bool { return strings.Contains(server.Do("XINFO", "GROUPS", "alice:events"), "llm") })
	for entry := range strings.FieldsSeq(server.Do("XREADGROUP", "GROUP", "llm", "reader", "COUNT", "2", "STREAMS", "alice:events", ">")) {
		if regexp.MustCompile(`^\d{10,}-\d+$`).MatchString(entry) {
			ids = append(ids, entry)
		}
	}
	server.Do("XACK", "alice:events", "llm", ids[0])
	var g struct {
		Group                                                  string
		Consumers, Acknowledged, Delivered, Pending, Last, Lag uint64
	}
	a.Run(t, "stream", "tail", "alice", "--group", "llm", "--json").Decode(t, &g)
	if g.Group != "llm" || g.Consumers != 1 || fmt.Sprintf("-%d", g.Delivered) != ids[1][strings.Index(ids[1], "-"):] ||
		g.Acknowledged != g.Delivered-1 || g.Pending != 1 || g.Lag != g.Last-g.Acknowledged || g.Last <= g.Delivered {
		t.Errorf("the group is shown as %+v; it was handed %v", g, ids)
	}
	runAll(t, a, []command{
		{"stream tail alice --group ws", 0, ""},
		{"stream tail alice --group nonsense", 66, "has no group"},
		{"stream tail alice --group llm --after 1-1", 64, "exclude"},
		{"stream tail nobody_here --group llm", 67, ""},
	})
}

// anyLineOfTail is an event, or a note between events, as the command stream tail writes it.
type anyLineOfTail struct {
	ID, Type, Source string
	FirstID          string `json:"first_id"`
}

// present returns the lines that stream tail writes about the events of alice that are there.
func present(t *testing.T, a *enginetest.Instance, flags ...string) (all []anyLineOfTail) {
	t.Helper()
	ran := a.Run(t, append([]string{"stream", "tail", "alice", "--follow=false"}, flags...)...)
	if ran.Code != 0 {
		t.Fatalf("stream tail %v ended with %d: %s", flags, ran.Code, ran.Stderr)
	}
	for line := range strings.Lines(ran.Stdout) {
		var l anyLineOfTail
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("the line %q: %v", line, err)
		}
		all = append(all, l)
	}
	return all
}

// stream tail shows the events of the types and sources that were chosen, and no others. It says
// where events are gone, and that an id is of another stream.
func TestATailChoosesEventsAndSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice := a.CreateUser(t, "alice")
	_, note := alice.Post(t, map[string]any{"content": "first"})
	alice.Do(t, "Like", map[string]any{"objectId": note})
	if got := alice.Try(t, "MarkRead", map[string]any{"feed": "main", "entryId": alice.Feed(t, "main")[0].ID}); got.Status != 201 {
		t.Fatalf("MarkRead was answered %d %s", got.Status, got.Body)
	}
	alice.Post(t, map[string]any{"content": "last"})
	var all []anyLineOfTail
	enginetest.Eventually(t, "all events are on the stream", func() bool {
		all = present(t, a, "-n", "100")
		return len(all) > 3 && all[len(all)-1].Type == "create.sent"
	})
	for _, tt := range []struct {
		flags  string
		before []anyLineOfTail // notes before the events
		want   func(anyLineOfTail) bool
	}{
		{"--type like.*", nil, func(l anyLineOfTail) bool { return strings.HasPrefix(l.Type, "like.") }},
		{"--type *.read --type create.sent", nil, func(l anyLineOfTail) bool { return l.Type == "feed.read" || l.Type == "create.sent" }},
		{"--source local", nil, func(l anyLineOfTail) bool { return l.Type == "feed.read" }},
		{"--source ap", nil, func(l anyLineOfTail) bool { return l.Type != "feed.read" }},
		{"--source l* --type *.read --since 1h", nil, func(l anyLineOfTail) bool { return l.Type == "feed.read" }},
		{"--source ap --type *.read", nil, func(anyLineOfTail) bool { return false }},
		{"--after " + all[0].ID, nil, func(l anyLineOfTail) bool { return l != all[0] }},
		{"--after 99999999999999-99999", []anyLineOfTail{{Type: "_reset"}}, func(anyLineOfTail) bool { return true }},
	} {
		want := tt.before
		for _, l := range all {
			if tt.want(l) {
				want = append(want, l)
			}
		}
		if got := present(t, a, strings.Fields(tt.flags)...); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", tt.flags, got, want)
		}
	}
	last := all[len(all)-1]
	server.Do("XTRIM", "alice:events", "MAXLEN", "1")
	_, seq, _ := strings.Cut(last.ID, "-")
	alice.Column(t, `DELETE FROM event_outbox WHERE seq < $1 RETURNING seq`, seq)
	want := []anyLineOfTail{{Type: "_gap", FirstID: last.ID}, last}
	if got := present(t, a, "--after", all[0].ID); !slices.Equal(got, want) {
		t.Errorf("after an event, with those behind it gone: %+v, want %+v", got, want)
	}
}
