package outbox

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// chooseRelays returns the inboxes of relays that take the activity as it is, and of those that are
// told of its object by the instance actor. Relays get posts that are openly to everybody, and what
// changes or deletes these: LitePub ones take that as it is, too. Nothing that is unlisted, and no
// boost: whose post that is may not be on any relay (FEP-ae0c).
func (o *Outbox) chooseRelays(x *exchange) (take, told []db.Inbox) {
	writes := false
	switch x.intent.(type) {
	case *createNote, *createArticle, *createObject, *reply:
		writes = true
	case *updateObject, *deleteObject, deleteActor:
	default:
		return nil, nil
	}
	if !slices.Contains(x.to, vocab.Public) {
		return nil, nil
	}
	for _, r := range o.Relays.Active() {
		i := db.Inbox{URL: r.Inbox, Host: r.Inbox.Host(), Targets: []vocab.ID{r.Actor}}
		if writes && r.Style == instance.RelayLitePub {
			told = append(told, i)
		} else {
			take = append(take, i)
		}
	}
	return take, told
}

// tellRelays owes LitePub relays an Announce of what the user wrote. It is by the instance actor,
// which they know, and is about the post, so that no Delete of that overtakes it.
func (o *Outbox) tellRelays(ctx context.Context, tx *db.Tx, x *exchange) error {
	if len(x.told) == 0 {
		return nil
	}
	id, d := o.Relays.AnnounceActivity(x.activity.Object.ID)
	return tx.Enqueue(ctx, db.Job{ID: uuid.Must(uuid.NewV7()), Activity: id, Object: x.activity.Object.ID, Type: vocab.Announce, Body: d.JSON(), Instance: true}, x.told, x.now)
}
