package keyspace

import "github.com/prometheus/client_golang/prometheus"

// metrics holds the metrics of calls to Redis.
type metrics struct {
	up    *prometheus.GaugeVec
	calls *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_redis_up",
			Help: "1 while Redis answers, else 0, by what it is used for.",
		}, []string{"role"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_redis_calls_total",
			Help: "Calls to Redis by how they ended: ok; refused by the server; away, without an answer in time; skipped, while it is away.",
		}, []string{"role", "outcome"}),
	}
	if r != nil {
		r.MustRegister(m.up, m.calls)
	}
	return m
}
