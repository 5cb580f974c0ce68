package transport

import (
	"context"
	"maps"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, s seen) {
		if s.method == "POST" && s.knock == "rfc9421 rsa" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		if r.URL.Path == "/br" {
			w.Header().Set("Content-Encoding", "br")
		}
	})
	cfg := loopback()
	cfg.Registerer = reg
	c, _ := newClient(t, cfg, closed(""))
	newClient(t, cfg, closed("")) // this second client adds to the counters of the first
	ctx := context.Background()
	for _, path := range []string{"/", "/br"} {
		_, _ = c.Get(ctx, Request{URL: p.id(path)}) // the test checks the counters, not the result
	}
	_, _ = c.Get(ctx, Request{URL: "http://10.0.0.1/"})
	_, _ = c.Post(ctx, Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			got[key] = m.GetCounter().GetValue()
		}
	}
	const name = "lightweb_transport_requests_total"
	want := map[string]float64{
		name + " GET 2xx": 1, name + " GET protocol": 1, name + " GET refused": 1,
		name + " POST 4xx": 1, name + " POST 2xx": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
