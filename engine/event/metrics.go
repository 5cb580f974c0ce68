package event

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds the metrics of the emitter.
type metrics struct {
	emitted, repaired, unreadTrimmed prometheus.Counter
	memory                           prometheus.Gauge
	groupLag                         *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer, e *Emitter) *metrics {
	m := &metrics{
		emitted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_events_emitted_total",
			Help: "Events put on users' streams, repeats after a loss included.",
		}),
		repaired: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_event_streams_repaired_total",
			Help: "Times that a stream was not as it had been left, and was continued from the database.",
		}),
		unreadTrimmed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_events_unread_trimmed_total",
			Help: "Events dropped from users' streams before a group with readers was handed them.",
		}),
		groupLag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lightweb_event_group_lag",
			Help: "Events that a consumer group has not acknowledged, of all users.",
		}, []string{"group"}),
		memory: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lightweb_event_streams_bytes",
			Help: "Memory of all streams in Redis, as measured last.",
		}),
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lightweb_event_streams_waiting",
		Help: "Users who have events that are not on their stream.",
	}, func() float64 { return float64(e.countWaiting().streams) })
	depth := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lightweb_events_waiting",
		Help: "Events that are known to wait to get on their user's stream.",
	}, func() float64 { return float64(e.countWaiting().events) })
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lightweb_event_lag_seconds",
		Help: "How long the event waits that waits for longest to get on its stream.",
	}, func() float64 { return e.countWaiting().lag.Seconds() })
	for _, group := range groupNames {
		m.groupLag.WithLabelValues(group)
	}
	if r != nil {
		r.MustRegister(m.emitted, m.repaired, m.memory, m.unreadTrimmed, m.groupLag, waiting, depth, lag)
	}
	return m
}

// backlog describes the events that are not emitted.
type backlog struct {
	streams int           // streams that have or may have such events
	events  int           // events that are known; events of other processes are known once they are read
	lag     time.Duration // the longest time that one of the streams has waited
}

// countWaiting returns the backlog of all streams.
func (e *Emitter) countWaiting() (b backlog) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		if !s.since.IsZero() {
			b.streams++
			b.events += s.waiting
			b.lag = max(b.lag, e.Now().Sub(s.since))
		}
	}
	return b
}
