package conversation

import (
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Events of conversations. They hold ids and numbers, and nothing that was said.
const (
	eventCommit  = "mls.commit.received"
	eventMessage = "mls.message.received"
	eventWelcome = "conversation.welcome"
	eventReset   = "mls.reset.pending"
	eventLow     = "keypackages.low"
	eventReport  = "mls.recovery.reported"
	eventChat    = "chatmessage.received"

	eventEquivocation  = "mls.equivocation"
	eventUndecryptable = "mls.undecryptable"

	eventUpgraded  = "conversation.upgraded"
	eventSuccessor = "conversation.continued"
)

// newEvent returns an event for the host of a conversation of something that an actor did there.
func newEvent(kind string, c *db.HostedConversation, host, actor vocab.ID, d vocab.Doc, now time.Time) db.Event {
	trust := "contact"
	if actor == host {
		trust = "self"
	}
	d["eventId"], d["conversation"], d["actorUri"], d["trust"] = uuid.Must(uuid.NewV7()).String(), string(c.URI), string(actor), trust
	return db.Event{Type: kind, Source: "local", Payload: d.JSON(), At: now}
}
