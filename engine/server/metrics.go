package server

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newMetrics declares what is counted. A route is labelled as it is registered, so that no path,
// user or host is.
func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_http_requests_total",
			Help: "Requests answered, by route and status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "lightweb_http_request_seconds",
			Help:    "Time from the headers of a request to its answer, by route.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"route"}),
	}
	reg.MustRegister(m.requests, m.seconds)
	return m
}
