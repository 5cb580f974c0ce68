package conversation

import (
	"time"

	"github.com/google/uuid"

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

// newEvent returns an event that tells the host of a conversation about an act of the actor.
func newEvent(kind string, c *user.HostedConversation, host, actor vocab.ID, d vocab.Doc, now time.Time) user.Event {
	trust := "contact"
	if actor == host {
		trust = "self"
	}
	d["eventId"], d["actorUri"], d["trust"] = uuid.Must(uuid.NewV7()).String(), string(actor), trust
	d["conversation"], d["conversationId"] = string(c.URI), c.ID.String()
	return user.Event{Type: kind, Source: "local", Payload: d.JSON(), At: now}
}

// newReadEvent returns the event that tells the user's other clients how far a conversation is
// read.
func newReadEvent(c *user.Conversation, now time.Time) user.Event {
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "conversation": string(c.URI), "conversationId": c.ID.String(), "seq": c.ReadSeq, "entry": c.ReadEntry, "trust": "self"}
	return user.Event{Type: eventRead, Source: "local", Payload: d.JSON(), At: now}
}
