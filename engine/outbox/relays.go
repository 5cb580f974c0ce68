package outbox

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// chooseRelays returns the inboxes of the relays that get the activity itself (take), and those of
// the relays that get an Announce of its object by the instance actor (told). Relays get posts
// that name Public in the field to, the Updates and Deletes of such posts, and the Delete of the
// user. LitePub relays get an Announce of a new post, but they get the Update or Delete of a post
// directly. No relay gets unlisted posts. No relay gets boosts, because the author of a boosted
// post may not use any relay (FEP-ae0c).
func (f *fanOut) chooseRelays(x *exchange) (take, told []user.Inbox) {
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
	for _, r := range f.relays.Active() {
		i := user.Inbox{URL: r.Inbox, Host: r.Inbox.Host(), Targets: []vocab.ID{r.Actor}}
		if writes && r.Style == instance.RelayLitePub {
			told = append(told, i)
		} else {
			take = append(take, i)
		}
	}
	return take, told
}

// tellRelays stores the deliveries of an Announce of the user's post to LitePub relays. The
// Announce is by the instance actor, which the relays accept. Its deliveries are ordered with
// those of the post, so that no Delete of the post overtakes it.
func (f *fanOut) tellRelays(ctx context.Context, tx *user.Tx, x *exchange) error {
	if len(x.told) == 0 {
		return nil
	}
	id, d := f.relays.AnnounceActivity(x.activity.Object.ID)
	return tx.Deliveries.Enqueue(ctx, user.Job{ID: uuid.Must(uuid.NewV7()), Activity: id, Object: x.activity.Object.ID, Type: vocab.Announce, Body: d.JSON(), Instance: true}, x.told, x.now)
}
