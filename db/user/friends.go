package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Limits on how long an actor's request to be a friend, or to follow the user, waits for the user.
const (
	keptOffer  = 30 * 24 * time.Hour
	keptFollow = 90 * 24 * time.Hour
)

// OfferCounts has the numbers of received Offers, or of Follows, that wait for the user.
type OfferCounts struct {
	OfHost int
	All    int
}

// CountOffers counts the Offers that wait for the user: those from one domain, and all.
func (t Relationships) CountOffers(ctx context.Context, host string) (OfferCounts, error) {
	return t.countWaiting(ctx, host, `type = 'friend' AND direction = 'inbound'`)
}

// CountFollows counts the Follows that wait for the user: those from one domain, and all.
func (t Relationships) CountFollows(ctx context.Context, host string) (OfferCounts, error) {
	return t.countWaiting(ctx, host, `type = 'follower'`)
}

func (t Relationships) countWaiting(ctx context.Context, host, which string) (OfferCounts, error) {
	n, err := one[OfferCounts](ctx, t.tx, "count waiting relationships", `SELECT count(*) FILTER (WHERE host = $1) AS of_host, count(*) AS all
		FROM relationships WHERE status = 'pending' AND `+which, host)
	if err != nil {
		return OfferCounts{}, err
	}
	return *n, nil
}

// FindOffersBy returns the relationships that began with a received Offer with this uri, even
// if the Offer still waits for the user. There are several if actors of one server use the same
// uri.
func (t Relationships) FindOffersBy(ctx context.Context, offer vocab.ID) ([]Relationship, error) {
	return collect[Relationship](ctx, t.tx, "read offer", `SELECT `+relationshipColumns+` FROM relationships
		WHERE activity_uri = $1 AND type = 'friend' AND direction = 'inbound'`, offer)
}

// FindOffersOf returns the relationships that began with an Offer of this actor, even if the
// Offer still waits for the user.
func (t Relationships) FindOffersOf(ctx context.Context, actor vocab.ID) ([]Relationship, error) {
	return collect[Relationship](ctx, t.tx, "read offers", `SELECT `+relationshipColumns+` FROM relationships
		WHERE actor_uri = $1 AND type = 'friend' AND direction = 'inbound' ORDER BY relation`, actor)
}

// pruneOffers removes the received Offers and the Follows that waited too long. A Follow that is
// removed has ended, so that its actor may send it again under its id.
func pruneOffers(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	_, err = t.exec(ctx, "prune offers", `DELETE FROM relationships WHERE type = 'friend' AND status = 'pending' AND direction = 'inbound' AND updated_at < $1`,
		p.Deliveries.Now.Add(-keptOffer))
	if err != nil {
		return Pruned{}, nil, err
	}
	gone, err := collect[Owned](ctx, t, "prune follows", `DELETE FROM relationships WHERE type = 'follower' AND status = 'pending' AND updated_at < $1
		RETURNING activity_uri AS id, actor_uri AS actor`, p.Deliveries.Now.Add(-keptFollow))
	if err != nil || len(gone) == 0 {
		return Pruned{}, nil, err
	}
	_, err = t.exec(ctx, "end pruned follows", endActivities, keys(gone), p.Deliveries.Now)
	return Pruned{}, nil, err
}
