package actor

import (
	"context"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The parts of a domain's fetch budget that some payers (policy.PayerOf) may not use.
// keptFromFailed is for a payer that lately sent a request that could not be proven.
// keptFromStranger is for any other payer that has proven no request of that domain.
const (
	keptFromFailed   = 0.5
	keptFromStranger = 0.25
)

const (
	failedTime = 10 * time.Minute // how long a request that could not be proven is remembered
	provenTime = 24 * time.Hour   // how long a proven request is remembered
)

// standings remembers which client addresses have sent proven requests of which domains, and
// which addresses have sent requests that could not be proven. A part of each domain's fetch
// budget is reserved for the addresses with proven requests of that domain. So a client that
// forges requests in a domain's name can use up only the rest.
type standings struct {
	now    func() time.Time
	proven *lru[string, time.Time] // by address and domain
	failed *lru[string, time.Time] // by address
}

func newStandings(now func() time.Time) standings {
	return standings{now, newLRU[string, time.Time](maxStandings, 0, nil), newLRU[string, time.Time](maxStandings, 0, nil)}
}

// maxStandings is the greatest number of entries in each cache of standings.
const maxStandings = 50_000

// noteProof remembers whether the request of ctx was proven to come from an actor of host.
func (s standings) noteProof(ctx context.Context, host string, proven bool) {
	payer := policy.PayerOf(ctx)
	switch {
	case !strings.HasPrefix(payer, "address "):
	case proven:
		s.proven.put(payer+" "+policy.RegistrableDomain(host), s.now())
	default:
		s.failed.put(payer, s.now())
	}
}

// keptPart returns the part of a domain's fetch budget that the payer of ctx may not use.
func (s standings) keptPart(ctx context.Context, domain string) float64 {
	payer := policy.PayerOf(ctx)
	if payer == "" || payer == "domain "+domain || s.isProven(payer, domain) {
		return 0
	}
	if at, ok := s.failed.get(payer); ok && s.now().Sub(at) < failedTime {
		return keptFromFailed
	}
	return keptFromStranger
}

func (s standings) isProven(payer, domain string) bool {
	at, ok := s.proven.get(payer + " " + domain)
	return ok && s.now().Sub(at) < provenTime
}

// fetchBudget limits the fetches, by domain and by payer.
type fetchBudget struct {
	standings  standings
	rate       *policy.SharedLimiter // of fetches of actors and keys
	ownRate    *policy.SharedLimiter // of fetches that an actor's own Updates cause, by actor
	objectRate *policy.SharedLimiter
}

// NoteProof remembers, for the client address that sent the request of ctx, whether the request
// was proven to come from an actor of host.
func (b *fetchBudget) NoteProof(ctx context.Context, host string, proven bool) {
	b.standings.noteProof(ctx, host, proven)
}

// spendFetch counts one fetch of id against the budget of its domain, for the payer of ctx. The
// fault is RateLimited when nothing is left for that payer.
func (b *fetchBudget) spendFetch(ctx context.Context, l *policy.SharedLimiter, id vocab.ID) error {
	domain := policy.RegistrableDomain(id.Host())
	return refuseSpent(l.Allow(domain, policy.PayerOf(ctx), b.standings.keptPart(ctx, domain)))
}
