package outbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// memberChange is an MLS commit that changes the members of an encrypted conversation.
type memberChange struct {
	ConversationID string   `json:"conversationId" schema:"conversation"`
	Commit         string   `json:"commit" schema:"mls"`
	GroupInfo      string   `json:"groupInfo" schema:"groupInfo,optional"`
	Welcomes       []string `json:"welcomes" schema:"welcomes,optional"`
	Added          []string `json:"added" schema:"added,optional"`
	Removed        []string `json:"removed" schema:"removed,optional"`

	commit conversation.Commit
}

func (p *memberChange) checkParams() (err error) {
	if err := checkUUID("conversationId", p.ConversationID); err != nil {
		return err
	}
	if p.commit.Message, err = decodeSealed("commit", p.Commit); err != nil {
		return err
	}
	if p.GroupInfo != "" {
		if p.commit.GroupInfo, err = decodeSealed("groupInfo", p.GroupInfo); err != nil {
			return err
		}
	}
	if p.commit.Welcomes, err = decodeAll("welcomes", p.Welcomes); err != nil {
		return err
	}
	if p.commit.Added, err = decodeAll("added", p.Added); err != nil {
		return err
	}
	if len(p.Removed) > maxNamed {
		return badParam("removed", fmt.Sprintf("removed has more than %d parts", maxNamed))
	}
	for _, id := range p.Removed {
		p.commit.Removed = append(p.commit.Removed, vocab.IDOf(id))
	}
	return nil
}

// decodeAll reads a parameter that is a list of base64 texts.
func decodeAll(name string, values []string) (all [][]byte, err error) {
	if len(values) > maxNamed {
		return nil, badParam(name, fmt.Sprintf("%s has more than %d parts", name, maxNamed))
	}
	for i, v := range values {
		content, err := decodeSealed(fmt.Sprint(name, "/", i), v)
		if err != nil {
			return nil, err
		}
		all = append(all, content)
	}
	return all, nil
}

// submitCommit sends the commit. It refuses the commit if the changes that the commit makes are
// readable and the function isMeant rejects them. The parameter words is the text of that refusal.
func (p *memberChange) submitCommit(ctx context.Context, in *conversations, x *exchange, isMeant func(conversation.Changes) bool, words string) (bool, error) {
	c, err := in.findGroup(ctx, x, p.ConversationID)
	if err != nil {
		return true, err
	}
	if changes, isReadable := conversation.ReadChanges(p.commit); isReadable && !isMeant(changes) {
		return true, fault.New(fault.Unprocessable, words).WithCode("bad_proposal").At("/params/commit")
	}
	p.commit.Key = x.IdempotencyKey
	accepted, err := in.members.Commit(ctx, x.User, c, p.commit)
	x.answer.Accepted = &accepted
	return true, pointToParam(err)
}

type addMembers struct{ memberChange }

func (p *addMembers) submit(ctx context.Context, in *conversations, x *exchange) (bool, error) {
	return p.submitCommit(ctx, in, x, func(c conversation.Changes) bool { return c.Adds }, "the commit adds no device")
}

type removeMember struct{ memberChange }

func (p *removeMember) submit(ctx context.Context, in *conversations, x *exchange) (bool, error) {
	return p.submitCommit(ctx, in, x, func(c conversation.Changes) bool { return c.Removes && !c.Adds }, "the commit removes no device, or adds one")
}
