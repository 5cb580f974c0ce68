package pool

import "github.com/prometheus/client_golang/prometheus"

type connMetrics struct {
	opened, failed, evicted, full, crowded prometheus.Counter
	waited                                 [classes]prometheus.Observer
}

// newConnMetrics returns the metrics of c. The gauges read their values from c when they are
// collected.
func newConnMetrics(reg prometheus.Registerer, c *Pool) connMetrics {
	if reg == nil {
		reg = prometheus.NewRegistry() // nobody reads it
	}
	counter := func(name, help string) prometheus.Counter {
		n := prometheus.NewCounter(prometheus.CounterOpts{Name: "lightweb_db_user_connections_" + name, Help: help})
		reg.MustRegister(n)
		return n
	}
	gauge := func(name, help string, labels prometheus.Labels, value func() int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return float64(value())
		}))
	}
	m := connMetrics{
		opened:  counter("opened_total", "Connections opened to users' databases."),
		failed:  counter("failed_total", "Connections to users' databases that could not be opened or used: gone, of another schema, or no room for them."),
		evicted: counter("evicted_total", "Idle connections to users' databases that were closed to open another."),
		full:    counter("full_total", "Connections to users' databases that the server had no room for."),
		crowded: counter("crowded_total", "Reads by strangers that were refused because too many asked."),
	}
	waited := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "lightweb_db_user_connections_wait_seconds",
		Help:    "Time until a connection to a user's database could be had or opened.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
	}, []string{"class"})
	reg.MustRegister(waited)
	const now = "lightweb_db_user_connections"
	gauge(now, "Connections to users' databases.", prometheus.Labels{"state": "in_use"}, c.inUse)
	gauge(now, "Connections to users' databases.", prometheus.Labels{"state": "idle"}, func() int { return c.idle.Len() })
	gauge(now+"_limit", "How many connections to users' databases there may be now.", nil, func() int { return c.ceiling })
	for class := range classes {
		m.waited[class] = waited.WithLabelValues(class.String())
		gauge(now+"_waiting", "Callers that wait for a connection to a user's database.", prometheus.Labels{"class": class.String()}, func() int { return c.waiters[class].Len() })
	}
	return m
}
