package outbox

import (
	"context"
	"encoding/base64"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
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

// findGroup finds the conversation that an action is about, if it has an MLS group.
func (o *Outbox) findGroup(ctx context.Context, x *exchange, id string) (*db.Conversation, error) {
	c, err := o.findConversation(ctx, x, id)
	if err == nil && c.GroupID == "" {
		err = fault.New(fault.Unprocessable, "the conversation has no MLS group").WithCode("not_encrypted").At("/params/conversationId")
	}
	return c, err
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
