package delivery

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	attempts *prometheus.CounterVec
	inflight prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_delivery_attempts_total",
			Help: "Attempts at deliveries, by what became of the delivery: delivered, retry, waiting, skipped or failed.",
		}, []string{"outcome"}),
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lightweb_delivery_inflight",
			Help: "Attempts at deliveries under way.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.attempts, m.inflight)
	}
	return m
}
