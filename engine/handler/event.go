package handler

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// How far the user trusts who caused an event: the one who reads events may act on them.
const (
	TrustSelf     = "self"
	TrustContact  = "contact" // the user follows it, and it agreed, or the two are friends
	TrustStranger = "stranger"
)

// Payload is the content of an event.
type Payload struct {
	Activity vocab.ID
	Type     string
	Actor    vocab.ID
	Object   vocab.ID // empty when the activity is about nothing that has an id
	Trust    string
	Cause    Cause
}

// Cause is the event that a program answered when it had something done.
type Cause struct {
	Event uuid.UUID `json:"eventId"` // zero: it was none
	Depth int       `json:"depth"`   // how many dispatches have followed from one another, this one included
}

// NewEvent returns an event with an id of its own, by which consumers drop repeats.
func NewEvent(kind string, p Payload, now time.Time) db.Event {
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "activityUri": string(p.Activity), "activityType": p.Type,
		"actorUri": string(p.Actor), "trust": p.Trust}
	if p.Object != "" {
		d["objectUri"] = string(p.Object)
	}
	addCause(d, p.Cause)
	return db.Event{Type: kind, Source: "ap", Payload: d.JSON(), At: now}
}

// Withheld returns the event that counts withheld events.
func Withheld(now time.Time) db.Event {
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "count": 1, "trust": TrustStranger}
	return db.Event{Type: "events.withheld", Source: "ap", Payload: d.JSON(), At: now}
}

// ReadPayload is the content of the event that the user has read a feed further.
type ReadPayload struct {
	Feed      string
	Entry     uuid.UUID // up to which, that one included
	Published time.Time // of the entry
	Cause     Cause
}

// NewReadEvent returns the event that tells the user's other programs how far a feed is read. That
// of the requests is named as all events about them.
func NewReadEvent(p ReadPayload, now time.Time) db.Event {
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "feed": p.Feed, "entryId": p.Entry.String(), "published": p.Published.Format(time.RFC3339Nano), "trust": TrustSelf}
	addCause(d, p.Cause)
	kind := "feed.read"
	if p.Feed == feed.Requests {
		kind = "request.read"
	}
	return db.Event{Type: kind, Source: "local", Payload: d.JSON(), At: now}
}

func addCause(d vocab.Doc, c Cause) {
	if c.Event != uuid.Nil {
		d["causedBy"], d["depth"] = c.Event.String(), c.Depth
	}
}

// EventType names the event of an activity: "create.received".
func EventType(activityType, direction string) string {
	return strings.ToLower(activityType) + "." + direction
}

// EventTypes returns the names of the events that a received activity is. One that is muted is
// nothing that a program should notify the user of.
func (r *Registry) EventTypes(x *Received, e Effects) []string {
	switch {
	case x.Request:
		return []string{"request.received"}
	case x.Activity.Type == vocab.Create && x.IsSealed():
		return []string{"chatmessage.received"}
	}
	types := []string{EventType(x.Activity.Type, "received")}
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
