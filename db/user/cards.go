package user

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// FindCards returns the cards of those actors that the user has copies of.
func (t Actors) FindCards(ctx context.Context, actors []vocab.ID) (map[vocab.ID]vocab.Card, error) {
	type row struct {
		Actor vocab.ID
		Raw   []byte
	}
	rows, err := collect[row](ctx, t.tx, "read how actors are shown", `SELECT uri AS actor, jsonb_build_object('id', raw -> 'id', 'preferredUsername', raw -> 'preferredUsername',
		'name', raw -> 'name', 'nameMap', raw -> 'nameMap', 'icon', raw -> 'icon', 'followers', raw -> 'followers') AS raw FROM actors WHERE uri = ANY($1)`, texts(actors))
	cards := make(map[vocab.ID]vocab.Card, len(rows))
	for _, r := range rows {
		if d, err := vocab.ParseDoc(r.Raw); err == nil { // an actor that cannot be parsed is left out
			cards[r.Actor] = vocab.CardOf(r.Actor, d)
		}
	}
	return cards, err
}
