package inbox

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// retryAfter is how long a peer is asked to wait when the engine is full.
const retryAfter = 5 * time.Second

type metrics struct {
	requests         *prometheus.CounterVec
	activities       *prometheus.CounterVec
	ignored          *prometheus.CounterVec
	synchronizations *prometheus.CounterVec
	journal          *prometheus.GaugeVec
	waiting          *prometheus.GaugeVec
	parked           prometheus.Gauge
	oldest           *prometheus.GaugeVec
	relayed          *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_requests_total", Help: "Requests to inboxes, by how they ended.",
		}, []string{"outcome"}),
		activities: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_activities_total", Help: "Activities that reached a user's writer, by what became of them.",
		}, []string{"outcome"}),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_ignored_total", Help: "Activities that were answered 202 and kept for nobody, by reason.",
		}, []string{"reason"}),
		synchronizations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_synchronizations_total", Help: "Senders whose followers here were compared with those who follow them, by what came of it.",
		}, []string{"outcome"}),
		relayed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_relay_activities_total", Help: "Activities that relays passed on, by what became of them.",
		}, []string{"outcome"}),
		journal: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_inbox_journal_rows", Help: "Activities in the intake journal.",
		}, nil),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_inbox_waiting", Help: "Activities that wait for a user each: queued in memory, or parked in the intake journal.",
		}, []string{"state"}),
		parked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lightweb_inbox_parked_users", Help: "Users who cannot take what comes, or are still taking what came meanwhile.",
		}),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_inbox_journal_oldest_seconds", Help: "Age of the oldest activity in the intake journal; 0 when it is empty.",
		}, nil),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.activities, m.ignored, m.synchronizations, m.relayed, m.journal, m.waiting, m.parked, m.oldest)
	}
	for _, state := range []string{"queued", "parked"} {
		m.waiting.WithLabelValues(state).Set(0) // shown from the start
	}
	m.journal.WithLabelValues().Set(0)
	m.oldest.WithLabelValues().Set(0)
	return m
}

// unread takes away what is read from the journal: a number that was right once is worse than none.
func (m metrics) unread() {
	m.journal.Reset()
	m.oldest.Reset()
	m.waiting.DeleteLabelValues("parked")
}
