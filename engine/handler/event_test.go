package handler_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestEventTypes(t *testing.T) {
	t.Parallel()
	const (
		me        = "https://us.example/users/alice"
		note      = `"object":{"id":"https://them.example/notes/1","type":"Note"}`
		mentioned = `"object":{"id":"https://them.example/notes/1","type":"Note","tag":{"type":"Mention","href":"` + me + `"}}`
		toMe      = `,"to":"` + me + `"`
		public    = `,"to":["as:Public","` + me + `"]`
		inbox     = `,"to":"` + me + `/inbox"` // Discourse addresses an activity only to an inbox
	)
	post := func(members string) string {
		return `"type":"Create","object":{"id":"https://them.example/notes/1","type":"Note",` + members + `}`
	}
	for _, c := range []struct {
		name, activity string
		request        bool
		named, changed bool
		want           []string
	}{
		{name: "a public post", activity: `"type":"Create",` + note + public, named: true, want: []string{"create.received"}},
		{name: "a letter", activity: `"type":"Create",` + note + toMe, named: true, want: []string{"create.received", "dm.received"}},
		{name: "a private post for others", activity: `"type":"Create",` + note + toMe, want: []string{"create.received"}},
		{name: "a public post in an activity for the inbox", activity: post(`"to":"as:Public"`) + inbox, named: true, want: []string{"create.received"}},
		{name: "a letter in an activity for the inbox", activity: post(`"to":"`+me+`"`) + inbox, named: true, want: []string{"create.received", "dm.received"}},
		{name: "a mention in an activity for the inbox", activity: post(`"to":"as:Public","cc":"`+me+`","tag":{"type":"Mention","href":"`+me+`"}`) + inbox, named: true,
			want: []string{"create.received", "mention.received"}},
		{name: "a mention", activity: `"type":"Create",` + mentioned + public, named: true, want: []string{"create.received", "mention.received"}},
		{name: "a mention of whoever is not addressed", activity: `"type":"Create",` + mentioned + `,"to":"as:Public"`, want: []string{"create.received"}},
		{name: "a Like of what mentions", activity: `"type":"Like",` + mentioned + toMe, named: true, want: []string{"like.received"}},
		{name: "a request says nothing else", activity: `"type":"Create",` + mentioned + toMe, named: true, request: true, want: []string{"request.received"}},
		{name: "a changed relationship", activity: `"type":"Accept",` + note, changed: true, want: []string{"accept.received", "relationship.changed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const carol = "https://them.example/users/carol"
			a, err := vocab.ParseActivity([]byte(`{"id":"https://them.example/1","actor":"` + carol + `",` + c.activity + `}`))
			if err != nil {
				t.Fatal(err)
			}
			got := handler.New(nil, nil).EventTypes(&handler.Received{Me: me, Activity: a, Actor: &vocab.Actor{ID: carol, Followers: carol + "/followers"},
				Named: c.named, Request: c.request}, handler.Effects{Changed: c.changed})
			if !slices.Equal(got, c.want) {
				t.Errorf("EventTypes() = %q, want %q", got, c.want)
			}
		})
	}
}

// namedEvent matches the types of events of received activities in the first cell of a row of
// docs/events.md.
var namedEvent = regexp.MustCompile("`([a-z.]+)\\.received`")

// An activity of an unknown type does not take the name of another event, whatever the case of its
// letters. Each event that docs/events.md names is tried.
func TestUnknownTypesTakeNoNamesOfEvents(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"CREATE": "activity.received", "create": "activity.received", "li\u212ae": "activity.received", "MLS.Commit": "activity.received", "FriendRequest": "activity.received",
		"Create": "create.received", "View": "view.received", "lemmy:Foo": "lemmy:foo.received", "https://x.example/ns#DM": "https://x.example/ns#dm.received", "Activity": "activity.received"}
	for line := range strings.Lines(string(page)) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if strings.HasPrefix(line, "| `") {
			for _, m := range namedEvent.FindAllStringSubmatch(cell, -1) {
				want[m[1]], want[strings.ToUpper(m[1])] = "activity.received", "activity.received"
			}
		}
	}
	if len(want) < 10+2*8 {
		t.Errorf("the page names too few events: %v", want)
	}
	for kind, event := range want {
		a, err := vocab.ParseActivity([]byte(`{"id":"https://them.example/1","actor":"https://them.example/users/carol","type":"` + kind + `","object":"https://them.example/2"}`))
		if err != nil {
			t.Fatal(err)
		}
		got := handler.New(nil, nil).EventTypes(&handler.Received{Me: "https://us.example/users/alice", Activity: a, Actor: &vocab.Actor{ID: a.Actor}}, handler.Effects{})
		if !slices.Equal(got, []string{event}) {
			t.Errorf("the events of the type %s are %q, want %q", kind, got, event)
		}
	}
}
