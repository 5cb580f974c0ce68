package inbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The user has muted the author of a post or a word in it. The post is stored, but it enters no
// feed, and its one event is not a mention.
func TestMutedPostsEnterNoFeed(t *testing.T) {
	note := `{"id":"p:/creates/001","type":"Create","actor":"p:/carol","to":"as:Public","cc":"us:/alice","object":{"id":"p:/notes/001","type":"Note","attributedTo":"p:/carol","to":"as:Public","cc":"us:/alice",
		"content":"<p>No <b>Spoilers</b>, please</p>","tag":[{"type":"Mention","href":"us:/alice"},{"type":"Hashtag","name":"#cats"}]}}`
	for _, c := range []struct {
		name  string
		mutes func(*peertest.Scene) registry.Moderation
		muted bool
	}{
		{"nothing", func(*peertest.Scene) registry.Moderation { return registry.Moderation{} }, false},
		{"its actor", func(s *peertest.Scene) registry.Moderation {
			return registry.Moderation{MutedActors: []vocab.ID{s.ID("p:/carol")}}
		}, true},
		{"another actor", func(s *peertest.Scene) registry.Moderation {
			return registry.Moderation{MutedActors: []vocab.ID{s.ID("p:/carola")}}
		}, false},
		{"its domain", func(s *peertest.Scene) registry.Moderation {
			host, _, _ := strings.Cut(s.ID("p:/carol").Host(), ":")
			return registry.Moderation{MutedDomains: []string{host}}
		}, true},
		{"a word of it", func(*peertest.Scene) registry.Moderation {
			return registry.Moderation{MutedKeywords: []string{"spoilers"}}
		}, true},
		{"a tag of it", func(*peertest.Scene) registry.Moderation {
			return registry.Moderation{MutedKeywords: []string{"Cats"}}
		}, true},
		{"a part of a word", func(*peertest.Scene) registry.Moderation {
			return registry.Moderation{MutedKeywords: []string{"spoiler"}}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.Follows("p:/carol")
			err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error {
				now.Moderation = c.mutes(s)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			changes := s.Changes(func() { s.MustSend("p:/carol", mine, note) })
			has := func(part string) bool {
				return slices.ContainsFunc(changes, func(change string) bool { return strings.Contains(change, part) })
			}
			if !has("activity inbound Create") || !has("event create.received") {
				t.Errorf("it is not stored and told: %q", changes)
			}
			if got := len(shownIn(t, s, "main")) == 0; got != c.muted {
				t.Errorf("it is in no feed: %t, want %t", got, c.muted)
			}
			if got := !has("event mention.received"); got != c.muted {
				t.Errorf("it is no mention: %t, want %t", got, c.muted)
			}
		})
	}
}

// A post names itself as its quote authorization, and its server shows it with other words. The
// muted word in the post still hides it.
func TestAStampHidesNoMutedWord(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	if err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error { now.Moderation.MutedKeywords = []string{"spoilers"}; return nil }); err != nil {
		t.Fatal(err)
	}
	s.Serve("p:/notes/1", written("p:/carol", "p:/notes/1", "hello"))
	post := strings.Replace(written("p:/carol", "p:/notes/1", "spoilers"), `{`, `{"quote":"p:/notes/2","quoteAuthorization":"p:/notes/1",`, 1)
	s.MustSend("p:/carol", mine, create("p:/carol", "001", post))
	if got := shownIn(t, s, "main"); len(got) != 0 {
		t.Errorf("the feed has %q", got)
	}
}

// A stranger's private message that a mute of the user covers waits among the requests. The mute
// hides it there, and no event tells of it.
func TestAMutedStrangersMessageIsNotTold(t *testing.T) {
	for name, mutes := range map[string]func(*peertest.Scene) registry.Moderation{
		"its actor": func(s *peertest.Scene) registry.Moderation {
			return registry.Moderation{MutedActors: []vocab.ID{s.ID("p:/dave")}}
		},
		"a word of it": func(*peertest.Scene) registry.Moderation { return registry.Moderation{MutedKeywords: []string{"psst"}} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error {
				now.Moderation = mutes(s)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/dave", mine, letter(1))
			if got := shownIn(t, s, "requests"); !slices.Equal(got, []string{"001"}) {
				t.Errorf("the requests are %q, want the letter for when the mute ends", got)
			}
			if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); len(got) != 0 {
				t.Errorf("events: %q, want none", got)
			}
		})
	}
}

// An encrypted message of a muted actor is stored, and devices learn of it. No event notifies the
// user. The messages of other members are told as before.
func TestMutedActorsEncryptedMessagesDoNotNotify(t *testing.T) {
	for name, mutes := range map[string]bool{"nobody": false, "its sender": true} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t).begun()
			err := h.Registry.UpdateUser(h.Alice, func(now *registry.User) error {
				if mutes {
					now.Moderation = registry.Moderation{MutedActors: []vocab.ID{h.ID("p:/dave")}}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			early := h.group.Message()
			h.sends(mine, "PrivateMessage", early) // the host has yet to put it in order
			if err := h.put("PrivateMessage", early, 1); err != nil {
				t.Fatal(err)
			}
			if err := h.put("PrivateMessage", h.group.Message(), 1); err != nil {
				t.Fatal(err)
			}
			want := []string{"mls.message.received", "mls.message.received"}
			if !mutes {
				want = []string{"chatmessage.received", "chatmessage.received", "mls.message.received", "mls.message.received"}
			}
			h.want("events", `SELECT type FROM event_outbox WHERE type LIKE '%message.received' ORDER BY type`, want...)
		})
	}
}
