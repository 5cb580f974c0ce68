package socket

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	stream = event.Stream

	// withheldType is an event whose count still grows, or that was counted and gets a new number.
	withheldType = "events.withheld"

	// requestPrefix begins the types of events about private messages of strangers (design: hidden
	// from an LLM engine).
	requestPrefix = "request."

	// heartbeatSeconds is how often a socket shows at least that it lives, as hello says.
	heartbeatSeconds = 30
)

// Frame is what a socket is sent at once.
type Frame struct {
	ID   keyspace.ID // of the event; zero: it is none
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
		panic("socket: a frame cannot be written: " + err.Error()) // its payload was read as JSON
	}
	return Frame{ID: id, Type: d.Type, Body: body}
}

// frameOf returns the frame of an event.
func frameOf(e event.Event) Frame {
	return newFrame(e.ID, frameDoc{ID: e.ID.String(), Type: e.Type, Payload: e.Payload, Timestamp: e.Timestamp})
}

// helloFrame says where a socket begins, and which event is the last that some program of the user
// was sent, if that is known.
func helloFrame(cursor keyspace.ID, delivered string) Frame {
	return newFrame(keyspace.ID{}, frameDoc{Type: "hello", Cursor: cursor.String(), Delivered: delivered, Heartbeat: heartbeatSeconds})
}

// resetFrame says that events are missing before the cursor, and that the program has to read
// anew what it shows.
func resetFrame(reason string, cursor keyspace.ID) Frame {
	return newFrame(keyspace.ID{}, frameDoc{Type: "reset", Reason: reason, Cursor: cursor.String()})
}

// isHidden reports whether an LLM engine is not shown events of a type.
func isHidden(kind string) bool { return strings.HasPrefix(kind, requestPrefix) }

func eventOfRow(e db.Event) event.Event {
	return event.Event{ID: keyspace.ID{Milli: uint64(e.Milli), Seq: uint64(e.Seq)}, Type: e.Type, Source: e.Source, Payload: e.Payload,
		Timestamp: e.At.UTC().Format(time.RFC3339Nano)}
}
