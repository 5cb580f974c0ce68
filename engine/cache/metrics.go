package cache

import "github.com/prometheus/client_golang/prometheus"

// metrics counts the reads of the cache.
type metrics struct{ reads *prometheus.CounterVec }

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lightweb_cache_reads_total",
		Help: "Reads of the cache by layer (index, documents) and result: hit; miss, read from the database; away, while Redis does not answer.",
	}, []string{"layer", "result"})}
	for _, layer := range []string{"index", "documents"} {
		for _, result := range []string{"hit", "miss", "away"} {
			m.reads.WithLabelValues(layer, result)
		}
	}
	if r != nil {
		r.MustRegister(m.reads)
	}
	return m
}

func (m *metrics) count(layer string, hit bool) {
	m.reads.WithLabelValues(layer, map[bool]string{true: "hit", false: "miss"}[hit]).Inc()
}
