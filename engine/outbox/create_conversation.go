package outbox

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/conversation"
)

// createConversation begins a conversation with another actor, or out of a new MLS group.
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

func (p *createConversation) submit(ctx context.Context, o *Outbox, x *exchange) (bool, error) {
	if p.With != "" {
		return true, p.open(ctx, o, x)
	}
	v, err := p.host(ctx, o, x)
	if err != nil {
		return true, pointToParam(err)
	}
	_, err = o.findConversation(ctx, x, v.ID.String())
	return true, err
}

// open finds the conversation of the user with an actor, and begins it if there is none.
func (p *createConversation) open(ctx context.Context, o *Outbox, x *exchange) error {
	with, err := o.finder.findActor(ctx, x, "with", p.With)
	if err != nil {
		return err
	}
	c, _, err := o.Conversations.Open(ctx, x.User, with.ID)
	if err != nil {
		return pointToParam(err)
	}
	x.answer.Object, x.answer.Conversation = c.URI, c.ID
	return nil
}

func (p *createConversation) host(ctx context.Context, o *Outbox, x *exchange) (conversation.View, error) {
	switch {
	case p.Upgrades != "":
		return o.Conversations.Upgrade(ctx, x.User, uuid.MustParse(p.Upgrades), p.group)
	case p.Predecessor != "":
		return o.Conversations.Continue(ctx, x.User, uuid.MustParse(p.Predecessor), p.group)
	}
	return o.Conversations.Create(ctx, x.User, p.group)
}
