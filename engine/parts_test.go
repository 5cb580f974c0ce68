package engine

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A command marks the users that it writes to. The engine then removes the pages of these users
// that it keeps in memory for everybody.
func TestAChangeByACommandRemovesPagesFromMemory(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	now := time.Now()
	e.in.Now = func() time.Time { return now } // so that no page is too old to be shown
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.New(e.in).Users.Create(t.Context(), admin.NewUser{Name: alice}); err != nil {
		t.Fatal(err)
	}
	p, err := e.newParts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { p.emitter.Run(ctx) })
	read := func() (made float64) {
		r := httptest.NewRequest(http.MethodGet, e.in.Config.PublicURL+"/users/alice/outbox", nil)
		r.Header.Set("Accept", "application/activity+json")
		w := httptest.NewRecorder()
		if p.public.Handler.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("the outbox is answered %d: %s", w.Code, w.Body)
		}
		return countOf(t, e.in, "lightweb_recent_page_reads_total", "miss")
	}
	made := read()
	if again := read(); again != made {
		t.Fatalf("the second reader makes the page again: %v pages were made, and then %v", made, again)
	}
	if err := e.in.DB.Instance.Users.MarkEventsDue(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the page is made again", func() bool { return read() > made })
}

// openEngine opens a new instance with a private PostgreSQL server.
func openEngine(t *testing.T) *Engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // t.TempDir() is closed to the account that PostgreSQL runs as
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := instance.DefaultConfig(filepath.Join(dir, "data"))
	c.PublicURL = "http://127.0.0.1:8080"
	e, err := Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return e
}

// countOf returns the value of a counter for a result.
func countOf(t *testing.T, in *instance.Instance, name, result string) float64 {
	t.Helper()
	families, err := in.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s of %q", name, result)
	return 0
}
