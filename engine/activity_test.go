package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/explain"
)

func TestActivityShowTellsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	alice, bob := home.CreateUser(t, "alice"), home.CreateUser(t, "bob")
	home.CreateUser(t, "carol") // carol follows nobody and has no followers
	alice.Do(t, "Follow", map[string]any{"actorUri": bob.ID})
	enginetest.Eventually(t, "bob lets alice follow", func() bool {
		return len(alice.Column(t, `SELECT 1 FROM relationships WHERE status = 'accepted'`)) == 1
	})
	create, post := bob.Post(t, map[string]any{"content": "hello"})
	alice.Await(t, "main", create, func(i enginetest.Item) bool { return i.ActivityURI == create })
	enginetest.Eventually(t, "the delivery is done", func() bool {
		return len(bob.Column(t, `SELECT 1 FROM deliveries WHERE status = 'pending'`)) == 0
	})

	type shown struct {
		Actor string
		Local bool
		Users []struct {
			User, Outcome, Says string
			Acquainted          bool
			Blocks              []string
			Activities          []explain.TracedActivity
			Jobs                []explain.TracedJob
		}
	}
	show := func(code int, want map[string]string, args ...string) (s shown) {
		t.Helper()
		ran := home.Run(t, append([]string{"activity", "show", "--json"}, args...)...)
		if ran.Code != code {
			t.Fatalf("activity show %q ended with %d, want %d\n%s%s", args, ran.Code, code, ran.Stdout, ran.Stderr)
		}
		if want == nil {
			return s
		}
		ran.Decode(t, &s)
		got := map[string]string{}
		for _, u := range s.Users {
			got[u.User] = u.Outcome
		}
		if len(got) != len(want) {
			t.Errorf("activity show %q tells of %v, want %v", args, got, want)
		}
		for u, outcome := range want {
			if got[u] != outcome {
				t.Errorf("activity show %q tells of %v, want %v", args, got, want)
			}
		}
		return s
	}
	for _, id := range []string{create, post} {
		s := show(0, map[string]string{"alice": explain.TraceFeed, "bob": explain.TraceSent}, id)
		if s.Actor != bob.ID || !s.Local || !s.Users[0].Acquainted || len(s.Users[0].Activities) != 1 || !s.Users[0].Activities[0].InFeed {
			t.Errorf("activity show %s tells %+v", id, s)
		}
		if jobs := s.Users[1].Jobs; len(jobs) != 1 || jobs[0].Counts.Delivered != 1 || len(jobs[0].Deliveries) != 1 || string(jobs[0].Deliveries[0].Inbox) != alice.ID+"/inbox" {
			t.Errorf("activity show %s tells of deliveries %+v, want the one to alice", id, jobs)
		}
	}
	show(0, map[string]string{"alice": explain.TraceFeed}, post, "--user", "alice")
	show(66, map[string]string{"carol": explain.TraceNever}, post, "--user", "carol")
	show(66, map[string]string{}, "https://far.example/notes/1")
	show(66, map[string]string{"alice": explain.TraceNever, "bob": explain.TraceNever}, post+"x")
	show(67, nil, post, "--user", "nobody_here")
	show(65, nil, "not an id")

	alice.Column(t, `WITH f AS (DELETE FROM feed), o AS (DELETE FROM objects) DELETE FROM activities WHERE uri = $1`, create)
	show(0, map[string]string{"alice": explain.TraceNotKept, "bob": explain.TraceSent}, create)
	bob.Do(t, "DeleteObject", map[string]any{"objectId": post})
	enginetest.Eventually(t, "alice knows that it was deleted", func() bool { return len(alice.Column(t, `SELECT 1 FROM tombstones`)) == 1 })
	show(0, map[string]string{"alice": explain.TraceDeleted, "bob": explain.TraceDeleted}, post)

	dave := home.CreateUser(t, "dave")
	dave.Do(t, "Block", map[string]any{"actorUri": bob.ID})
	unseen, _ := bob.Post(t, map[string]any{"content": "to who does not want it", "to": []string{dave.ID}})
	enginetest.Eventually(t, "the delivery is done", func() bool {
		return len(bob.Column(t, `SELECT 1 FROM deliveries WHERE status = 'pending'`)) == 0
	})
	if s := show(66, map[string]string{"dave": explain.TraceNever}, unseen, "--user", "dave"); len(s.Users) != 1 || !slices.Equal(s.Users[0].Blocks, []string{bob.ID}) {
		t.Errorf("activity show tells %+v, want bob, blocked by dave", s)
	}

	alice.Column(t, `UPDATE schema_migrations SET dirty = true RETURNING ''`)
	dbtest.EndConnections(t, alice.Home.SQL(t, "lightweb_"+alice.Name))
	parked, _ := bob.Post(t, map[string]any{"content": "to who cannot take it now"})
	enginetest.Eventually(t, "it waits", func() bool { return inboxList(t, home, "alice").Waiting == 1 })
	if s := show(0, map[string]string{"alice": explain.TraceWaiting}, parked, "--user", "alice"); !strings.Contains(s.Users[0].Says, "waits until the user's database can be used: ") {
		t.Errorf("activity show says %q", s.Users[0].Says)
	}
	show(3, map[string]string{"alice": explain.TraceUnreadable}, post+"x", "--user", "alice")
	if ran := home.Run(t, "activity", "show", post+"x"); ran.Code != 3 || !strings.Contains(ran.Stderr, "lightweb db migrate alice --repair") {
		t.Errorf("activity show ended with %d and writes %q, want how to mend alice's database", ran.Code, ran.Stderr)
	}
	alice.Column(t, `UPDATE schema_migrations SET dirty = false RETURNING ''`)
}

func TestActivityShowTellsOfSuspendedUsers(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	alice, bob := home.CreateUser(t, "alice"), home.CreateUser(t, "bob")
	_, post := bob.Post(t, map[string]any{"content": "hello", "to": []string{alice.ID}})
	enginetest.Eventually(t, "alice has it", func() bool { return len(alice.Column(t, `SELECT 1 FROM objects`)) == 1 })
	for _, name := range []string{"alice", "bob"} {
		home.Run(t, "user", "suspend", name)
	}
	ran := home.Run(t, "activity", "show", post, "--json")
	var shown struct {
		Users []struct{ User, Outcome, Says string }
	}
	ran.Decode(t, &shown)
	if ran.Code != 0 || len(shown.Users) != 2 || shown.Users[1].Outcome != explain.TraceSent {
		t.Errorf("activity show ended with %d and tells %+v, want alice and bob, who sent it", ran.Code, shown)
	}
	ran = home.Run(t, "activity", "show", "https://far.example/notes/1", "--user", "alice", "--json")
	ran.Decode(t, &shown)
	if ran.Code != 66 || len(shown.Users) != 1 || !strings.Contains(shown.Users[0].Says, "lightweb user unsuspend alice") {
		t.Errorf("activity show ended with %d and tells %+v, want that alice is suspended", ran.Code, shown)
	}
}
