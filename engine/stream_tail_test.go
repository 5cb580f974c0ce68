package engine_test

import (
	"encoding/json"
	"fmt"
	"regexp"
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
