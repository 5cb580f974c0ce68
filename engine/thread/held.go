package thread

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Held returns those of some objects that the user holds, or has archived, and may be shown, in
// their order, with the cards of their authors: as Thread shows them, but for what waits among the
// requests, which only an LLM engine is not shown. When they are large, it looks at the first ones
// alone, and returns how many that were.
func (r *Reader) Held(ctx context.Context, q Query, uris []vocab.ID) (shown []Object, actors map[vocab.ID]vocab.Card, looked int, err error) {
	var held []db.HeldObject
	err = r.Store.Read(ctx, q.User, func(ctx context.Context, tx *db.Tx) (err error) {
		held, err = tx.FoundObjects(ctx, uris)
		return err
	})
	if err != nil {
		return nil, nil, 0, fmt.Errorf("read objects: %w", err)
	}
	looked = len(uris)
	var pieces []*piece
	bytes := 0
	for _, h := range held {
		if bytes += h.Bytes(); bytes > db.MaxFeed {
			looked = slices.Index(uris, h.URI) + 1
		}
		if p, err := readHeld(h); err == nil && !(p.waits && q.Assistant) { // one that cannot be read takes no others away
			pieces = append(pieces, p)
		}
	}
	if shown, actors, err = r.showPieces(ctx, q, pieces); err != nil {
		return nil, nil, 0, fmt.Errorf("show objects: %w", err)
	}
	return append([]Object{}, shown...), actors, looked, nil
}
