package handler_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/migrations"
)

// Pixelfed, Wafrn, Takahē and PeerTube send every Follow of one account by another under one id.
func TestAFollowComesAgainUnderItsID(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const undo = `{"id":"p:/follows/1/undo","type":"Undo","actor":"p:/carol","object":` + follow + `}`
	const (
		none    = ""
		pending = "pending"
	)
	sends := func(s *peertest.Scene, body string) {
		t.Helper()
		s.Later(2 * time.Second)
		s.MustSend("p:/carol", "us:/alice/inbox", body)
	}
	is := func(s *peertest.Scene, when, want string) {
		t.Helper()
		got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'follower'`)
		if want == none && len(got) > 0 || want != none && !slices.Equal(got, []string{want}) {
			t.Errorf("%s carol's follow is %q, want %q", when, got, want)
		}
	}
	counts := func(s *peertest.Scene, when, what, query, want string) {
		t.Helper()
		if got := s.Column(t, s.Alice, `SELECT count(*) FROM `+query); got[0] != want {
			t.Errorf("%s there are %s %s, want %s", when, got[0], what, want)
		}
	}

	s := stage.Scene(t)
	for _, step := range []struct {
		when, want string
		after      time.Duration
	}{{"at first", "1", 0}, {"a minute later", "1", time.Minute}, {"an hour later", "2", time.Hour}, {"right after that", "2", 0}} {
		s.Later(step.after)
		sends(s, follow)
		counts(s, step.when, "Accepts", `deliveries`, step.want)
		counts(s, step.when, "events", `event_outbox WHERE type = 'follow.received'`, "1")
		is(s, step.when, "accepted")
	}

	s = stage.Scene(t)
	sends(s, follow)
	s.Act("p:/carol", `{"id":"us:/alice/activities/r","type":"Reject","actor":"us:/alice","object":"p:/follows/1"}`)
	is(s, "after the Reject", none)
	approving(s)
	rows := func() []string { return s.Column(t, s.Alice, `SELECT id FROM activities WHERE type = 'Follow'`) }
	before := rows()
	sends(s, follow)
	if after := rows(); len(after) != 1 || slices.Equal(before, after) {
		t.Errorf("the row of the Follow %q became %q, want a new one", before, after)
	}
	is(s, "after the next Follow", pending)
	counts(s, "after the next Follow", "events", `event_outbox WHERE type = 'follow.received'`, "2")
	sends(s, follow)
	counts(s, "after a third Follow", "events", `event_outbox WHERE type = 'follow.received'`, "2")

	s = stage.Scene(t)
	sends(s, follow)
	s.Act("p:/carol", `{"id":"us:/alice/activities/b","type":"Block","actor":"us:/alice","object":"p:/carol"}`)
	sends(s, follow)
	is(s, "of a blocked actor", none)

	s = stage.Scene(t)
	first := s.Request("p:/carol", "us:/alice/inbox", follow)
	if err := s.Receive(first, "us:/alice/inbox", follow); err != nil {
		t.Fatal(err)
	}
	sends(s, undo)
	is(s, "after the Undo", none)
	if err := s.Receive(first, "us:/alice/inbox", follow); err != nil {
		t.Fatal(err)
	}
	is(s, "after the first request once more", none)
	sends(s, follow)
	is(s, "after the Follow that follows an Undo", "accepted")
	sends(s, undo)
	is(s, "after the same Undo", none)
	sends(s, undo)
	sends(s, follow)
	is(s, "after the third Follow", "accepted")

	s = stage.Scene(t)
	sends(s, undo)
	sends(s, follow)
	is(s, "of a stranger whose Undo came first", none)
}

// A request that is sent once more has no effect, although its signature is still valid, whatever
// has ended the follow.
func TestAFollowThatIsSentOnceMoreBringsNobodyBack(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const undo = `{"id":"p:/follows/1/undo","type":"Undo","actor":"p:/carol","object":` + follow + `}`
	sends := func(s *peertest.Scene, body string) (again func()) { return sendsLater(t, s, body) }
	followers := func(s *peertest.Scene, when, want string) {
		t.Helper()
		if got := s.Column(t, s.Alice, `SELECT count(*) FROM relationships WHERE type = 'follower'`); got[0] != want {
			t.Errorf("%s there are %s followers, want %s", when, got[0], want)
		}
	}

	for name, end := range map[string]string{
		"an Undo that names no id":        `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"type":"Follow","actor":"p:/carol","object":"us:/alice"}}`,
		"an Undo that names another id":   `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"id":"p:/follows/9","type":"Follow","actor":"p:/carol","object":"us:/alice"}}`,
		"an Undo that names no object":    `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"type":"Follow","actor":"p:/carol"}}`,
		"an Undo of long ago, so it says": `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","published":"2001-01-01T00:00:00Z","object":` + follow + `}`,
		"a Block":                         `{"id":"p:/blocks/1","type":"Block","actor":"p:/carol","object":"us:/alice"}`,
	} {
		s := stage.Scene(t)
		first := sends(s, follow)
		second := sends(s, follow)
		sends(s, end)
		followers(s, "after "+name, "0")
		s.Later(2 * time.Second)
		first()
		second()
		followers(s, "after "+name+" and the first Follows", "0")
		sends(s, follow)
		followers(s, "after "+name+" and a new Follow", "1")
	}

	s := stage.Scene(t)
	fast := s.Actor("p:/carol").Post(t, s.Long("us:/alice/inbox"), s.MediaType, []byte(s.Long(follow)), s.Dialect, s.Now().Add(50*time.Minute))
	fastUndo := s.Actor("p:/carol").Post(t, s.Long("us:/alice/inbox"), s.MediaType, []byte(s.Long(undo)), s.Dialect, s.Now().Add(51*time.Minute))
	for _, r := range []struct {
		*http.Request
		body string
	}{{fast, follow}, {fastUndo, undo}, {fast, follow}} {
		if err := s.Receive(r.Request, "us:/alice/inbox", r.body); err != nil {
			t.Fatal(err)
		}
	}
	followers(s, "of a server whose clock is fast, after its Follow once more", "0")

	s = stage.Scene(t)
	sends(s, follow)
	firstUndo := sends(s, undo)
	again := sends(s, follow)
	firstUndo()
	followers(s, "after the first Undo once more", "1")
	sends(s, undo)
	followers(s, "after the second Undo", "0")
	s.Later(2 * time.Second)
	again()
	followers(s, "after the second Follow once more", "0")
}

// The migration that adds the ends of follows finds those of before it.
func TestTheMigrationFindsWhatHasEnded(t *testing.T) {
	t.Parallel()
	up, err := migrations.FS.ReadFile("user/0043_ended_follows.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	next, err := migrations.FS.ReadFile("user/0045_ended_activities.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	ends := func(s *peertest.Scene) []string {
		return s.Column(t, s.Alice, `SELECT encode(digest, 'hex') FROM ended_activities`)
	}
	for name, end := range map[string]func(s *peertest.Scene){
		"nothing": func(*peertest.Scene) {},
		"an Undo": func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":`+follow+`}`)
		},
		"an Undo by id": func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":"p:/follows/1"}`)
		},
		"an Undo of a Like": func(s *peertest.Scene) {
			const like = `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`
			posted("as:Public")(s)
			s.MustSend("p:/carol", "us:/alice/inbox", like)
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":`+like+`}`)
		},
		"a Reject": func(s *peertest.Scene) {
			s.Act("p:/carol", `{"id":"us:/alice/activities/r","type":"Reject","actor":"us:/alice","object":"p:/follows/1"}`)
		},
	} {
		s := stage.Scene(t)
		s.MustSend("p:/carol", "us:/alice/inbox", follow)
		end(s)
		want := ends(s)
		if (len(want) > 0) != (name != "nothing") {
			t.Errorf("after %s the ends are %q", name, want)
		}
		if _, err := s.DB(t, s.Alice).Exec(`DROP TABLE ended_activities; ` + string(up) + string(next)); err != nil {
			t.Fatal(err)
		}
		if got := ends(s); !slices.Equal(got, want) {
			t.Errorf("after %s the migration finds %q, want %q", name, got, want)
		}
	}
}

// An account that deleted itself and comes back has the id of its first Follow again.
func TestAFollowOfAnActorThatCameBackTakesEffect(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.MustSend("p:/carol", "us:/alice/inbox", follow)
	s.Later(time.Minute)
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`)
	const status = `SELECT status FROM relationships WHERE type = 'follower'`
	if got := s.Column(t, s.Alice, status); len(got) > 0 {
		t.Errorf("after the Delete carol's follow is %q", got)
	}
	s.Later(25 * time.Hour) // her server is asked again, and still serves her
	s.MustSend("p:/carol", "us:/alice/inbox", follow)
	if got := s.Column(t, s.Alice, status); !slices.Equal(got, []string{"accepted"}) {
		t.Errorf("after she came back carol's follow is %q, want accepted", got)
	}
}

// The follow of long ago leaves no row behind, but its server may still send the same id.
func TestAFollowComesAgainAfterItsRowsArePruned(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const undo = `{"id":"p:/follows/1/undo","type":"Undo","actor":"p:/carol","object":` + follow + `}`
	for name, end := range map[string]func(s *peertest.Scene){
		"Undo": func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/alice/inbox", undo) },
		"Reject": func(s *peertest.Scene) {
			s.Act("p:/carol", `{"id":"us:/alice/activities/r","type":"Reject","actor":"us:/alice","object":"p:/follows/1"}`)
		},
	} {
		s := stage.Scene(t)
		s.MustSend("p:/carol", "us:/alice/inbox", follow)
		s.Later(time.Minute)
		end(s)
		if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'follower'`); len(got) > 0 {
			t.Errorf("after the %s carol's follow is %q", name, got)
		}
		s.Column(t, s.Alice, `DELETE FROM activities RETURNING uri`)
		s.Later(200 * 24 * time.Hour)
		s.MustSend("p:/carol", "us:/alice/inbox", follow)
		if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'follower'`); !slices.Equal(got, []string{"accepted"}) {
			t.Errorf("long after the %s carol's follow is %q, want accepted", name, got)
		}
	}
}

// sendsLater lets carol send an activity to alice two seconds later. The function that it returns
// sends the same request once more.
func sendsLater(t *testing.T, s *peertest.Scene, body string) (again func()) {
	t.Helper()
	s.Later(2 * time.Second)
	r := s.Request("p:/carol", "us:/alice/inbox", body)
	again = func() {
		t.Helper()
		if err := s.Receive(r, "us:/alice/inbox", body); err != nil {
			t.Fatal(err)
		}
	}
	again()
	return again
}
