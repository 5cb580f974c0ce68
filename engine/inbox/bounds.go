package inbox

import (
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// bounds is how much one sender, or one registrable domain, may have of what costs this server more than a request: what
// is passed on goes to every server of a user's followers, a report is kept until the operator resolves it, for what others
// pass on without a proof the actor's server is asked, and so it is for each post that a relay passes on, and what anybody
// sends to users who never asked for it is stored. knocks are the requests counted just now.
type bounds struct {
	passedOfSender, passedOfDomain, reportsOfDomain, askedForDomain, storedOfDomain, fetchedForRelay, announced, knocks *policy.Limiter
}

// maxBounded bounds how many senders and domains are remembered.
const maxBounded = 10_000

const (
	// dailyStored is how many bytes a domain may have stored a day for users who do not follow the sender.
	dailyStored = 256 << 20
	// perStored is what a row takes beside the document in it, in bytes.
	perStored = 2 << 10
	// knockTime is how soon after the first knock a second one comes.
	knockTime = 10 * time.Second
)

func newBounds(now func() time.Time) bounds {
	return bounds{
		passedOfSender:  policy.NewLimiter(policy.Rate{PerSecond: 1.0 / 60, Burst: 30}, now, maxBounded),
		passedOfDomain:  policy.NewLimiter(policy.Rate{PerSecond: 1, Burst: 300}, now, maxBounded),
		reportsOfDomain: policy.NewLimiter(policy.Rate{PerSecond: 1.0 / 60, Burst: 100}, now, maxBounded),
		askedForDomain:  policy.NewLimiter(policy.Rate{PerSecond: 1, Burst: 100}, now, maxBounded),
		storedOfDomain:  policy.NewLimiter(daily(dailyStored), now, maxBounded),
		fetchedForRelay: policy.NewLimiter(policy.Rate{PerSecond: 2, Burst: 200}, now, maxBounded),
		announced:       policy.NewLimiter(policy.Rate{PerSecond: 1.0 / 60, Burst: 1}, now, maxBounded),
		knocks:          policy.NewLimiter(policy.Rate{PerSecond: 1 / knockTime.Seconds(), Burst: 1}, now, maxBounded),
	}
}

func daily(n int) policy.Rate {
	return policy.Rate{PerSecond: float64(n) / (24 * time.Hour).Seconds(), Burst: n}
}
