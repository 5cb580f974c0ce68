package outbox

import (
	"context"
	"encoding/base64"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sendMessage writes a private message to one actor, or to a conversation. The content is plain
// text, or ciphertext if the conversation is encrypted.
type sendMessage struct {
	RecipientURI   string `json:"recipientUri" schema:"actor,either"`
	ConversationID string `json:"conversationId" schema:"conversation,either"`
	Content        string `json:"content" schema:"message"`

	note note
}

func (p *sendMessage) checkParams() error {
	if err := checkEither("recipientUri", p.RecipientURI, "conversationId", p.ConversationID); err != nil {
		return err
	}
	if p.ConversationID != "" {
		if err := checkUUID("conversationId", p.ConversationID); err != nil {
			return err
		}
	}
	return checkContent(p.Content)
}

// submit sends ciphertext if the conversation is encrypted, and reports whether the conversation
// is encrypted. If it is not, submit sets the recipient to the partner in the conversation.
func (p *sendMessage) submit(ctx context.Context, in *conversations, x *exchange) (bool, error) {
	if p.ConversationID == "" {
		return false, nil
	}
	c, err := in.registry.Find(ctx, x.User, uuid.MustParse(p.ConversationID))
	if err != nil {
		return false, err
	}
	if c.Mode == user.ModeFederated {
		p.RecipientURI = string(c.Partner)
		return false, nil
	}
	if x.Assistant {
		return true, fault.New(fault.Forbidden, "the conversation is encrypted: an LLM engine has no key").WithCode("insufficient_scope")
	}
	content, err := base64.StdEncoding.Strict().DecodeString(p.Content)
	if err != nil || !conversation.IsCiphertext(content) {
		return true, fault.New(fault.Unprocessable, "the conversation is encrypted: content is base64 of an MLS PrivateMessage").WithCode("mls_ciphertext_required").At("/params/content")
	}
	accepted, err := in.members.Send(ctx, x.User, c, content)
	x.answer.Object, x.answer.Accepted = c.URI, &accepted
	return true, err
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

func (*sendMessage) findEarlier(context.Context, *user.Tx, *exchange) (vocab.ID, error) {
	return "", nil
}
