package inbox_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// move moves carol's account to q:/carol. Both accounts must confirm it: see confirmMove.
const move = `{"id":"p:/moves/1","type":"Move","actor":"p:/carol","object":"p:/carol","target":"q:/carol","to":[%q,"p:/carol/followers"]}`

// confirmMove lets both of carol's accounts confirm that she moved.
func confirmMove(s *peertest.Scene) {
	old, now := s.Actor("p:/carol"), s.Actor("q:/carol")
	old.Doc["movedTo"], now.Doc["alsoKnownAs"] = string(now.ID), []any{string(old.ID)}
	old.Show()
	now.Show()
}

// listFollowers returns the users that the instance database marks as possible followers of the
// named actor.
func listFollowers(t *testing.T, s *peertest.Scene, name string) []vocab.Username {
	t.Helper()
	users, err := s.Store.Instance.Acquaintances.Users(t.Context(), s.ID(name), true)
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// PAY-05: a Move marks only users who followed the old account as followers of the new account.
// Activities to followers cost their sender nothing, so a sender must not be able to mark
// strangers as its followers.
func TestAMoveMarksOnlyFollowersOfTheOldAccount(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sends func(alice, bob *peertest.Scene, body string)
	}{
		{"that names a stranger", func(alice, _ *peertest.Scene, body string) { alice.MustSend("p:/carol", shared, body) }},
		{"to the own inbox of a stranger", func(_, bob *peertest.Scene, body string) { bob.MustSend("p:/carol", mine, body) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			alice := newScene(t)
			bob := alice.With("bob")
			alice.Follows("p:/carol")
			confirmMove(alice)
			tt.sends(alice, bob, fmt.Sprintf(move, bob.Long("us:/alice")))
			settled(t, alice, bob)
			if got := listFollowers(t, alice, "q:/carol"); !slices.Equal(got, []vocab.Username{alice.Alice}) {
				t.Errorf("%v may follow the new account, want alice, who followed the old one", got)
			}
			if got := alice.Column(t, alice.Alice, `SELECT actor_uri FROM relationships WHERE type = 'following'`); !slices.Equal(got, []string{alice.Long("q:/carol")}) {
				t.Errorf("alice follows %q, want the new account", got)
			}
		})
	}
}

func TestAMoveForStrangersAloneIsIgnoredAndNobodyIsAsked(t *testing.T) {
	s := newScene(t)
	confirmMove(s)
	s.MustSend("p:/carol", mine, fmt.Sprintf(move, s.Long("us:/alice")))
	if n := s.Asked("q:/carol"); n != 0 {
		t.Errorf("the target's server was asked %d times, want never", n)
	}
	if err := s.Inbox.FlushIgnored(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row, err := s.Store.Instance.Ignored.Find(t.Context(), s.ID("p:/moves/1")); err != nil || row == nil || row.Reason != "unrelated" {
		t.Errorf("ignored as %+v, %v; want unrelated", row, err)
	}
}

// A Move that waits in the journal also marks only followers of the old account. An earlier
// version of the engine may have stored the Move for other users, too.
func TestAMoveThatWaitedMarksOnlyFollowersOfTheOldAccount(t *testing.T) {
	alice := newScene(t)
	bob := alice.With("bob")
	confirmMove(alice)
	alice.Follows("p:/carol")
	alice.Followed("q:/carol")
	a, err := vocab.ParseActivity([]byte(alice.Long(fmt.Sprintf(move, bob.Long("us:/alice")))))
	if err != nil {
		t.Fatal(err)
	}
	both := []vocab.Username{alice.Alice, bob.Alice}
	in := instance.Intake{Key: instance.KeyOf(a.ID, a.Actor), Raw: a.Raw, Fetched: []byte(`{}`), Waiting: both, Named: both}
	if err := alice.Store.Instance.Journal.Resubmit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := alice.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	settled(t, alice, bob)
	if got := listFollowers(t, alice, "q:/carol"); !slices.Equal(got, []vocab.Username{alice.Alice}) {
		t.Errorf("%v may follow the new account, want alice, who followed the old one", got)
	}
}

// retrySetAside sets an activity aside for alice and retries it.
func retrySetAside(t *testing.T, s *peertest.Scene, id, body string) {
	t.Helper()
	if _, err := s.DB(t, s.Alice).ExecContext(t.Context(), `INSERT INTO poison (uri, raw, reason) VALUES ($1, $2, 'a bug')`, s.Long(id), s.Long(body)); err != nil {
		t.Fatal(err)
	}
	if err := s.Inbox.Retry(t.Context(), s.Alice, poisoned(t, s)[0]); err != nil {
		t.Fatal(err)
	}
	if aside := poisoned(t, s); len(aside) != 0 {
		t.Errorf("set aside is %+v, want nothing", aside)
	}
}

func TestAMoveThatWasSetAsideForAStrangerIsIgnored(t *testing.T) {
	s := newScene(t)
	confirmMove(s)
	retrySetAside(t, s, "p:/moves/1", fmt.Sprintf(move, "us:/alice"))
	if err := s.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	if got := listFollowers(t, s, "q:/carol"); len(got) != 0 {
		t.Errorf("%v may follow the new account, want nobody", got)
	}
}

// An activity was set aside because its recipient was suspended. It takes effect once the
// recipient is active again.
func TestWhatWasSetAsideForASuspendedUserTakesEffectLater(t *testing.T) {
	for _, tt := range []struct{ name, id, body, table, want string }{
		{"a Move of a followed account", "p:/moves/1", fmt.Sprintf(move, "us:/alice"), "SELECT actor_uri FROM relationships WHERE type = 'following'", "q:/carol"},
		{"a boost", "p:/boosts/1", `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol","object":"us:/alice/objects/1","to":["as:Public"]}`, "SELECT activity_uri FROM reactions", "p:/boosts/1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			confirmMove(s)
			s.Follows("p:/carol")
			s.Followed("q:/carol")
			s.Posts("us:/alice/objects/1", "as:Public")
			if err := s.Store.Instance.Users.SetState(t.Context(), s.Alice, instance.UserSuspended); err != nil {
				t.Fatal(err)
			}
			retrySetAside(t, s, tt.id, tt.body)
			if n := journal(t, s); n.Rows != 1 {
				t.Errorf("in the journal: %+v, want the activity", n)
			}
			if err := s.Store.Instance.Users.SetState(t.Context(), s.Alice, instance.UserActive); err != nil {
				t.Fatal(err)
			}
			if err := s.Inbox.Tend(); err != nil {
				t.Fatal(err)
			}
			settled(t, s)
			if got := s.Column(t, s.Alice, tt.table); !slices.Equal(got, []string{s.Long(tt.want)}) {
				t.Errorf("%q gives %q, want %s", tt.table, got, tt.want)
			}
		})
	}
}
