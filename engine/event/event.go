// Package event puts what happens to a user on the user's stream in Redis, where other programs
// read it.
//
// An event is a numbered row of the user's database, committed with what it tells of. The emitter
// puts the rows on the stream in the order of their numbers. The id of an entry is
// <milliseconds>-<number>, both of the row, so that the last id of the stream says how far it is,
// and an event that is emitted again has the id it had.
package event

import (
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/keyspace"
)

// Stream is the name of a user's stream: the key is <username>:events.
const Stream = "events"

// Event is an entry of a stream.
type Event struct {
	ID        keyspace.ID
	Type      string
	Source    string
	Payload   json.RawMessage
	Timestamp string // RFC 3339, in UTC
}

// entryOf returns the entry of a row.
func entryOf(e db.Event) keyspace.Entry {
	return keyspace.Entry{ID: idOf(e), Fields: []string{
		"type", e.Type, "source", e.Source, "payload", string(e.Payload), "timestamp", e.At.UTC().Format(time.RFC3339Nano)}}
}

func idOf(e db.Event) keyspace.ID { return keyspace.ID{Milli: uint64(e.Milli), Seq: uint64(e.Seq)} }
