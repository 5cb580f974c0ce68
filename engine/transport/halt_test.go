package transport

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// A peer does not answer in time. If the clock shows that the request took much longer than it may,
// this process was stopped meanwhile, and the failure says so.
func TestAHaltOfThisProcessIsNotThePeersSilence(t *testing.T) {
	t.Parallel()
	for name, halt := range map[string]time.Duration{"running": 0, "stopped for a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			p := newPeer(t, nil, func(_ http.ResponseWriter, r *http.Request, _ seen) {
				ahead.Store(int64(halt))
				<-r.Context().Done()
			})
			cfg := loopback()
			cfg.Timeout = time.Second
			cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			c := New(cfg, closed(""), &memory{})
			t.Cleanup(c.Close)
			_, err := c.Post(t.Context(), Post{Inbox: vocab.ID(p.URL + "/inbox"), As: *testKeys(), Body: []byte(`{}`)})
			if err == nil || errors.Is(err, ErrHalted) != (halt > 0) {
				t.Errorf("err = %v, halted: want %t", err, halt > 0)
			}
		})
	}
}
