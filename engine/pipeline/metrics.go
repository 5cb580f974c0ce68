package pipeline

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// stepSeconds returns the histogram that all pipelines of one registry share.
func stepSeconds(reg prometheus.Registerer) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "lightweb_pipeline_step_seconds",
		Help:    "Time spent in a step of a pipeline, without the steps after it.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
	}, []string{"pipeline", "step"})
	if reg == nil {
		return h
	}
	var twice prometheus.AlreadyRegisteredError
	if err := reg.Register(h); errors.As(err, &twice) {
		return twice.ExistingCollector.(*prometheus.HistogramVec)
	} else if err != nil {
		panic(err) // a bug: the name or labels collide with another metric
	}
	return h
}
