package handler_test

import (
	"slices"
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
