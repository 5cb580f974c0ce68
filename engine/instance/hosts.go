package instance

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
	// maxHosts is the greatest number of hosts in memory. Before another host is added, all
	// hosts are removed.
	maxHosts = 50_000
	// rfc9421Time is the time for which RFC 9421 is trusted after it was learned for a host.
	// The answer from which it was learned may prove nothing, because a host that reads only
	// draft-cavage may answer 2xx to RFC 9421 and drop the activity. Draft-cavage is trusted
	// until the host refuses it.
	rfc9421Time = 30 * 24 * time.Hour
	// dialectCached is the time for which a dialect stays in memory before the stored one is
	// read again.
	dialectCached = 24 * time.Hour
	// softwareStored is the least time between two changes of the stored name of a host's
	// software, as long as the host is remembered in memory.
	softwareStored = time.Hour
	// maxSoftware is the length of the longest name of software that is stored, in bytes.
	maxSoftware = 120
)

// hostStore stores the dialect that each host accepts and the software that it runs.
type hostStore interface {
	Dialect(ctx context.Context, host string) (dialect string, learnedAt time.Time, err error)
	LearnDialect(ctx context.Context, host, dialect string, now time.Time) error
	LearnSoftware(ctx context.Context, host, software string) error
}

// hosts remembers the signature dialect that each host accepts and the name of its software. It
// keeps both in memory, and in the instance database for the next start.
type hosts struct {
	db  hostStore
	log *slog.Logger
	now func() time.Time

	stored *policy.Limiter // limits how many rows are written, per registrable domain

	mu       sync.Mutex
	known    map[string]dialect
	software map[string]software
}

// software is the name of the software that a host runs.
type software struct {
	name  string
	until time.Time // no other name is stored before this time
}

// dialect is the dialect that a host accepts, or zero when none is stored.
type dialect struct {
	accepted signature.Dialect
	until    time.Time // the stored dialect is not read again before this time
}

func newHosts(db hostStore, log *slog.Logger, now func() time.Time) *hosts {
	return &hosts{db: db, log: log.With("component", "hosts"), now: now, stored: policy.StoredHosts.Limiter(now),
		known: map[string]dialect{}, software: map[string]software{}}
}

// Dialect returns the dialect that Learn stored last for the host. It reports false when none is
// stored, when RFC 9421 was stored more than rfc9421Time ago, or when the store cannot be read.
// Then the sender tries one dialect, and the other one if the host refuses.
func (h *hosts) Dialect(ctx context.Context, host string) (signature.Dialect, bool) {
	h.mu.Lock()
	k := h.known[host]
	h.mu.Unlock()
	now := h.now()
	if now.Before(k.until) {
		return k.accepted, k.accepted != 0
	}
	name, learnedAt, err := h.db.Dialect(ctx, host)
	if err != nil {
		h.log.WarnContext(ctx, "host not read", "host", host, "err", err)
		return 0, false
	}
	d, err := signature.ParseDialect(name)
	if err != nil || d == signature.RFC9421 && learnedAt.Before(now.Add(-rfc9421Time)) {
		d = 0 // none is stored that still counts
	}
	h.remember(host, d)
	return d, d != 0
}

// Learn remembers that host accepts d. If the entry is lost, the only effect is that the next
// sender may need a second request.
func (h *hosts) Learn(ctx context.Context, host string, d signature.Dialect) {
	if !h.remember(host, d) || !h.chargeDomain(host) {
		return
	}
	if err := h.db.LearnDialect(ctx, host, d.String(), h.now()); err != nil {
		h.log.WarnContext(ctx, "host not remembered", "host", host, "err", err)
	}
}

// heardTime is the longest time for which Heard keeps a request waiting.
const heardTime = time.Second

// Heard learns two things from a request of host: the dialect of its signature and the name of
// its software. A host accepts the dialect that it signs with. RFC 9421 is stored only if no
// dialect of the host is stored. Draft-cavage also replaces RFC 9421, which may be stored because
// the host answered 2xx before it looked at a signature that it cannot read.
func (h *hosts) Heard(ctx context.Context, host string, d signature.Dialect, name string) {
	ctx, cancel := context.WithTimeout(ctx, heardTime)
	defer cancel()
	stored, known := h.Dialect(ctx, host) // every request reads the entry, so that it stays in memory
	if !known || d == signature.Cavage && stored != d {
		h.Learn(ctx, host, d)
	}
	if name = printable(name); name == "" || !h.renameSoftware(host, name) || !h.chargeDomain(host) {
		return
	}
	if err := h.db.LearnSoftware(ctx, host, name); err != nil {
		h.log.WarnContext(ctx, "host not remembered", "host", host, "err", err)
	}
}

// chargeDomain counts a written row against the domain of host, and reports whether the domain's
// limit allows the row.
func (h *hosts) chargeDomain(host string) bool {
	ok, _ := h.stored.Allow(policy.RegistrableDomain(host))
	return ok
}

// printable returns the printable ASCII characters among the first maxSoftware bytes of s.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s[:min(len(s), maxSoftware)])
}

// renameSoftware reports whether to store name as the name of a host's software. The result is
// true if no name is remembered. It is also true if another name is remembered, and has been for
// at least softwareStored. In both cases renameSoftware remembers name.
func (h *hosts) renameSoftware(host, name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if k := h.software[host]; k.name == name || now.Before(k.until) {
		return false
	}
	if len(h.software) >= maxHosts {
		clear(h.software)
	}
	h.software[host] = software{name, now.Add(softwareStored)}
	return true
}

// remember stores d in memory and reports whether it is new.
func (h *hosts) remember(host string, d signature.Dialect) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if k := h.known[host]; now.Before(k.until) && (d == k.accepted || d == 0) { // keep a dialect that was learned in the meantime
		return false
	}
	if len(h.known) >= maxHosts {
		clear(h.known)
	}
	h.known[host] = dialect{d, now.Add(dialectCached)}
	return true
}
