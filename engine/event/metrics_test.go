package event_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// metric returns the value of a metric of the running emitter. The parameter label is the value of
// the metric's label, or empty.
func (r *rig) metric(name, label string) float64 {
	r.t.Helper()
	all, err := r.counts.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	r.t.Fatalf("there is no metric %s{%s}", name, label)
	return 0
}

// wantMetric waits until a metric has a value.
func (r *rig) wantMetric(name, label string, want float64) {
	r.t.Helper()
	redistest.Eventually(r.t, name+" is right", func() bool { return r.metric(name, label) == want })
}

func TestTheMetricsTellWhatWaits(t *testing.T) {
	t.Parallel()
	r, alice := emitted(t, 3)
	bob := dbtest.User(t, r.store, "bob")
	r.wantMetric("lightweb_events_emitted_total", "", 3)
	r.wantMetric("lightweb_events_waiting", "", 0)
	r.wantMetric("lightweb_event_streams_waiting", "", 0)
	r.wantMetric("lightweb_event_lag_seconds", "", 0)
	r.redis.Kill()
	r.add(alice, 300) // more than the emitter remembers one by one
	r.add(bob, 2)
	r.add(alice, 1)
	r.wantMetric("lightweb_events_waiting", "", 303)
	r.wantMetric("lightweb_event_streams_waiting", "", 2)
	redistest.Eventually(t, "the lag grows", func() bool { return r.metric("lightweb_event_lag_seconds", "") > 0.5 })
	r.redis.Restart()
	r.wantSame(alice)
	r.wantSame(bob)
	r.wantMetric("lightweb_events_waiting", "", 0)
	r.wantMetric("lightweb_event_streams_waiting", "", 0)
	r.wantMetric("lightweb_event_lag_seconds", "", 0)
	if n := r.metric("lightweb_event_streams_repaired_total", ""); n != 1 {
		t.Errorf("%v streams were repaired, want that of alice", n)
	}
}

func TestTheLagOfAGroupEndsWithItsAcknowledgements(t *testing.T) {
	t.Parallel()
	r, _ := emitted(t, 5)
	r.wantMetric("lightweb_event_group_lag", "llm", 5)
	r.wantMetric("lightweb_event_group_lag", "ws", 5)
	read := strings.Fields(r.redis.Do("XREADGROUP", "GROUP", "llm", "p", "COUNT", "3", "STREAMS", "alice:events", ">"))
	for _, word := range read {
		if strings.HasSuffix(word, "-1") || strings.HasSuffix(word, "-2") || strings.HasSuffix(word, "-3") {
			r.redis.Do("XACK", "alice:events", "llm", word)
		}
	}
	r.wantMetric("lightweb_event_group_lag", "llm", 2)
	r.wantMetric("lightweb_event_group_lag", "ws", 5)
}
