// Package event puts the events of each user on the user's stream in Redis, where other programs
// read them.
//
// An event is a numbered row of the user's database, committed together with the change that it
// reports. The emitter puts the rows on the stream in the order of their numbers. The id of an
// entry is <milliseconds>-<number>, both from the row. So the last id of the stream tells which
// events have been emitted, and an event that is emitted again has the same id.
package event

import (
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/db/user"
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

// entryOf returns the entry for a row.
func entryOf(e user.Event) keyspace.Entry {
	return keyspace.Entry{ID: idOf(e), Fields: []string{
		"type", e.Type, "source", e.Source, "payload", string(e.Payload), "timestamp", e.At.UTC().Format(time.RFC3339Nano)}}
}

func idOf(e user.Event) keyspace.ID { return keyspace.ID{Milli: uint64(e.Milli), Seq: uint64(e.Seq)} }
