package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// reviseObject replaces the old text of an object by the edited one everywhere in the user's
// database. An open or failed delivery of the Create to a recipient of the Update then carries the
// edited object, because some servers ignore an Update of an object that they do not have. Other
// open and failed deliveries of the old text are skipped.
func (o *Outbox) reviseObject(ctx context.Context, tx *user.Tx, x *exchange) error {
	r := user.Revision{Object: x.before.URI, Document: x.activity.Object.Doc.JSON(), Update: x.activity.ID}
	for _, i := range x.inboxes {
		if i.Skip == "" {
			r.Targets = append(r.Targets, i.Targets...)
		}
	}
	create, err := tx.Activities.Latest(ctx, vocab.Create, x.actor.ID, x.before.URI)
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
	return tx.Deliveries.Revise(ctx, r, x.now)
}

// revisedCreate returns the Create of an object with the edited object of the Update, in the
// stored form (raw) and in the form that is sent (body).
func (o *Outbox) revisedCreate(create *user.Activity, x *exchange) (raw, body json.RawMessage, err error) {
	a, err := create.Parse()
	if err != nil {
		return nil, nil, err
	}
	d := a.Doc
	delete(d, "proof")
	d["object"] = x.activity.Object.Doc
	d["@context"] = x.activity.Doc["@context"]
	return o.proveActivity(d, x)
}
