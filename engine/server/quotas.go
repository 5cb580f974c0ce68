package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
)

// Names of quotas, as clients see them.
const (
	quotaOfSearches = "searches"
	quotaOfLookups  = "lookups"
)

// tellQuotas tells the client the size of each quota, and how much of it is left
// (draft-ietf-httpapi-ratelimit-headers-10).
func (a *answer) tellQuotas(all ...policy.Quota) {
	var policies, left []string
	for _, q := range all {
		policies = append(policies, fmt.Sprintf(`"%s";q=%d;w=%d`, q.Name, q.Limit, q.Window/time.Second))
		left = append(left, fmt.Sprintf(`"%s";r=%d;t=%d`, q.Name, q.Left, q.Reset/time.Second))
	}
	a.Header().Set("RateLimit-Policy", strings.Join(policies, ", "))
	a.Header().Set("RateLimit", strings.Join(left, ", "))
}

// payerOf returns the payer of a request with a token. The user pays for the user's own clients.
// An LLM engine pays for itself, so that it cannot use up the quotas of its user.
func payerOf(t instance.Token) string {
	if isAssistantReader(t) {
		return t.User.String() + "/" + t.ID.String() // no username has a slash
	}
	return t.User.String()
}

// tellLookups tells how many lookups the payer has left. A lookup is a request for an actor, or
// for an object that the user's database lacks.
func (s *clientAPI) tellLookups(a *answer, payer string) {
	a.tellQuotas(s.lookups.Quota(quotaOfLookups, payer))
}

// countLookup counts a request for an actor, for which other servers may be asked, and tells how
// many lookups the payer has left. The fault is RateLimited if none is left.
func (s *clientAPI) countLookup(a *answer, payer string) error {
	ok, after := s.lookups.Allow(payer)
	s.tellLookups(a, payer)
	if !ok {
		return fault.New(fault.RateLimited, "your programs ask for too many actors").WithCode("rate_limited").After(after)
	}
	return nil
}

// tellAttempts tells how many actions the token of an LLM engine may still try. If the quotas
// cannot be read, it tells nothing, because the action is already done or refused.
func (s *clientAPI) tellAttempts(a *answer, r *http.Request, t instance.Token) {
	if left, err := s.outbox.AttemptQuotas(r.Context(), t.User, t.ID); err == nil {
		a.tellQuotas(left...)
	}
}
