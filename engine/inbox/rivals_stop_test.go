package inbox_test

import (
	"context"
	"net/http"
	"testing"
	"time"
)

func TestAContestedActivityStaysInTheJournalWhenTheInboxCloses(t *testing.T) {
	const id = "p:/notes/1"
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, answer := range map[string]http.HandlerFunc{
		"between two tries": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"during a try": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Handle(id, answer)
			s.MustSend("p:/mallory", mine, create("p:/mallory", "1", written("p:/mallory", id, "a lie")))
			if err := accept(s, mine, create("p:/carol", "1", written("p:/carol", id, "true"))); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the server was asked", func() bool { return s.Asked(id) > 0 })
			began := time.Now()
			if err := s.Inbox.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("Close took %v", took)
			}
			if n, err := s.Store.Instance.Journal.CountWaiting(t.Context(), s.Alice); n != 1 || err != nil {
				t.Errorf("%d rows wait in the journal, %v; want alice's", n, err)
			}
			if got := why(t, s, "p:/carol/creates/1"); got != "" {
				t.Errorf("carol's Create is remembered as %q", got)
			}
		})
	}
}
