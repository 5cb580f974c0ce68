package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sendMessage writes to one actor in private.
type sendMessage struct {
	RecipientURI string `json:"recipientUri" schema:"actor"`
	Content      string `json:"content" schema:"content"`

	note note
}

func (p *sendMessage) checkParams() error {
	if err := checkPresent("recipientUri", p.RecipientURI); err != nil {
		return err
	}
	return checkContent(p.Content)
}

func (p *sendMessage) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	a, err := f.findActor(ctx, x, "recipientUri", p.RecipientURI)
	if err != nil {
		return err
	}
	if a.ID.Same(x.actor.ID) {
		return badParam("recipientUri", "nobody writes to themselves")
	}
	x.addNamed(a)
	p.note = note{kind: "Note", content: p.Content, visibility: audience.Direct}
	if err := p.note.readText(ctx, f, x, true); err != nil {
		return err
	}
	return p.note.setAddressing(f, x)
}

func (p *sendMessage) constructObject(local *actor.Local, x *exchange) (string, any) {
	return p.note.constructObject(local, x)
}

func (*sendMessage) lockName() string { return "" }

func (*sendMessage) findEarlier(context.Context, *db.Tx, *exchange) (vocab.ID, error) { return "", nil }
