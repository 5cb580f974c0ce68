package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// registerMessages adds what is done with messages of encrypted conversations, which have a
// place of their own: no object, no feed and no activity has them.
func registerMessages(r *Registry, local *actor.Local) {
	for _, kind := range vocab.SealedTypes {
		if kind == keyPackage {
			continue // it is in the open
		}
		r.Register(Key{Type: vocab.Create, ObjectType: kind}, newMessage(local))
		r.Register(Key{Type: vocab.Add, ObjectType: kind}, newEntry())
	}
	r.Register(Key{Type: vocab.Update, ObjectType: vocab.OrderedCollection}, newConversationState())
}

const keyPackage = "KeyPackage"

// newMessage returns the handler of Create for messages: the sender's own server sends them.
func newMessage(local *actor.Local) Handler {
	inboxes := func(all []db.Destination) []db.Inbox { return delivery.Destinations(all, nil, local.InboxOwner) }
	return Handler{
		Final: true, InFeed: true, Words: true, Authored: true, ShowsObject: true, // as any Create
		Apart:    func(a *vocab.Activity) bool { return true },
		Check:    checkMessage,
		Received: receiveMessages(conversation.Orderer{Actors: local, Inboxes: inboxes}.ReceiveForeign),
	}
}

// checkMessage refuses messages in the name of others. Many have no id.
func checkMessage(a *vocab.Activity) error {
	by, err := a.Object.Doc.IDs("attributedTo")
	if err != nil {
		return err
	}
	if len(by) > 1 || len(by) == 1 && !by[0].Same(a.Actor) {
		return fault.New(fault.Invalid, "the object must be attributed to the actor").WithCode("foreign_object").At("/object/attributedTo")
	}
	if id := a.Object.ID; id != "" && !id.SameOrigin(a.Actor) {
		return fault.New(fault.Invalid, "the object must be on its actor's server").WithCode("foreign_object").At("/object/id")
	}
	return conversation.CheckForeign(a)
}

// isEntry reports whether an activity puts something into a conversation.
func isEntry(a *vocab.Activity) bool { return conversation.IsConversation(a.Target.ID) }

// isState reports whether an activity tells the state of a conversation.
func isState(a *vocab.Activity) bool { return conversation.IsConversation(a.Object.ID) }

// newEntry returns the handler of Add for messages: a host put them into the log of a
// conversation. Into any other collection they go as all objects do.
func newEntry() Handler {
	h := newAdd()
	h.Apart = isEntry
	check, received := h.Check, h.Received
	h.Check = func(a *vocab.Activity) error {
		if err := check(a); err != nil || !isEntry(a) {
			return err
		}
		return conversation.CheckEntry(a)
	}
	h.Received = func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
		if !isEntry(r.Activity) {
			return received(ctx, tx, r)
		}
		return receiveMessages(conversation.ReceiveEntry)(ctx, tx, r)
	}
	h.Needs = func(a *vocab.Activity) []vocab.ID {
		if isEntry(a) {
			return nil
		}
		return needsPinned(a)
	}
	return h
}

// newConversationState returns the handler of Update for the state of a conversation. No other
// collection is updated.
func newConversationState() Handler {
	h := newUpdate()
	h.Apart = isState
	check, received := h.Check, h.Received
	h.Check = func(a *vocab.Activity) error {
		if !isState(a) {
			return check(a)
		}
		return conversation.CheckState(a)
	}
	h.Received = func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
		if !isState(r.Activity) {
			return received(ctx, tx, r)
		}
		return receiveMessages(conversation.ReceiveState)(ctx, tx, r)
	}
	return h
}

// receiveMessages keeps a message where messages are kept. Events tell of it there.
func receiveMessages(receive func(context.Context, conversation.InboxTx, conversation.Arrival) (conversation.Outcome, error)) func(context.Context, Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
		if !r.Named { // somebody passes it on
			return Effects{}, ErrIgnored
		}
		o, err := receive(ctx, tx, conversation.Arrival{User: r.User, Me: r.Me, Activity: r.Activity, Sender: r.Actor, IsBlocked: r.Blocked, Now: r.Now, Applied: r.Applied, EncryptedChat: r.EncryptedChat})
		if err == nil && !o.Kept {
			err = ErrIgnored
		}
		return Effects{Silent: true, Undecryptable: o.Reason}, err
	}
}

// IsInvitation reports whether an activity of a host lets its recipients into a conversation.
func IsInvitation(a *vocab.Activity) bool { return isEntry(a) && a.Object.Doc.Sealed() == "Welcome" }
