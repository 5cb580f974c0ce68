package db

import "github.com/prometheus/client_golang/prometheus"

type connMetrics struct {
	opened, failed prometheus.Counter
	took           *prometheus.HistogramVec
}

func newConnMetrics(reg prometheus.Registerer) connMetrics {
	m := connMetrics{
		opened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_db_user_connections_opened_total",
			Help: "Connections opened to users' databases.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_db_user_connections_failed_total",
			Help: "Connections to users' databases that could not be opened or used: gone, or of another schema.",
		}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "lightweb_db_transaction_seconds",
			Help:    "Time of a transaction on a user's database, with the wait for a connection.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}, []string{"mode"}),
	}
	if reg != nil {
		reg.MustRegister(m.opened, m.failed, m.took)
	}
	return m
}
