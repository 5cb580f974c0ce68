package conversation

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Types of the events of conversations. The events hold ids and numbers, and no content of
// messages.
const (
	eventCommit  = "mls.commit.received"
	eventMessage = "mls.message.received"
	eventRemoved = "mls.member.removed"
	eventWelcome = "conversation.welcome"
	eventReset   = "mls.reset.pending"
	eventBegun   = "mls.epoch.advanced" // a reset has ended; of epochs that commits begin, eventCommit tells
	eventLow     = "keypackages.low"
	eventReport  = "mls.recovery.reported"
	eventChat    = "chatmessage.received"

	eventEquivocation  = "mls.equivocation"
	eventUndecryptable = "mls.undecryptable"

	eventUpgraded  = "conversation.upgraded"
	eventSuccessor = "conversation.continued"
	eventRead      = "conversation.read"
)

// ReceivedEvents returns the types of events that end like the type of a received activity's event.
func ReceivedEvents() []string { return []string{eventCommit, eventMessage, eventChat} }

// trustIn returns how far the user me trusts the actor by in an event of a conversation. The
// parameter isIn reports whether a device of the user is in the conversation, which makes contacts
// of its members. Another actor is a contact if the user follows it or is its friend.
func trustIn(ctx context.Context, tx *user.Tx, isIn bool, me, by vocab.ID) (string, error) {
	if !isIn && !by.Same(me) {
		if known, err := isKnown(ctx, tx, by); err != nil || !known {
			return user.TrustStranger, err
		}
	}
	return trustMember(me, by), nil
}

// trustMember is trustIn for a conversation with a device of the user, such as one that the user
// hosts.
func trustMember(me, by vocab.ID) string {
	if by.Same(me) {
		return user.TrustSelf
	}
	return user.TrustContact
}

// hasJoined reports whether a device of the user has joined a conversation.
func hasJoined(j *user.JoinedConversation) bool { return j != nil && j.Confirmed }

// newEvent returns an event that tells the host of a conversation about an act of a member.
func newEvent(kind string, c *user.HostedConversation, host, actor vocab.ID, d vocab.Doc, now time.Time) user.Event {
	d["actorUri"], d["conversation"], d["conversationId"] = string(actor), string(c.URI), c.ID.String()
	return user.NewEvent(kind, user.SourceLocal, trustMember(host, actor), d, now)
}

// newReadEvent returns the event that tells the user's other clients how far a conversation is
// read.
func newReadEvent(c *user.Conversation, now time.Time) user.Event {
	d := vocab.Doc{"conversation": string(c.URI), "conversationId": c.ID.String(), "seq": c.ReadSeq, "entry": c.ReadEntry}
	return user.NewEvent(eventRead, user.SourceLocal, user.TrustSelf, d, now)
}
