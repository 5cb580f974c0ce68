package delivery

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

type metrics struct {
	attempts    *prometheus.CounterVec
	inflight    prometheus.Gauge
	took, first prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, d *Dispatcher) metrics {
	m := metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_delivery_attempts_total",
			Help: "Attempts at deliveries, by what became of the delivery: delivered, retry, waiting, parked, skipped or failed.",
		}, []string{"outcome"}),
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lightweb_delivery_inflight",
			Help: "Attempts at deliveries under way.",
		}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lightweb_delivery_attempt_seconds",
			Help:    "How long attempts at deliveries took.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 11),
		}),
		first: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lightweb_delivery_first_seconds",
			Help:    "Time from the commit of an activity until the first inbox took it.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200, 86400},
		}),
	}
	if reg != nil {
		reg.MustRegister(m.attempts, m.inflight, m.took, m.first, collector{d})
	}
	return m
}

var (
	hostsDesc    = prometheus.NewDesc("lightweb_delivery_hosts", "Other servers with something the matter, by state of their breaker.", []string{"state"}, nil)
	openDesc     = prometheus.NewDesc("lightweb_deliveries_open", "Deliveries that are not at an end, as counted within the last seconds, of users whose databases can be read.", []string{"status"}, nil)
	oldestDesc   = prometheus.NewDesc("lightweb_deliveries_oldest_seconds", "Age of the oldest delivery that is not at an end.", []string{"status"}, nil)
	unsignedDesc = prometheus.NewDesc("lightweb_delivery_keys_unreadable", "Users, the instance counted as one, whose deliveries wait because their keys cannot be read.", nil, nil)
)

// collector reads the state of the dispatcher when the metrics are collected.
type collector struct{ d *Dispatcher }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hostsDesc, openDesc, oldestDesc, unsignedDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector. While no user's database can be read, it leaves out
// the numbers of open deliveries, because they would be old.
func (c collector) Collect(to chan<- prometheus.Metric) {
	s, running := ask(c.d.mail, func() snapshot { return c.d.loop.takeSnapshot(c.d.Now()) })
	for _, name := range []string{HostFailing, HostOpen, HostHalfOpen, HostInactive, HostPaused} {
		to <- prometheus.MustNewConstMetric(hostsDesc, prometheus.GaugeValue, float64(s.hosts[name]), name)
	}
	if !running || s.open != nil {
		for _, name := range []string{user.DeliveryPending, user.DeliveryParked} {
			to <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(s.open[name]), name)
			to <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, s.oldest[name].Seconds(), name)
		}
	}
	to <- prometheus.MustNewConstMetric(unsignedDesc, prometheus.GaugeValue, float64(c.d.sender.unsigned.count()))
}

// unsigned stores why the keys of users could not be read when they were last needed. The zero
// user stands for the instance actor.
type unsigned struct {
	mu  sync.Mutex
	why map[vocab.Username]string
}

// record stores whether u's keys could be read now, and reports whether that differs from the
// last time.
func (n *unsigned) record(u vocab.Username, err error) (isNews bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, failed := n.why[u]
	if err == nil {
		delete(n.why, u)
		return failed
	}
	if n.why == nil {
		n.why = map[vocab.Username]string{}
	}
	n.why[u] = err.Error()
	return !failed || before != err.Error()
}

func (n *unsigned) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.why)
}
