package conversation

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
)

type metrics struct {
	took      *prometheus.HistogramVec
	depth     prometheus.Histogram
	conflicts *prometheus.CounterVec
	overloads prometheus.Counter
	starts    prometheus.Counter
	stops     prometheus.Counter
	restarts  prometheus.Counter
	replays   prometheus.Counter
	reports   *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, r *Registry) metrics {
	count := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := metrics{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "lightweb_mls_op_seconds",
			Help:    "How long requests to conversations took, with their wait, by outcome: accepted, conflict, refused, overload or failed.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"op", "outcome"}),
		depth: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lightweb_mls_mailbox_depth",
			Help:    "How many requests waited for a conversation when one more came.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 9),
		}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_mls_epoch_conflicts_total",
			Help: "Messages refused because the conversation was in another epoch, group or state, by where their senders are: local or remote.",
		}, []string{"origin"}),
		overloads: count("lightweb_mls_overload_total", "Requests refused because too many waited for a conversation, or too many conversations were live."),
		starts:    count("lightweb_conversation_starts_total", "Conversations that became live, because a request came or the engine had started."),
		stops:     count("lightweb_conversation_stops_total", "Live conversations that ended, because no request came for a while or others needed their place."),
		restarts:  count("lightweb_conversation_restarts_total", "Panics of conversations, which go on after them."),
		replays:   count("lightweb_mls_idempotent_replays_total", "Requests answered with what they had been answered before."),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_mls_recovery_reports_total",
			Help: "Devices that told that they could not go on in a conversation, by reason.",
		}, []string{"reason"}),
	}
	for _, origin := range []string{"local", "remote"} { // so that both are shown from the start
		m.conflicts.WithLabelValues(origin)
	}
	if reg != nil {
		reg.MustRegister(m.took, m.depth, m.conflicts, m.overloads, m.starts, m.stops, m.restarts, m.replays, m.reports, collector{r})
	}
	return m
}

func (m *metrics) observe(op, origin string, err error, took time.Duration) {
	outcome := "failed"
	var conflict *Conflict
	switch {
	case err == nil:
		outcome = "accepted"
	case errors.As(err, &conflict):
		outcome = "conflict"
		m.conflicts.WithLabelValues(origin).Inc()
	case fault.Of(err) != nil && fault.Of(err).Code == errBusy.Code:
		outcome = "overload"
	case isRefusal(err):
		outcome = "refused"
	}
	m.took.WithLabelValues(op, outcome).Observe(took.Seconds())
}

// countReplay returns its parameters, and counts the answer if it was stored by an earlier request.
func (m *metrics) countReplay(a Accepted, err error) (Accepted, error) {
	if err == nil && a.Replayed {
		m.replays.Inc()
	}
	return a, err
}

// collector exports how many conversations are live, that is, have a mailbox in this process, and
// how many rest after panics.
type collector struct{ r *Registry }

var (
	liveDesc    = prometheus.NewDesc("lightweb_conversation_live", "Conversations that something was asked of in the last minutes, or that the engine knows since its start.", nil, nil)
	restingDesc = prometheus.NewDesc("lightweb_mls_quarantined", "Conversations that rest after panics.", nil, nil)
)

func (c collector) Describe(to chan<- *prometheus.Desc) { to <- liveDesc; to <- restingDesc }

func (c collector) Collect(to chan<- prometheus.Metric) {
	all, resting := c.count()
	to <- prometheus.MustNewConstMetric(liveDesc, prometheus.GaugeValue, float64(all))
	to <- prometheus.MustNewConstMetric(restingDesc, prometheus.GaugeValue, float64(resting))
}

// count returns how many conversations are live, and how many of them rest after panics.
func (c collector) count() (all, resting int) {
	c.r.mu.RLock()
	defer c.r.mu.RUnlock()
	now := c.r.Now()
	for _, l := range c.r.live {
		if now.Before(l.restsUntil) {
			resting++
		}
	}
	return len(c.r.live), resting
}
