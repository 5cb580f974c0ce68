package engine

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
)

const (
	// dialectTime is how long it is believed what a host took: its software may know more by then.
	dialectTime = 30 * 24 * time.Hour
	// dialectCached is how long what is stored of that is not read again.
	dialectCached = 24 * time.Hour
	// softwareStored is how long what a host calls its software stays stored, whatever it says meanwhile.
	softwareStored = time.Hour
	// maxSoftware bounds that, in bytes.
	maxSoftware = 120
)

// dialects is where it is stored what hosts took.
type dialects interface {
	HostDialect(ctx context.Context, host string, since time.Time) (string, error)
	LearnHostDialect(ctx context.Context, host, dialect string, now time.Time) error
	LearnHostSoftware(ctx context.Context, host, software string) error
}

// hosts remembers which signature dialect each host took, and what its software calls itself: in memory, and in the instance database for the next start.
type hosts struct {
	db  dialects
	log *slog.Logger
	now func() time.Time

	stored *policy.Limiter // what is written, per domain

	mu       sync.Mutex
	known    map[string]taken
	software map[string]named
}

// named is what a host calls its software.
type named struct {
	name  string
	until time.Time // then another name may be stored
}

// taken is the dialect that a host took; zero: asked, and nothing is remembered.
type taken struct {
	dialect signature.Dialect
	until   time.Time // then it is looked up again
}

func newHosts(db dialects, log *slog.Logger, now func() time.Time) *hosts {
	return &hosts{db: db, log: log.With("component", "hosts"), now: now, stored: policy.StoredHosts.Limiter(now), known: map[string]taken{}, software: map[string]named{}}
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
	if !h.keep(host, d) || !h.mayStore(host) {
		return
	}
	if err := h.db.LearnHostDialect(ctx, host, d.String(), h.now()); err != nil {
		h.log.WarnContext(ctx, "host not remembered", "host", host, "err", err)
	}
}

// Heard is told that host signs in this dialect, and what its software calls itself. That it takes RFC 9421 when it signs
// so is news only of a host of which nothing is known; everybody takes the other.
func (h *hosts) Heard(ctx context.Context, host string, d signature.Dialect, software string) {
	if _, known := h.Dialect(ctx, host); d == signature.RFC9421 && !known { // asked of every host: it is in use
		h.Learn(ctx, host, d)
	}
	if software = printable(software); software == "" || !h.renames(host, software) || !h.mayStore(host) {
		return
	}
	if err := h.db.LearnHostSoftware(ctx, host, software); err != nil {
		h.log.WarnContext(ctx, "host not remembered", "host", host, "err", err)
	}
}

// mayStore tells whether more may be stored of the hosts of a domain now.
func (h *hosts) mayStore(host string) bool {
	ok, _ := h.stored.Allow(policy.RegistrableDomain(host))
	return ok
}

// printable returns what can be shown of what a peer says, up to maxSoftware bytes.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s[:min(len(s), maxSoftware)])
}

// renames tells whether host calls its software otherwise than before, as far as that was not stored just now.
func (h *hosts) renames(host, software string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if k := h.software[host]; k.name == software || now.Before(k.until) {
		return false
	}
	if len(h.software) >= maxLimited {
		clear(h.software)
	}
	h.software[host] = named{software, now.Add(softwareStored)}
	return true
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
