package socket

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	open          *prometheus.GaugeVec
	closed        *prometheus.CounterVec
	pushed, reads prometheus.Counter
	refused       prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_sockets",
			Help: "Open sockets of users' programs, by kind.",
		}, []string{"kind"}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_sockets_closed_total",
			Help: "Sockets that the engine closed, by the reason that their programs were told.",
		}, []string{"reason"}),
		pushed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_socket_events_total",
			Help: "Events handed to sockets, one for each socket.",
		}),
		reads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_socket_reads_total",
			Help: "Reads of a stream or a database for a socket that was behind.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_sockets_refused_total",
			Help: "Sockets that were refused because there were too many.",
		}),
	}
	for _, k := range []Kind{WebSocket, SSE} {
		m.open.WithLabelValues(string(k))
	}
	for _, c := range closings {
		m.closed.WithLabelValues(c.Reason)
	}
	if r != nil {
		r.MustRegister(m.open, m.closed, m.pushed, m.reads, m.refused)
	}
	return m
}
