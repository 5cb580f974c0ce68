package engine

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/instance"
)

// countTimeout is the longest time that a scrape of the metrics waits for the query that counts
// the reports.
const countTimeout = 2 * time.Second

var openReportsDesc = prometheus.NewDesc("lightweb_reports_open", "Reports by other servers that are not resolved.", nil, nil)

// openReports counts the reports that wait for the operator. While the database does not answer,
// the metric has no value.
type openReports struct{ in *instance.Instance }

// Describe implements prometheus.Collector.
func (openReports) Describe(to chan<- *prometheus.Desc) { to <- openReportsDesc }

// Collect implements prometheus.Collector.
func (o openReports) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	n, err := o.in.DB.Instance.Reports.CountOpen(ctx)
	if err != nil {
		o.in.Log.Warn("reports not counted", "err", err)
		return
	}
	to <- prometheus.MustNewConstMetric(openReportsDesc, prometheus.GaugeValue, float64(n))
}

// newPausedGauge returns a gauge that shows whether federation is paused.
func newPausedGauge(in *instance.Instance) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lightweb_federation_paused",
		Help: "1 while federation.mode is paused, else 0.",
	}, func() float64 {
		if in.IsPaused() {
			return 1
		}
		return 0
	})
}
