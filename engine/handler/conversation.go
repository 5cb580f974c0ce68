package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// registerMessages registers the handlers of messages of encrypted conversations. These messages
// have tables of their own: they are not stored as objects or activities, and not in feeds.
func registerMessages(r *Registry, local *actor.Local) {
	for _, kind := range vocab.SealedTypes {
		if kind == keyPackage {
			continue // a key package is not encrypted
		}
		r.Register(Key{Type: vocab.Create, ObjectType: kind}, newMessage(local, r.profiles))
		r.Register(Key{Type: vocab.Add, ObjectType: kind}, newEntry())
	}
	r.Register(Key{Type: vocab.Update, ObjectType: vocab.OrderedCollection}, newConversationState())
}

const keyPackage = "KeyPackage"

// newMessage returns the handler of a Create of a message, which comes from the sender's own
// server.
func newMessage(local *actor.Local, profiles Profiles) Handler {
	inboxes := func(all []user.Destination) []user.Inbox { return delivery.Destinations(all, nil, local.InboxOwner) }
	return Handler{
		Final: true, InFeed: true, Words: true, Authored: true, ShowsObject: true, // as any Create
		Apart:    func(a *vocab.Activity) bool { return true },
		Check:    checkMessage,
		Received: receiveMessages(conversation.Orderer{Actors: local, Inboxes: inboxes, Rules: profiles}.ReceiveForeign),
	}
}

// checkMessage refuses a message in the name of another actor. It accepts a message without an
// id, because many have none.
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

// isEntry reports whether an activity adds an object to a conversation.
func isEntry(a *vocab.Activity) bool { return conversation.IsConversation(a.Target.ID) }

// isState reports whether the object of an activity is a conversation. Such an activity tells
// the state of the conversation.
func isState(a *vocab.Activity) bool { return conversation.IsConversation(a.Object.ID) }

// newEntry returns the handler of an Add of a message. If the target is a conversation, the Add
// says that the conversation's host has put the message into the conversation's log. For any other
// target it does the same as the handler that newAdd returns.
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
	h.Received = func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
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

// newConversationState returns the handler of an Update of a collection. If the collection is a
// conversation, the Update tells its state. For any other collection it does the same as the
// handler that newUpdate returns, which refuses collections.
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
	h.Received = func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
		if !isState(r.Activity) {
			return received(ctx, tx, r)
		}
		return receiveMessages(conversation.ReceiveState)(ctx, tx, r)
	}
	return h
}

// receiveMessages returns a function that applies a message. That function calls receive, which
// stores the message and adds its events.
func receiveMessages(receive func(context.Context, *user.Tx, conversation.Arrival) (conversation.Outcome, error)) func(context.Context, *user.Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
		if !r.Named { // it is forwarded, or came to the shared inbox without naming the user
			return Effects{}, ErrIgnored
		}
		o, err := receive(ctx, tx, conversation.Arrival{User: r.User, Me: r.Me, Activity: r.Activity, Sender: r.Actor, IsBlocked: r.Blocked, Now: r.Now, Applied: r.Applied, EncryptedChat: r.EncryptedChat, Tells: r.Tells, Refuses: r.Refuses, Mutes: r.Mutes})
		if err == nil && !o.Kept {
			err = ErrIgnored
		}
		return Effects{Silent: true, Undecryptable: o.Reason, Mislabeled: o.Mislabeled}, err
	}
}

// IsInvitation reports whether an activity adds a Welcome to a conversation. By a Welcome its
// recipients can join the conversation.
func IsInvitation(a *vocab.Activity) bool { return isEntry(a) && a.Object.Doc.Sealed() == "Welcome" }
