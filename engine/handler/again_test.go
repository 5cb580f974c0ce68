package handler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
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
	sends(s, follow)
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
