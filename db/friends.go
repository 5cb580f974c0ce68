package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// keptOffer is how long somebody who asks to be a friend waits for the user.
const keptOffer = 30 * 24 * time.Hour

// OfferCounts is how many Offers of others wait for the user.
type OfferCounts struct {
	OfHost int
	All    int
}

// CountOffers counts the Offers that wait for the user: of a domain, and all.
func (t *Tx) CountOffers(ctx context.Context, host string) (OfferCounts, error) {
	n, err := one[OfferCounts](ctx, t, "count offers", `SELECT count(*) FILTER (WHERE host = $1), count(*)
		FROM relationships WHERE type = 'friend' AND status = 'pending' AND direction = 'inbound'`, host)
	if err != nil {
		return OfferCounts{}, err
	}
	return *n, nil
}

// OffersBy returns the relationships that others' Offers with this uri made or wait to make: more
// than one where two actors of one server use the same.
func (t *Tx) OffersBy(ctx context.Context, offer vocab.ID) ([]Relationship, error) {
	return collect[Relationship](ctx, t, "read offer", `SELECT `+relationshipColumns+` FROM relationships
		WHERE activity_uri = $1 AND type = 'friend' AND direction = 'inbound'`, offer)
}

// OffersOf returns the relationships that an actor's Offers made or wait to make.
func (t *Tx) OffersOf(ctx context.Context, actor vocab.ID) ([]Relationship, error) {
	return collect[Relationship](ctx, t, "read offers", `SELECT `+relationshipColumns+` FROM relationships
		WHERE actor_uri = $1 AND type = 'friend' AND direction = 'inbound' ORDER BY relation`, actor)
}

// pruneOffers removes the Offers of others that waited too long.
func pruneOffers(ctx context.Context, t *Tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	_, err = t.exec(ctx, "prune offers", `DELETE FROM relationships WHERE type = 'friend' AND status = 'pending' AND direction = 'inbound' AND updated_at < $1`,
		p.Deliveries.Now.Add(-keptOffer))
	return Pruned{}, nil, err
}
