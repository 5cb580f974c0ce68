package db

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Cards returns how actors are shown, as far as the user has copies of them.
func (t *Tx) Cards(ctx context.Context, actors []vocab.ID) (map[vocab.ID]vocab.Card, error) {
	type row struct {
		Actor vocab.ID
		Raw   []byte
	}
	rows, err := collect[row](ctx, t, "read how actors are shown", `SELECT uri, jsonb_build_object('id', raw -> 'id', 'preferredUsername', raw -> 'preferredUsername',
		'name', raw -> 'name', 'nameMap', raw -> 'nameMap', 'icon', raw -> 'icon', 'followers', raw -> 'followers') FROM actors WHERE uri = ANY($1)`, texts(actors))
	cards := make(map[vocab.ID]vocab.Card, len(rows))
	for _, r := range rows {
		if d, err := vocab.ParseDoc(r.Raw); err == nil { // one actor that cannot be read takes no others away
			cards[r.Actor] = vocab.CardOf(r.Actor, d)
		}
	}
	return cards, err
}
