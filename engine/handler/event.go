package handler

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Payload is the content of an event.
type Payload struct {
	Activity vocab.ID
	Type     string
	Actor    vocab.ID
	Object   vocab.ID // empty if the activity is about nothing with an id
	Trust    string
	Cause    Cause
}

// Cause is the event to which a client reacted with an action.
type Cause struct {
	Event uuid.UUID `json:"eventId"` // zero if the action is no reaction
	Depth int       `json:"depth"`   // the length of the chain of reactions, this one included
}

// NewEvent returns the event that tells of an activity.
func NewEvent(kind string, p Payload, now time.Time) user.Event {
	d := vocab.Doc{"activityUri": string(p.Activity), "activityType": p.Type, "actorUri": string(p.Actor)}
	if p.Object != "" {
		d["objectUri"] = string(p.Object)
	}
	addCause(d, p.Cause)
	return user.NewEvent(kind, user.SourceAP, p.Trust, d, now)
}

// Withheld returns an event that counts one withheld event. An event is withheld, that is, not
// added, when the budget of strangers is used up.
func Withheld(now time.Time) user.Event {
	return user.NewEvent("events.withheld", user.SourceAP, user.TrustStranger, vocab.Doc{"count": 1}, now)
}

// ReadPayload is the content of the event that tells how far the user has read a feed.
type ReadPayload struct {
	Feed      string
	Entry     uuid.UUID // the last entry that was read
	Published time.Time // when that entry was published
	Cause     Cause
}

// NewReadEvent returns the event that tells the user's other clients how far a feed is read. Its
// type is feed.read. For the feed of requests it is request.read, like the types of other events
// about requests.
func NewReadEvent(p ReadPayload, now time.Time) user.Event {
	d := vocab.Doc{"feed": p.Feed, "entryId": p.Entry.String(), "published": p.Published.Format(time.RFC3339Nano)}
	addCause(d, p.Cause)
	kind := "feed.read"
	if p.Feed == feed.Requests {
		kind = "request.read"
	}
	return user.NewEvent(kind, user.SourceLocal, user.TrustSelf, d, now)
}

func addCause(d vocab.Doc, c Cause) {
	if c.Event != uuid.Nil {
		d["causedBy"], d["depth"] = c.Event.String(), c.Depth
	}
}

// EventType names the event of an activity, such as "create.received".
func EventType(activityType, direction string) string {
	return strings.ToLower(activityType) + "." + direction
}

// EventTypes returns the types of the events for a received activity. A muted activity gets none
// of the types by which clients notify the user. A muted request gets none at all, because
// create.received would tell tokens of scope llm of the request.
func (r *Registry) EventTypes(x *Received, e Effects) []string {
	switch {
	case x.Request && x.Muted:
		return nil
	case x.Request:
		return []string{"request.received"}
	case x.Activity.Type == vocab.Create && x.IsSealed():
		return []string{sealedEvent(x.post().Sealed())}
	}
	types := []string{r.eventOf(x.Activity.Type)}
	for _, a := range r.Lookup(x.Activity).Aliases {
		if !x.Muted && a.Is(x) {
			types = append(types, a.Event)
		}
	}
	if e.Quotes && !x.Muted {
		types = append(types, "quote.received")
	}
	if e.Changed {
		types = append(types, "relationship.changed")
	}
	return types
}

// sealedEvent names the event of a Create of an object of this sealed type. A key package, a
// Welcome and a GroupInfo are no messages of a person, and their Create has no event of a message.
func sealedEvent(kind string) string {
	if slices.Contains([]string{"KeyPackage", "Welcome", "GroupInfo"}, kind) {
		return EventType(vocab.Create, "received")
	}
	return "chatmessage.received"
}

// unknownEvent is the type of the event of an activity whose own event would have the name of
// another one.
const unknownEvent = "activity.received"

// ownEvents are the events of received activities that have neither the name of the activity's
// type nor stand among the aliases of a handler.
var ownEvents = append([]string{"quote.received", "request.received"}, conversation.ReceivedEvents()...)

// eventOf names the event that tells of a received activity. A type without a handler may give a
// name that stands for another event: DM gives dm.received, and CREATE gives create.received. An
// activity of such a type has the event unknownEvent, because clients act on the other event, and
// settings such as messaging.strangers decide about it.
func (r *Registry) eventOf(activityType string) string {
	event := EventType(activityType, "received")
	isTaken := slices.Contains(ownEvents, event)
	for k, h := range r.handlers {
		if k.Type == activityType {
			return event
		}
		isTaken = isTaken || EventType(k.Type, "received") == event || slices.ContainsFunc(h.Aliases, func(a Alias) bool { return a.Event == event })
	}
	if isTaken {
		return unknownEvent
	}
	return event
}
