package outbox

import (
	"context"
	"encoding/base64"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
)

// maxSealed is how many characters of base64 a message of MLS, or a GroupInfo, has in an action.
// The routes of conversations take larger ones.
const maxSealed = 1 << 20

// findConversation finds the conversation of the user's that an action is about, and answers with
// it.
func (o *Outbox) findConversation(ctx context.Context, x *exchange, id string) (*db.Conversation, error) {
	c, err := o.Conversations.Find(ctx, x.User, uuid.MustParse(id))
	if err == nil {
		x.answer.Object, x.answer.Conversation = c.URI, c.ID
	}
	return c, err
}

// findHosted finds where the conversation that an action is about is put in order.
func (o *Outbox) findHosted(ctx context.Context, x *exchange, id string) (at conversation.Place, err error) {
	c, err := o.findConversation(ctx, x, id)
	if err != nil {
		return at, err
	}
	return o.placeOf(c)
}

// placeOf returns where a conversation is put in order, if that is here.
func (o *Outbox) placeOf(c *db.Conversation) (at conversation.Place, err error) {
	host, isLocal := o.Local.Owner(c.Host)
	if !isLocal || c.GroupID == "" {
		return at, fault.New(fault.Unprocessable, "the conversation is not put in order on this server").WithCode("not_hosted_here")
	}
	return conversation.Place{Host: host, ID: c.ID}, nil
}

// checkUUID refuses what is not the one spelling of a UUID.
func checkUUID(name, value string) error {
	if id, err := uuid.Parse(value); err != nil || id.String() != value {
		return badParam(name, name+" is the id of a conversation")
	}
	return nil
}

// decodeSealed reads a parameter that is base64.
func decodeSealed(name, value string) ([]byte, error) {
	if value == "" {
		return nil, badParam(name, name+" is missing")
	}
	if len(value) > maxSealed {
		return nil, badParam(name, name+" has more than 1 MiB")
	}
	content, err := base64.StdEncoding.Strict().DecodeString(value)
	if err != nil {
		return nil, badParam(name, name+" is base64 with padding")
	}
	return content, nil
}

// pointToParam has a refusal of a request to a conversation point to the parameter of the action.
func pointToParam(err error) error {
	if e := fault.Of(err); e != nil && e.Pointer != "" {
		return e.At("/params" + e.Pointer)
	}
	return err
}
