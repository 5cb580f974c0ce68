package conversation_test

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// The events of this test make a registry show all of its metrics.
func TestMetricsTellWhatConversationsDo(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	early, _ := s.request(s.alice, s.group, mlstest.Change{})
	far, _ := s.request(s.bob, s.group, mlstest.Change{})
	winner, next := s.request(s.alice, s.group, mlstest.Change{})
	send := func() error { _, err := s.send(s.bob, s.group.Message()); return err }
	for range 2 { // the first is accepted, the second gets the same answer
		if _, err := s.registry.Commit(t.Context(), s.at, winner); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.registry.Commit(t.Context(), s.at, early)
	s.wantConflict("a commit of the epoch before", err, "epoch_conflict")
	_, err = s.registry.Commit(t.Context(), s.at, far)
	s.wantConflict("a commit of a member elsewhere", err, "epoch_conflict")
	s.group = next
	_, err = s.send(s.bob, mlstest.NewGroup(s.bob).Message())
	s.wantRefused("a message of another group", err, fault.Invalid, "wrong_group")
	g.setWithin(func() { panic("as the test wants") })
	if err := send(); fault.KindOf(err) != fault.Internal {
		t.Errorf("a message whose conversation panics: %v", err)
	}
	g.setWithin(func() {})
	for s.registry.DropIdle() > 0 { // wait until the worker has ended
		s.registry.Waiting(s.at)
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	got, want := s.metrics(), map[string]float64{
		"lightweb_conversation_live": 1, "lightweb_mls_quarantined": 0,
		"lightweb_conversation_starts_total": 2, "lightweb_conversation_stops_total": 1, "lightweb_conversation_restarts_total": 1,
		"lightweb_mls_mailbox_depth": 7, "lightweb_mls_epoch_conflicts_total local": 1, "lightweb_mls_epoch_conflicts_total remote": 1, "lightweb_mls_idempotent_replays_total": 1, "lightweb_mls_overload_total": 0,
		"lightweb_mls_op_seconds commit accepted": 2, "lightweb_mls_op_seconds commit conflict": 2,
		"lightweb_mls_op_seconds message accepted": 1, "lightweb_mls_op_seconds message refused": 1, "lightweb_mls_op_seconds message failed": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("the metrics are %v, want %v", got, want)
	}
}

// metrics returns the metrics of the scene's registry by their names and labels. For a histogram
// it returns the number of its values.
func (s *scene) metrics() map[string]float64 {
	s.Helper()
	families, err := s.registry.Metrics.(prometheus.Gatherer).Gather()
	if err != nil {
		s.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}
