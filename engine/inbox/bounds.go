package inbox

import (
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// bounds is how much one sender, or one registrable domain, may have of what costs this server
// more than a request: what is passed on goes to every server of a user's followers, a report is
// kept until the operator resolves it, for what others pass on without a proof the actor's server
// is asked, and so it is for each post that a relay passes on, and what anybody sends to users is
// stored. knocks are the requests counted just now.
type bounds struct {
	passedOfSender, passedOfDomain, reportsOfDomain, askedForDomain, storedOfDomain, storedForFollower, newActors, newAcquaintances, fannedOut, announced, fetchedForRelay, fetchedForGroup, knocks *policy.Limiter

	events, idleEvents *policy.SharedLimiter // per user, of strangers
	forwarded          *policy.SharedLimiter // deliveries, per user
}

// perStored is what a row takes beside the document in it, in bytes.
const perStored = 2 << 10

func newBounds(now func() time.Time) *bounds {
	return &bounds{
		passedOfSender:    policy.ActorForwards.Limiter(now),
		passedOfDomain:    policy.DomainForwards.Limiter(now),
		forwarded:         policy.ForwardedDeliveries.Shared(now),
		reportsOfDomain:   policy.Reports.Limiter(now),
		askedForDomain:    policy.Vouching.Limiter(now),
		storedOfDomain:    policy.StrangersStorage.Limiter(now),
		storedForFollower: policy.FollowersStorage.Limiter(now),
		newActors:         policy.NewActors.Limiter(now),
		newAcquaintances:  policy.NewAcquaintances.Limiter(now),
		fannedOut:         policy.FanOut.Limiter(now),
		fetchedForRelay:   policy.RelayFetches.Limiter(now),
		fetchedForGroup:   policy.GroupFetches.Limiter(now),
		announced:         policy.AnnouncedKeys.Limiter(now),
		events:            policy.StrangersEvents.Shared(now),
		idleEvents:        policy.IdleEvents.Shared(now),
		knocks:            policy.SecondKnocks.Limiter(now),
	}
}
