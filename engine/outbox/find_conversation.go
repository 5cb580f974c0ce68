package outbox

import (
	"context"
	"encoding/base64"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
)

// maxSealed is the greatest number of base64 characters of an MLS message or a GroupInfo in an
// action. The routes of conversations accept larger ones.
const maxSealed = 1 << 20

// conversations finds the conversations that actions are about, and carries out the actions in
// encrypted conversations.
type conversations struct {
	registry *conversation.Registry
	members  *conversation.Members
	finder   *finder
}

// findConversation finds the user's conversation that an action is about, and puts its id into
// the answer.
func (in *conversations) findConversation(ctx context.Context, x *exchange, id string) (*user.Conversation, error) {
	c, err := in.registry.Find(ctx, x.User, uuid.MustParse(id))
	if err == nil {
		x.answer.Object, x.answer.Conversation = c.URI, c.ID
	}
	return c, err
}

// findGroup finds the conversation that an action is about. It refuses a conversation without an
// MLS group.
func (in *conversations) findGroup(ctx context.Context, x *exchange, id string) (*user.Conversation, error) {
	c, err := in.findConversation(ctx, x, id)
	if err == nil && c.GroupID == "" {
		err = fault.New(fault.Unprocessable, "the conversation has no MLS group").WithCode("not_encrypted").At("/params/conversationId")
	}
	return c, err
}

// checkUUID refuses a value that is not a UUID in its canonical form.
func checkUUID(name, value string) error {
	if id, err := uuid.Parse(value); err != nil || id.String() != value {
		return badParam(name, name+" is the id of a conversation")
	}
	return nil
}

// decodeSealed decodes a parameter that is base64.
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

// pointToParam changes the JSON Pointer of a refusal from package conversation, so that it
// points to the parameter of the action.
func pointToParam(err error) error {
	if e := fault.Of(err); e != nil && e.Pointer != "" {
		return e.At("/params" + e.Pointer)
	}
	return err
}
