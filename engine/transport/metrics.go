package transport

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
)

// requestsTotal returns the counter that all clients of one registry share.
func requestsTotal(reg prometheus.Registerer) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lightweb_transport_requests_total",
		Help: "Requests to other servers, by method and outcome: the class of the status, or why there was no answer.",
	}, []string{"method", "outcome"})
	if reg == nil {
		return v
	}
	var twice prometheus.AlreadyRegisteredError
	if err := reg.Register(v); errors.As(err, &twice) {
		return twice.ExistingCollector.(*prometheus.CounterVec)
	} else if err != nil {
		panic(err) // the name or labels collide with another metric, which is a programming mistake
	}
	return v
}

// outcomes maps the kind of the fault of a failed request to the name under which it is counted.
var outcomes = map[fault.Kind]string{
	fault.Forbidden:   "refused",
	fault.NoHost:      "no_host",
	fault.Unavailable: "unreachable",
	fault.Busy:        "given_up",
	fault.Protocol:    "protocol",
}

func (c *Client) countRequest(method string, status int, err error) {
	outcome := "error"
	if err != nil {
		if o, ok := outcomes[fault.KindOf(err)]; ok {
			outcome = o
		}
	} else if class := status / 100; class >= 1 && class <= 5 {
		outcome = string(rune('0'+class)) + "xx"
	}
	c.metrics.WithLabelValues(method, outcome).Inc()
}
