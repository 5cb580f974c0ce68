package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// keptOffer limits how long an actor's request to be a friend waits for the user.
const keptOffer = 30 * 24 * time.Hour

// OfferCounts has the numbers of received Offers that wait for the user.
type OfferCounts struct {
	OfHost int
	All    int
}

// CountOffers counts the Offers that wait for the user: those from one domain, and all.
func (t Relationships) CountOffers(ctx context.Context, host string) (OfferCounts, error) {
	n, err := one[OfferCounts](ctx, t.tx, "count offers", `SELECT count(*) FILTER (WHERE host = $1) AS of_host, count(*) AS all
		FROM relationships WHERE type = 'friend' AND status = 'pending' AND direction = 'inbound'`, host)
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

// pruneOffers removes the received Offers that waited too long.
func pruneOffers(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	_, err = t.exec(ctx, "prune offers", `DELETE FROM relationships WHERE type = 'friend' AND status = 'pending' AND direction = 'inbound' AND updated_at < $1`,
		p.Deliveries.Now.Add(-keptOffer))
	return Pruned{}, nil, err
}
