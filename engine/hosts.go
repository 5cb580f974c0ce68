package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/signature"
)

// hosts remembers which signature dialect each host took: in memory, and in the instance database for the next start.
type hosts struct {
	db  *db.Cluster
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	known map[string]signature.Dialect // zero: asked, and nothing is remembered
}

func newHosts(c *db.Cluster, log *slog.Logger, now func() time.Time) *hosts {
	return &hosts{db: c, log: log.With("component", "hosts"), now: now, known: map[string]signature.Dialect{}}
}

// Dialect returns what host took last. When that cannot be read now, nothing is known: the second knock finds it out.
func (h *hosts) Dialect(ctx context.Context, host string) (signature.Dialect, bool) {
	h.mu.Lock()
	d, asked := h.known[host]
	h.mu.Unlock()
	if asked {
		return d, d != 0
	}
	name, err := h.db.HostDialect(ctx, host)
	if err != nil {
		h.log.WarnContext(ctx, "host not read", "host", host, "err", err)
		return 0, false
	}
	d, err = signature.ParseDialect(name)
	if err != nil {
		d = 0 // nothing is remembered
	}
	h.keep(host, d)
	return d, d != 0
}

// Learn remembers what host took. Losing that costs a second knock, no more.
func (h *hosts) Learn(ctx context.Context, host string, d signature.Dialect) {
	if !h.keep(host, d) {
		return
	}
	if err := h.db.LearnHostDialect(ctx, host, d.String(), h.now()); err != nil {
		h.log.WarnContext(ctx, "host not remembered", "host", host, "err", err)
	}
}

// Speaks is told that host signs in this dialect, and so takes it: news only of a host of which nothing is known.
func (h *hosts) Speaks(ctx context.Context, host string, d signature.Dialect) {
	if _, known := h.Dialect(ctx, host); !known {
		h.Learn(ctx, host, d)
	}
}

// keep remembers d for this process and tells whether it is news.
func (h *hosts) keep(host string, d signature.Dialect) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, asked := h.known[host]; asked && (d == known || d == 0) { // what was learnt meanwhile stays
		return false
	}
	if len(h.known) >= maxLimited {
		clear(h.known)
	}
	h.known[host] = d
	return true
}
