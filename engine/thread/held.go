package thread

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Held returns the objects with the given ids that are in the user's database or archive and that
// the user may see. They have the order of the ids, and come with the cards of their authors.
// Held leaves out posts of actors that the user blocks or the gate refuses, and posts that the
// user has muted. It shows objects that wait among the requests, but not to an LLM engine. If the
// objects are large, it looks only at the first ones. The result looked is the number of ids that
// it has looked at.
func (r *Reader) Held(ctx context.Context, q Query, uris []vocab.ID) (shown []Object, actors map[vocab.ID]vocab.Card, looked int, err error) {
	var held []user.HeldObject
	err = r.Store.Read(ctx, q.User, func(ctx context.Context, tx *user.Tx) (err error) {
		held, err = tx.Threads.FindFound(ctx, uris)
		return err
	})
	if err != nil {
		return nil, nil, 0, fmt.Errorf("read objects: %w", err)
	}
	looked = len(uris)
	var pieces []*piece
	bytes := 0
	for _, h := range held {
		if bytes += h.Bytes(); bytes > user.MaxFeed {
			looked = slices.Index(uris, h.URI) + 1
		}
		if p, err := readHeld(h); err == nil && !(p.waits && q.Assistant) { // an object that cannot be read is skipped
			pieces = append(pieces, p)
		}
	}
	if shown, actors, err = r.showPieces(ctx, q, pieces); err != nil {
		return nil, nil, 0, fmt.Errorf("show objects: %w", err)
	}
	return append([]Object{}, shown...), actors, looked, nil
}
