package delivery

import (
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FE-08: each server gets the digest of those followers that are its own.
func TestEachServerIsToldOfItsFollowers(t *testing.T) {
	t.Parallel()
	follower := func(id vocab.ID, shared bool) user.Destination {
		d := user.Destination{Actor: id, Inbox: id + "/inbox"}
		if shared {
			d.SharedInbox = vocab.ID(id.Origin() + "/inbox")
		}
		return d
	}
	owner := func(id vocab.ID) (vocab.Username, bool) { return alice, id.Host() == "here.example" }
	followers := []user.Destination{follower("https://p.example/a", true), follower("https://p.example/b", false), follower("https://P.example:443/c", true),
		follower("https://p.example:8443/d", true), follower("http://p.example/e", true), follower("https://here.example/f", false)}
	named := []user.Destination{{Actor: "https://q.example/g", Inbox: "https://q.example/g/inbox"}}
	inboxes := Destinations(followers, named, owner)
	AddFollowersDigests(inboxes, followers)
	want := map[string]vocab.FollowersDigest{
		"https://p.example":      vocab.DigestOf("https://p.example/a", "https://p.example/b", "https://P.example:443/c"),
		"https://p.example:8443": vocab.DigestOf("https://p.example:8443/d"),
		"http://p.example":       vocab.DigestOf("http://p.example/e"),
		"https://q.example":      {}, // no actor of this server follows
	}
	if len(inboxes) != 6 {
		t.Fatalf("%d inboxes, want 6", len(inboxes))
	}
	for _, i := range inboxes {
		switch digest, remote := want[i.URL.Origin()]; {
		case !remote && i.FollowersDigest != nil:
			t.Errorf("%s is told of followers", i.URL)
		case remote && string(i.FollowersDigest) != string(digest[:]):
			t.Errorf("%s is told %x, want %x", i.URL, i.FollowersDigest, digest)
		}
	}
}

func TestAServerWithTooManyFollowersIsToldNothing(t *testing.T) {
	t.Parallel()
	followers := make([]user.Destination, vocab.MaxSynchronized+1)
	for i := range followers {
		followers[i] = user.Destination{Actor: vocab.ID("https://p.example/" + string(rune('a'+i%26))), SharedInbox: "https://p.example/inbox"}
	}
	for n, told := range map[int]bool{vocab.MaxSynchronized: true, vocab.MaxSynchronized + 1: false} {
		inboxes := []user.Inbox{{URL: "https://p.example/inbox", Host: "p.example"}}
		AddFollowersDigests(inboxes, followers[:n])
		if got := inboxes[0].FollowersDigest != nil; got != told {
			t.Errorf("of %d followers it is told: %t, want %t", n, got, told)
		}
	}
}

// Only the first attempt at a delivery sends the digest of followers. At a retry the followers may
// have changed.
func TestOnlyTheFirstAttemptSaysWhoFollows(t *testing.T) {
	t.Parallel()
	digest := vocab.DigestOf("https://p.example/a")
	said := func(u vocab.Username, d vocab.FollowersDigest) vocab.Synchronization {
		return vocab.Synchronization{Collection: "https://here.example/f", URL: "https://here.example/s", Digest: d}
	}
	for _, tt := range []struct {
		name string
		with func(vocab.Username, vocab.FollowersDigest) vocab.Synchronization
		owed user.Delivery
		want bool
	}{
		{"the first attempt", said, user.Delivery{FollowersDigest: digest[:]}, true},
		{"a retry", said, user.Delivery{FollowersDigest: digest[:], Attempts: 1}, false},
		{"not to followers", said, user.Delivery{}, false},
		{"by the instance", said, user.Delivery{FollowersDigest: digest[:], Instance: true}, false},
		{"nobody to say it", nil, user.Delivery{FollowersDigest: digest[:]}, false},
	} {
		want := ""
		if tt.want {
			want = said(alice, digest).String()
		}
		s := &sender{Deps: &Deps{Synchronization: tt.with}}
		if got := s.synchronizationField(&row{Delivery: tt.owed, user: alice}); got != want {
			t.Errorf("%s says %q, want %q", tt.name, got, want)
		}
	}
}
