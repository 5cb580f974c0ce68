package intake

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	journal *prometheus.GaugeVec
	waiting *prometheus.GaugeVec
	oldest  *prometheus.GaugeVec
}

// newMetrics registers the metrics. The function stalled returns how many users are stalled.
func newMetrics(reg prometheus.Registerer, stalled func() float64) metrics {
	m := metrics{
		journal: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_inbox_journal_rows", Help: "Activities in the intake journal.",
		}, nil),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_inbox_waiting", Help: "Activities that wait for a user each: queued in memory, or parked in the intake journal.",
		}, []string{"state"}),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_inbox_journal_oldest_seconds", Help: "Age of the oldest activity in the intake journal; 0 when it is empty.",
		}, nil),
	}
	if reg != nil {
		reg.MustRegister(m.journal, m.waiting, m.oldest, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lightweb_inbox_parked_users", Help: "Users who cannot take what comes, or are still taking what came meanwhile.",
		}, stalled))
	}
	for _, state := range []string{"queued", "parked"} {
		m.waiting.WithLabelValues(state).Set(0) // shown from the start
	}
	m.journal.WithLabelValues().Set(0)
	m.oldest.WithLabelValues().Set(0)
	return m
}

// resetJournal removes the values that are read from the journal, because an old value is worse
// than none.
func (m metrics) resetJournal() {
	m.journal.Reset()
	m.oldest.Reset()
	m.waiting.DeleteLabelValues("parked")
}
