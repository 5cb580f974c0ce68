package delivery

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
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
		reg.MustRegister(m.attempts, m.inflight, m.took, m.first, state{d})
	}
	return m
}

var (
	hostsDesc    = prometheus.NewDesc("lightweb_delivery_hosts", "Other servers with something the matter, by state of their breaker.", []string{"state"}, nil)
	openDesc     = prometheus.NewDesc("lightweb_deliveries_open", "Deliveries that are not at an end, as counted within the last seconds, of users whose databases can be read.", []string{"status"}, nil)
	oldestDesc   = prometheus.NewDesc("lightweb_deliveries_oldest_seconds", "Age of the oldest delivery that is not at an end.", []string{"status"}, nil)
	unsignedDesc = prometheus.NewDesc("lightweb_delivery_keys_unreadable", "Users, the instance counted as one, whose deliveries wait because their keys cannot be read.", nil, nil)
)

// state shows how the dispatcher is when somebody looks.
type state struct{ d *Dispatcher }

// Describe is prometheus.Collector's.
func (s state) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hostsDesc, openDesc, oldestDesc, unsignedDesc} {
		to <- d
	}
}

// Collect is prometheus.Collector's. A user whose database cannot be read is not counted, and when that is everybody
// there is no count.
func (s state) Collect(to chan<- prometheus.Metric) {
	hosts := map[string]int{HostFailing: 0, HostOpen: 0, HostHalfOpen: 0, HostInactive: 0, HostPaused: 0}
	open := map[string]int{db.DeliveryPending: 0, db.DeliveryParked: 0}
	oldest := map[string]time.Time{}
	s.d.mu.Lock()
	now := s.d.Now()
	for _, h := range s.d.hosts {
		if name := h.state(now); name != HostOK {
			hosts[name]++
		}
	}
	readable := len(s.d.users) == 0
	for _, u := range s.d.users {
		if u.failures > 0 {
			continue
		}
		readable = true
		for _, o := range u.open {
			open[o.Status] += o.Count
			if first, ok := oldest[o.Status]; !ok || o.Oldest.Before(first) {
				oldest[o.Status] = o.Oldest
			}
		}
	}
	s.d.mu.Unlock()
	for name, n := range hosts {
		to <- prometheus.MustNewConstMetric(hostsDesc, prometheus.GaugeValue, float64(n), name)
	}
	if !readable { // what was true once is not shown
		open = nil
	}
	for name, n := range open {
		age := 0.0
		if since, ok := oldest[name]; ok {
			age = now.Sub(since).Seconds()
		}
		to <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(n), name)
		to <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age, name)
	}
	to <- prometheus.MustNewConstMetric(unsignedDesc, prometheus.GaugeValue, float64(s.d.unsigned.count()))
}

// unsigned says of users, for nobody of the instance, why their keys could not be read when they were wanted last.
type unsigned struct {
	mu  sync.Mutex
	why map[vocab.Username]string
}

// change takes down whether u's keys could be read now, and reports whether that is news.
func (n *unsigned) change(u vocab.Username, err error) bool {
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
