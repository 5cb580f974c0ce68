package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
)

// leaveConversation asks the other members of an encrypted conversation to remove the user,
// because in MLS a device cannot remove itself.
type leaveConversation struct {
	ConversationID string `json:"conversationId" schema:"conversation"`
	Proposal       string `json:"proposal" schema:"mls"`

	content []byte
}

func (p *leaveConversation) checkParams() (err error) {
	if err := checkUUID("conversationId", p.ConversationID); err != nil {
		return err
	}
	p.content, err = decodeSealed("proposal", p.Proposal)
	return err
}

func (p *leaveConversation) submit(ctx context.Context, in *conversations, x *exchange) (bool, error) {
	c, err := in.findGroup(ctx, x, p.ConversationID)
	if err != nil {
		return true, err
	}
	if conversation.IsCiphertext(p.content) {
		return true, fault.New(fault.Unprocessable, "a member that leaves sends a proposal to be removed").WithCode("bad_proposal").At("/params/proposal")
	}
	accepted, err := in.members.Send(ctx, x.User, c, p.content)
	x.answer.Accepted = &accepted
	if e := fault.Of(err); e != nil && e.Pointer == "/message" {
		err = e.At("/params/proposal")
	}
	return true, err
}
