package inbox

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// markBlocked marks, before anything of a batch is done, what comes from actors whom the user blocks, and what others
// pass on of theirs.
func markBlocked(ctx context.Context, tx *db.Tx, batch []*entry) error {
	var all []vocab.ID
	for _, e := range batch {
		all = append(all, behind(e.x)...)
	}
	blocked, err := tx.Blocked(ctx, all)
	if err != nil {
		return err
	}
	for _, e := range batch {
		e.x.blocked = false
		for _, id := range behind(e.x) {
			e.x.blocked = e.x.blocked || blocked[id]
		}
	}
	return nil
}

// behind returns whose activity it is, and whose objects it brings.
func behind(x *applying) []vocab.ID {
	ids := []vocab.ID{x.Actor.ID}
	for _, o := range x.Fetched {
		ids = append(ids, o.AttributedTo)
	}
	return ids
}

// takesAway are the activities of a blocked actor that still take effect, unseen: what their author takes back does not
// stay here for being blocked.
var takesAway = map[string]bool{"Delete": true, "Undo": true, "Block": true}

// dismiss ends what comes from a blocked actor.
func (i *Inbox) dismiss(ctx context.Context, x *applying) error {
	if takesAway[x.Activity.Type] {
		if err := i.Handlers.Received(ctx, x.tx, &x.Received); err != nil {
			return err
		}
	}
	return handler.ErrIgnored
}
