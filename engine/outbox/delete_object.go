package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// deleteObject deletes an object of the user's, on this server and on all servers that it was sent
// to (ActivityPub §6.4).
type deleteObject struct {
	about
	object *vocab.Object
}

func (p *deleteObject) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if p.object, err = f.ownObject(ctx, x, &p.about); err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		x.unnamed, err = tx.Groups.ListUnnamed(ctx, p.object.ID)
		return err
	})
	if err != nil {
		return err
	}
	return f.reachAll(ctx, x, p.object.Addressing)
}

func (p *deleteObject) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Delete, buildTombstone(p.object.ID, p.object.Type, x.now)
}

func buildTombstone(id vocab.ID, former string, now time.Time) vocab.Doc {
	d, err := vocab.ParseDoc(handler.Tombstone(id, former, now))
	if err != nil {
		panic("outbox: the Tombstone that was written cannot be read: " + err.Error())
	}
	return d
}

func (p *deleteObject) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	there, err := tx.Objects.Find(ctx, x.before.URI)
	if err != nil || there != nil && there.DeletedAt == nil {
		return "", err
	}
	before, err := tx.Activities.Latest(ctx, vocab.Delete, x.actor.ID, x.before.URI)
	if err == nil && before == nil {
		err = fault.New(fault.Gone, "the object was deleted").At("/params/objectId")
	}
	if err != nil {
		return "", err
	}
	return before.URI, nil
}
