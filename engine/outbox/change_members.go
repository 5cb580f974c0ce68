package outbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
)

// memberChange is a commit that changes who is in an encrypted conversation.
type memberChange struct {
	ConversationID string   `json:"conversationId" schema:"conversation"`
	Commit         string   `json:"commit" schema:"mls"`
	GroupInfo      string   `json:"groupInfo" schema:"mls"`
	Welcomes       []string `json:"welcomes" schema:"welcomes,optional"`

	commit conversation.Commit
}

func (p *memberChange) checkParams() (err error) {
	if err := checkUUID("conversationId", p.ConversationID); err != nil {
		return err
	}
	if p.commit.Message, err = decodeSealed("commit", p.Commit); err != nil {
		return err
	}
	if p.commit.GroupInfo, err = decodeSealed("groupInfo", p.GroupInfo); err != nil {
		return err
	}
	if len(p.Welcomes) > maxNamed {
		return badParam("welcomes", fmt.Sprintf("welcomes has more than %d parts", maxNamed))
	}
	for i, w := range p.Welcomes {
		content, err := decodeSealed(fmt.Sprint("welcomes/", i), w)
		if err != nil {
			return err
		}
		p.commit.Welcomes = append(p.commit.Welcomes, content)
	}
	return nil
}

// submitCommit sends the commit, unless it is for something else than the action says.
func (p *memberChange) submitCommit(ctx context.Context, o *Outbox, x *exchange, isMeant func(conversation.Changes) bool, words string) (bool, error) {
	c, err := o.findGroup(ctx, x, p.ConversationID)
	if err != nil {
		return true, err
	}
	if changes, isReadable := conversation.ReadChanges(p.commit.Message); isReadable && !isMeant(changes) {
		return true, fault.New(fault.Unprocessable, words).WithCode("bad_proposal").At("/params/commit")
	}
	p.commit.Key = x.IdempotencyKey
	accepted, err := o.Members.Commit(ctx, x.User, c, p.commit)
	x.answer.Accepted = &accepted
	return true, pointToParam(err)
}

type addMembers struct{ memberChange }

func (p *addMembers) submit(ctx context.Context, o *Outbox, x *exchange) (bool, error) {
	return p.submitCommit(ctx, o, x, func(c conversation.Changes) bool { return c.Adds }, "the commit adds no device")
}

type removeMember struct{ memberChange }

func (p *removeMember) submit(ctx context.Context, o *Outbox, x *exchange) (bool, error) {
	return p.submitCommit(ctx, o, x, func(c conversation.Changes) bool { return c.Removes && !c.Adds }, "the commit removes no device, or adds one")
}
