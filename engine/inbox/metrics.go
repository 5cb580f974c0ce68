package inbox

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	requests         *prometheus.CounterVec
	activities       *prometheus.CounterVec
	ignored          *prometheus.CounterVec
	synchronizations *prometheus.CounterVec
	relayed          *prometheus.CounterVec
	undecryptable    *prometheus.CounterVec
	mislabeled       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_requests_total", Help: "Requests to inboxes, by how they ended.",
		}, []string{"outcome"}),
		activities: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_activities_total", Help: "Activities that reached a user's writer, by what became of them.",
		}, []string{"outcome"}),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_ignored_total", Help: "Activities that were answered 202 and kept for nobody, by reason.",
		}, []string{"reason"}),
		synchronizations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_inbox_synchronizations_total", Help: "Senders whose followers here were compared with those who follow them, by what came of it.",
		}, []string{"outcome"}),
		relayed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_relay_activities_total", Help: "Activities that relays passed on, by what became of them.",
		}, []string{"outcome"}),
		undecryptable: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lightweb_mls_undecryptable_total", Help: "Messages of encrypted conversations with which the devices of a user can do nothing, or nothing yet, by reason.",
		}, []string{"reason"}),
		mislabeled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lightweb_mls_mislabeled_total", Help: "Messages of encrypted conversations whose labels contradict their MLS header, which counts.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.activities, m.ignored, m.synchronizations, m.relayed, m.undecryptable, m.mislabeled)
	}
	return m
}
