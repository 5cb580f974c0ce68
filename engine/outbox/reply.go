package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// reply answers an object.
type reply struct {
	ObjectID   string `json:"objectId" schema:"id"`
	Content    string `json:"content" schema:"content"`
	Visibility string `json:"visibility" schema:"visibility,optional"`
	Quote      string `json:"quote" schema:"id,optional"`

	note note
}

func (p *reply) checkParams() error {
	if _, err := parseIdentifier("objectId", p.ObjectID); err != nil {
		return err
	}
	if err := checkVisibility(p.Visibility); err != nil {
		return err
	}
	return checkContent(p.Content)
}

func (p *reply) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	p.note = note{kind: "Note", content: p.Content, visibility: p.Visibility}
	if err := p.note.makeReply(ctx, f, x, "objectId", p.ObjectID); err != nil {
		return err
	}
	if err := p.note.continueThread(ctx, f, x); err != nil {
		return err
	}
	if err := p.note.findQuoted(ctx, f, x, p.Quote); err != nil {
		return err
	}
	if err := p.note.readText(ctx, f, x, false); err != nil {
		return err
	}
	if err := p.note.setAddressing(f, x); err != nil {
		return err
	}
	return p.note.addressCommunities(ctx, f, x)
}

func (p *reply) constructObject(local *actor.Local, x *exchange) (string, any) {
	return p.note.constructObject(local, x)
}

func (*reply) lockName() string { return "" }

func (*reply) findEarlier(context.Context, *user.Tx, *exchange) (vocab.ID, error) { return "", nil }
