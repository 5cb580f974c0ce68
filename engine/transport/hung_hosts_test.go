package transport

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// hung implements Hosts. Its store does not answer.
type hung struct{}

func (hung) Dialect(ctx context.Context, _ string) (signature.Dialect, bool) {
	<-ctx.Done()
	return 0, false
}

func (hung) Learn(ctx context.Context, _ string, _ signature.Dialect) { <-ctx.Done() }

func TestAStoreThatHangsKeepsNoRequestFromThePeer(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
		if s.method == http.MethodPut {
			w.Header().Set("Content-Type", mediaJSON)
			_, _ = w.Write([]byte(`{}`))
		}
	})
	cfg := loopback()
	cfg.Timeout = hostTime / 2
	c := New(cfg, closed(""), hung{})
	t.Cleanup(c.Close)
	for name, send := range map[string]func(context.Context) error{
		"Post": func(ctx context.Context) error {
			a, err := c.Post(ctx, Post{Inbox: vocab.ID(p.URL + "/inbox"), As: *testKeys(), Body: []byte(`{}`)})
			if a.Took > hostTime {
				t.Errorf("the peer is said to have taken %v", a.Took)
			}
			return err
		},
		"Get": func(ctx context.Context) error {
			_, err := c.Get(ctx, Request{URL: vocab.ID(p.URL + "/note"), As: testKeys()})
			return err
		},
		"Ask": func(ctx context.Context) error {
			_, err := c.Ask(ctx, Question{Method: http.MethodPut, URL: vocab.ID(p.URL + "/claim"), As: *testKeys(), Body: []byte(`{}`)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := send(ctx); err != nil || ctx.Err() != nil {
				t.Error(err, ctx.Err())
			}
		})
	}
}
