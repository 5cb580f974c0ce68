package inbox

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// retryAfter is how long a peer is asked to wait when the engine is full.
const retryAfter = 5 * time.Second

type metrics struct {
	requests   *prometheus.CounterVec
	activities *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_requests_total", Help: "Requests to inboxes, by how they ended.",
		}, []string{"outcome"}),
		activities: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_activities_total", Help: "Activities that reached a user's writer, by what became of them.",
		}, []string{"outcome"}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.activities)
	}
	return m
}
