package socket

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	stream = event.Stream

	// withheldType is the type of an event that counts other events, which clients do not get
	// one by one. After such an event is committed, its count may still grow. When the
	// counting is over, another row replaces the event, with a new number.
	withheldType = "events.withheld"

	// requestPrefix begins the types of events about private messages of strangers. Events of
	// these types are hidden from LLM engines.
	requestPrefix = "request."

	// heartbeatSeconds is the longest time, in seconds, in which the engine sends nothing over a
	// socket. The hello frame states it.
	heartbeatSeconds = 30
)

// Frame is one message that the engine sends over a socket.
type Frame struct {
	ID   keyspace.ID // the id of the event; zero if the frame is no event
	Type string
	Body []byte // JSON
}

// frameDoc is the body of a frame.
type frameDoc struct {
	ID        string          `json:"id,omitempty"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Timestamp string          `json:"timestamp,omitempty"`
	Cursor    string          `json:"cursor,omitempty"`
	Delivered string          `json:"delivered,omitempty"`
	Heartbeat int             `json:"heartbeat,omitempty"`
	Reason    string          `json:"reason,omitempty"`
}

func newFrame(id keyspace.ID, d frameDoc) Frame {
	body, err := vocab.Marshal(d)
	if err != nil {
		// Every payload was read as JSON before.
		panic("socket: a frame cannot be written: " + err.Error())
	}
	return Frame{ID: id, Type: d.Type, Body: body}
}

// frameOf returns the frame of an event.
func frameOf(e event.Event) Frame {
	return newFrame(e.ID, frameDoc{ID: e.ID.String(), Type: e.Type, Payload: e.Payload, Timestamp: e.Timestamp})
}

// helloFrame returns the frame that tells after which event a socket begins. It also tells the
// last event that was sent to any client of the user (see deliveredGroup), if that is known.
func helloFrame(cursor keyspace.ID, delivered string) Frame {
	return newFrame(keyspace.ID{}, frameDoc{Type: "hello", Cursor: cursor.String(), Delivered: delivered, Heartbeat: heartbeatSeconds})
}

// resetFrame returns the frame that tells the client that events before the cursor are missing,
// and that the client has to read again all that it shows.
func resetFrame(reason string, cursor keyspace.ID) Frame {
	return newFrame(keyspace.ID{}, frameDoc{Type: "reset", Reason: reason, Cursor: cursor.String()})
}

// isHidden reports whether events of a type are hidden from LLM engines.
func isHidden(kind string) bool { return strings.HasPrefix(kind, requestPrefix) }

func eventOfRow(e user.Event) event.Event {
	return event.Event{ID: keyspace.ID{Milli: uint64(e.Milli), Seq: uint64(e.Seq)}, Type: e.Type, Source: e.Source, Payload: e.Payload,
		Timestamp: e.At.UTC().Format(time.RFC3339Nano)}
}
