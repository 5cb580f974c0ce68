package delivery

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestDestinations(t *testing.T) {
	t.Parallel()
	at := func(host, name string, shared bool) user.Destination {
		d := user.Destination{Actor: vocab.ID("https://" + host + "/" + name), Inbox: vocab.ID("https://" + host + "/" + name + "/inbox")}
		if shared {
			d.SharedInbox = vocab.ID("https://" + host + "/inbox")
		}
		return d
	}
	owner := func(id vocab.ID) (vocab.Username, bool) { return alice, id.Host() == "here.example" }
	for _, c := range []struct {
		name             string
		followers, named []user.Destination
		want             []user.Inbox
	}{
		{
			name:      "followers behind a shared inbox get it once, the one without by itself",
			followers: []user.Destination{at("p", "a", true), at("p", "b", true), at("q", "c", false)},
			want: []user.Inbox{
				{URL: "https://p/inbox", Host: "p", Targets: []vocab.ID{"https://p/a", "https://p/b"}},
				{URL: "https://q/c/inbox", Host: "q", Targets: []vocab.ID{"https://q/c"}},
			},
		},
		{
			name:  "who is named gets it in the personal inbox",
			named: []user.Destination{at("p", "a", true), at("p", "b", true), at("p", "a", true)},
			want: []user.Inbox{
				{URL: "https://p/a/inbox", Host: "p", Targets: []vocab.ID{"https://p/a"}},
				{URL: "https://p/b/inbox", Host: "p", Targets: []vocab.ID{"https://p/b"}},
			},
		},
		{
			name:      "a follower who is named gets it once",
			followers: []user.Destination{at("p", "a", true)},
			named:     []user.Destination{at("p", "a", true)},
			want:      []user.Inbox{{URL: "https://p/inbox", Host: "p", Targets: []vocab.ID{"https://p/a"}}},
		},
		{
			name:      "local recipients get it in their own inbox, with no host",
			followers: []user.Destination{at("here.example", "bob", true)},
			named:     []user.Destination{at("here.example", "eve", true)},
			want: []user.Inbox{
				{URL: "https://here.example/bob/inbox", Targets: []vocab.ID{"https://here.example/bob"}},
				{URL: "https://here.example/eve/inbox", Targets: []vocab.ID{"https://here.example/eve"}},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.want, Destinations(c.followers, c.named, owner)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMergeKeepsEveryInboxOnce(t *testing.T) {
	t.Parallel()
	got := MergeInboxes(
		[]user.Inbox{{URL: "https://p/inbox", Host: "p", Targets: []vocab.ID{"https://p/a"}}},
		[]user.Inbox{{URL: "https://p/inbox", Host: "p", Targets: []vocab.ID{"https://p/a", "https://p/b"}}, {URL: "https://q/inbox", Host: "q", Targets: []vocab.ID{"https://q/c"}}},
	)
	want := []user.Inbox{{URL: "https://p/inbox", Host: "p", Targets: []vocab.ID{"https://p/a", "https://p/b"}}, {URL: "https://q/inbox", Host: "q", Targets: []vocab.ID{"https://q/c"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
