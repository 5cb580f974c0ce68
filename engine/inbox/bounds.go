package inbox

import (
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// bounds is how much one sender, or one registrable domain, may have of what costs this server more than a request: what
// is passed on goes to every server of a user's followers, a report is kept until the operator resolves it, and for what
// others pass on without a proof, the actor's server is asked.
type bounds struct{ passedOfSender, passedOfDomain, reportsOfDomain, askedForDomain *policy.Limiter }

// maxBounded bounds how many senders and domains are remembered.
const maxBounded = 10_000

func newBounds(now func() time.Time) bounds {
	return bounds{
		passedOfSender:  policy.NewLimiter(policy.Rate{PerSecond: 1.0 / 60, Burst: 30}, now, maxBounded),
		passedOfDomain:  policy.NewLimiter(policy.Rate{PerSecond: 1, Burst: 300}, now, maxBounded),
		reportsOfDomain: policy.NewLimiter(policy.Rate{PerSecond: 1.0 / 60, Burst: 100}, now, maxBounded),
		askedForDomain:  policy.NewLimiter(policy.Rate{PerSecond: 1, Burst: 100}, now, maxBounded),
	}
}
