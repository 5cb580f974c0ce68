package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/signature"
)

const (
	// dialectTime is how long it is believed what a host took: its software may know more by then.
	dialectTime = 30 * 24 * time.Hour
	// dialectCached is how long what is stored of that is not read again.
	dialectCached = 24 * time.Hour
)

// dialects is where it is stored what hosts took.
type dialects interface {
	HostDialect(ctx context.Context, host string, since time.Time) (string, error)
	LearnHostDialect(ctx context.Context, host, dialect string, now time.Time) error
}

// hosts remembers which signature dialect each host took: in memory, and in the instance database for the next start.
type hosts struct {
	db  dialects
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	known map[string]taken
}

// taken is the dialect that a host took; zero: asked, and nothing is remembered.
type taken struct {
	dialect signature.Dialect
	until   time.Time // then it is looked up again
}

func newHosts(db dialects, log *slog.Logger, now func() time.Time) *hosts {
	return &hosts{db: db, log: log.With("component", "hosts"), now: now, known: map[string]taken{}}
}

// Dialect returns what host took last. When that cannot be read now, nothing is known: the second knock finds it out.
func (h *hosts) Dialect(ctx context.Context, host string) (signature.Dialect, bool) {
	h.mu.Lock()
	k := h.known[host]
	h.mu.Unlock()
	now := h.now()
	if now.Before(k.until) {
		return k.dialect, k.dialect != 0
	}
	name, err := h.db.HostDialect(ctx, host, now.Add(-dialectTime))
	if err != nil {
		h.log.WarnContext(ctx, "host not read", "host", host, "err", err)
		return 0, false
	}
	d, err := signature.ParseDialect(name)
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
	now := h.now()
	if k := h.known[host]; now.Before(k.until) && (d == k.dialect || d == 0) { // what was learnt meanwhile stays
		return false
	}
	if len(h.known) >= maxLimited {
		clear(h.known)
	}
	h.known[host] = taken{d, now.Add(dialectCached)}
	return true
}
