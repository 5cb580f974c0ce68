package inbox

import (
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// bounds limits, for each sender or registrable domain, the actions that cost this server more
// than a request does. For example, a forwarded activity goes to every server of a user's
// followers, and a report is stored until the operator resolves it. An activity that others pass
// on without a proof, or a post that a relay passes on, makes this server fetch from another
// server. An activity for users takes space in their databases. The limiter in the field knocks
// remembers the requests that were counted a moment ago (see countRequest). The limiter in the
// field large is for requests with a large body.
type bounds struct {
	passedOfSender, passedOfDomain, reportsOfDomain, askedForDomain, storedOfDomain, storedForFollower, newActors, newAcquaintances, newVoters, fannedOut, rejected, rejectedOfActor, deletions, announced, fetchedForRelay, fetchedForGroup, knocks, large *policy.Limiter

	events, idleEvents *policy.SharedLimiter // events that strangers cause, per user
	forwarded          *policy.SharedLimiter // deliveries of forwarded activities, per user
}

// perStored is the number of bytes that a row takes in addition to the document in it.
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
		newVoters:         policy.NewVoters.Limiter(now),
		fannedOut:         policy.FanOut.Limiter(now),
		rejected:          policy.Rejections.Limiter(now),
		rejectedOfActor:   policy.ActorRejections.Limiter(now),
		deletions:         policy.Deletions.Limiter(now),
		fetchedForRelay:   policy.RelayFetches.Limiter(now),
		fetchedForGroup:   policy.GroupFetches.Limiter(now),
		announced:         policy.AnnouncedKeys.Limiter(now),
		events:            policy.StrangersEvents.Shared(now),
		idleEvents:        policy.IdleEvents.Shared(now),
		knocks:            policy.SecondKnocks.Limiter(now),
		large:             policy.LargeBodies.Limiter(now),
	}
}
