package outbox

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/conversation"
)

// createConversation begins a conversation. The parameters name either the other actor, or the
// GroupInfo of a new MLS group, which makes the conversation encrypted.
type createConversation struct {
	With        string `json:"with" schema:"actor,either"`
	GroupInfo   string `json:"groupInfo" schema:"mls,either"`
	Upgrades    string `json:"upgrades" schema:"conversation,optional,groupInfo"`
	Predecessor string `json:"predecessor" schema:"conversation,optional,groupInfo"`

	group []byte
}

func (p *createConversation) checkParams() (err error) {
	switch {
	case (p.With == "") == (p.GroupInfo == ""):
		return badParam("groupInfo", "give either with or groupInfo")
	case p.With != "" && (p.Upgrades != "" || p.Predecessor != ""):
		return badParam("with", "with stands alone")
	case p.Upgrades != "" && p.Predecessor != "":
		return badParam("upgrades", "give either upgrades or predecessor")
	case p.Upgrades != "":
		err = checkUUID("upgrades", p.Upgrades)
	case p.Predecessor != "":
		err = checkUUID("predecessor", p.Predecessor)
	}
	if err == nil && p.GroupInfo != "" {
		p.group, err = decodeSealed("groupInfo", p.GroupInfo)
	}
	return err
}

func (p *createConversation) submit(ctx context.Context, in *conversations, x *exchange) (bool, error) {
	if p.With != "" {
		return true, p.open(ctx, in, x)
	}
	v, err := p.host(ctx, in, x)
	if err != nil {
		return true, pointToParam(err)
	}
	_, err = in.findConversation(ctx, x, v.ID.String())
	return true, err
}

// open finds the user's conversation with an actor, or begins it if there is none.
func (p *createConversation) open(ctx context.Context, in *conversations, x *exchange) error {
	with, err := in.finder.findActor(ctx, x, "with", p.With)
	if err != nil {
		return err
	}
	c, _, err := in.registry.Open(ctx, x.User, with.ID)
	if err != nil {
		return pointToParam(err)
	}
	x.answer.Object, x.answer.Conversation = c.URI, c.ID
	return nil
}

func (p *createConversation) host(ctx context.Context, in *conversations, x *exchange) (conversation.View, error) {
	switch {
	case p.Upgrades != "":
		return in.registry.Upgrade(ctx, x.User, uuid.MustParse(p.Upgrades), p.group)
	case p.Predecessor != "":
		return in.registry.Continue(ctx, x.User, uuid.MustParse(p.Predecessor), p.group)
	}
	return in.registry.Create(ctx, x.User, p.group)
}
