package handler

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// How far the user trusts who caused an event: the one who reads events may act on them.
const (
	TrustSelf     = "self"
	TrustContact  = "contact" // the user follows it, and it agreed
	TrustStranger = "stranger"
)

// Payload is what an event tells.
type Payload struct {
	Activity vocab.ID
	Type     string
	Actor    vocab.ID
	Object   vocab.ID // empty when the activity is about nothing that has an id
	Trust    string
}

// NewEvent returns an event with an id of its own, by which consumers drop repeats.
func NewEvent(kind string, p Payload, now time.Time) db.Event {
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "activityUri": string(p.Activity), "activityType": p.Type,
		"actorUri": string(p.Actor), "trust": p.Trust}
	if p.Object != "" {
		d["objectUri"] = string(p.Object)
	}
	return db.Event{Type: kind, Source: "ap", Payload: d.JSON(), At: now}
}

// Withheld returns the event that counts those which are withheld.
func Withheld(now time.Time) db.Event {
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "count": 1, "trust": TrustStranger}
	return db.Event{Type: "events.withheld", Source: "ap", Payload: d.JSON(), At: now}
}

// EventType names the event of an activity: "create.received".
func EventType(activityType, direction string) string {
	return strings.ToLower(activityType) + "." + direction
}

// aliases are further events that some received activities are.
var aliases = []struct {
	event string
	when  func(r *Received, e Effects) bool
}{
	{"dm.received", func(r *Received, _ Effects) bool {
		return r.Activity.Type == "Create" && r.Named && audience.OfActivity(r.Activity, r.Actor.Followers).IsPrivate()
	}},
	{"mention.received", mentioned},
	{"relationship.changed", func(_ *Received, e Effects) bool { return e.Changed }},
}

// EventTypes returns the names of the events that a received activity is.
func EventTypes(r *Received, e Effects) []string {
	switch {
	case r.Request:
		return []string{"request.received"}
	case r.Activity.Type == "Create" && r.IsSealed():
		return []string{"chatmessage.received"}
	}
	types := []string{EventType(r.Activity.Type, "received")}
	for _, a := range aliases {
		if a.when(r, e) {
			types = append(types, a.event)
		}
	}
	return types
}

// mentioned tells whether a post names the user in its tags and its addressing alike.
func mentioned(r *Received, _ Effects) bool {
	if r.Activity.Type != "Create" || !audience.Names(r.Activity.Addressing, r.Me) {
		return false
	}
	post := r.Activity.Object.Doc
	if o := r.Fetched[r.Activity.Object.ID]; o != nil {
		post = o.Doc
	}
	for _, tag := range post.Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Mention" && vocab.IDOf(tag.Text("href")) == r.Me {
			return true
		}
	}
	return false
}
