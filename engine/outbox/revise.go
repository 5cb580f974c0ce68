package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// reviseObject puts the words of an edit in the place of the old ones wherever the user's database
// holds these. A recipient whose server ignores an Update of an object that it does not know gets
// the Create with the new words.
func (o *Outbox) reviseObject(ctx context.Context, tx *db.Tx, x *exchange) error {
	r := db.Revision{Object: x.before.URI, Document: x.activity.Object.Doc.JSON(), Update: x.activity.ID}
	for _, i := range x.inboxes {
		if i.Skip == "" {
			r.Targets = append(r.Targets, i.Targets...)
		}
	}
	create, err := tx.LatestActivity(ctx, vocab.Create, x.actor.ID, x.before.URI)
	if err != nil {
		return err
	}
	if create != nil {
		raw, body, err := o.revisedCreate(create, x)
		if err != nil {
			return fmt.Errorf("revise Create: %w", err)
		}
		r.Create, r.Raw, r.Body = create.URI, raw, body
	}
	return tx.Revise(ctx, r, x.now)
}

// revisedCreate returns the Create of an object with the object as an Update shows it, as it is
// stored and as it is sent.
func (o *Outbox) revisedCreate(create *db.Activity, x *exchange) (raw, body json.RawMessage, err error) {
	d, err := vocab.ParseDoc(create.Raw)
	if err != nil {
		return nil, nil, err
	}
	delete(d, "proof")
	d["object"] = x.activity.Object.Doc
	d["@context"] = x.activity.Doc["@context"]
	return o.proveActivity(d, x)
}

// withdrawDeliveries takes back what is owed of a post that is deleted and was surely never sent.
// An inbox that nothing of it was sent to gets no Delete either. Of a public post it does: its
// server may have fetched it.
func (o *Outbox) withdrawDeliveries(ctx context.Context, tx *db.Tx, x *exchange) error {
	withdrawn, err := tx.WithdrawUntried(ctx, x.before.URI, x.now)
	if err != nil || len(withdrawn) == 0 || audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc}) {
		return err
	}
	sent, err := tx.SentTo(ctx, x.before.URI)
	x.inboxes = slices.DeleteFunc(x.inboxes, func(i db.Inbox) bool {
		return slices.Contains(withdrawn, i.URL) && !slices.ContainsFunc(sent, func(s db.Inbox) bool { return s.URL == i.URL })
	})
	return err
}
