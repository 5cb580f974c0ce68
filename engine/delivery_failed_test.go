package engine_test

import (
	"slices"
	"testing"
)

// A stranger cannot fill the window of events: no event tells of a failed delivery that its
// activity alone has caused. A failed delivery of the user's own answer is told.
func TestOnlyFailedDeliveriesOfTheUsersOwnActionsAreTold(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	h := s.against(answers(501))
	for range 3 {
		s.accepted(s.post(h.Actor, s.alice.ID+"/inbox", s.does(h.Actor, "Follow", s.alice.ID)))
	}
	s.settle()
	s.ended(h, 1, `(SELECT type FROM delivery_jobs j WHERE j.id = job_id), status`, "Accept failed")
	told := func() []string {
		return s.alice.Column(s, `SELECT payload->>'activityType' FROM event_outbox WHERE type = 'delivery.failed'`)
	}
	if got := told(); len(got) != 0 {
		t.Errorf("alice is told that %q failed, want nothing of what strangers cause", got)
	}
	s.alice.Do(t, "RejectFollow", map[string]any{"actorUri": string(h.ID)})
	s.settle()
	s.ended(h, 1, `(SELECT type FROM delivery_jobs j WHERE j.id = job_id), status`, "Accept failed", "Reject failed")
	if got := told(); !slices.Equal(got, []string{"Reject"}) {
		t.Errorf("alice is told that %q failed, want her own Reject", got)
	}
}
