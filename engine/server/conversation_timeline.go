package server

import (
	"encoding/binary"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// timelineEntry is an entry of a conversation: a Note, a message of its log, or a change of its
// state.
type timelineEntry struct {
	Kind  string `json:"kind"`            // note; application, commit, proposal; upgraded, closed, successor
	Entry int64  `json:"entry,omitempty"` // its number; absent for a message of the log
	// Seq is the number of the message in the log. For an entry outside the log it is the number
	// of the last message before the entry.
	Seq      int64     `json:"seq,omitempty"`
	At       time.Time `json:"at"`
	Own      bool      `json:"own"`
	ObjectID vocab.ID  `json:"objectId,omitempty"`
	Object   vocab.Doc `json:"object,omitempty"` // the Note; absent if it was deleted, or if its author is refused
	Sender   vocab.ID  `json:"sender,omitempty"`
	Epoch    *int64    `json:"epoch,omitempty"`
	Content  []byte    `json:"content,omitempty"` // the MLS message
}

const timelinePage = 50

// readTimeline returns a page of the entries of a conversation, the newest first.
func (s *conversations) readTimeline(r *http.Request, u vocab.Username, id uuid.UUID, cursor string) (items []timelineEntry, next string, err error) {
	scope := u.String() + "/conversations/" + id.String()
	after, err := feed.DecodeCursor(scope, cursor)
	if err != nil {
		return nil, "", err
	}
	all, more, err := s.registry.Timeline(r.Context(), u, id, timelineFrom(after), timelinePage)
	if err != nil {
		return nil, "", err
	}
	if more {
		next = feed.EncodeCursor(scope, timelineCursor(all[len(all)-1]))
	}
	items = make([]timelineEntry, 0, len(all))
	for _, e := range all {
		items = append(items, s.showEntry(e))
	}
	return items, next, nil
}

// timelineCursor packs a place in a timeline, which is two numbers, into the id of a cursor.
func timelineCursor(e user.TimelineEntry) (p user.Place) {
	p.At = time.Unix(0, 0)
	binary.BigEndian.PutUint64(p.ID[:8], uint64(e.Seq))
	binary.BigEndian.PutUint64(p.ID[8:], uint64(e.N))
	return p
}

func timelineFrom(p *user.Place) user.TimelinePlace {
	if p == nil {
		return user.TimelineEnd
	}
	return user.TimelinePlace{Seq: int64(binary.BigEndian.Uint64(p.ID[:8])), N: int64(binary.BigEndian.Uint64(p.ID[8:]))}
}

func (s *conversations) showEntry(e user.TimelineEntry) timelineEntry {
	shown := timelineEntry{Kind: e.Kind, Entry: e.N, Seq: e.Seq, At: e.At, Own: e.Own, ObjectID: e.Object, Sender: e.Sender, Content: e.Content}
	if e.Content != nil {
		shown.Epoch = &e.Epoch
	}
	if e.Raw == nil {
		return shown
	}
	o, err := user.Object{URI: e.Object, Raw: e.Raw}.Parse()
	if err != nil { // it cannot be read, and is shown by its id
		return shown
	}
	if author := o.AttributedTo; author != "" && !s.local.IsLocal(author) && s.gate.CheckActor(author) != nil {
		return shown
	}
	shown.Object = vocab.Show(o.Doc, vocab.ReadableOf(o.Doc, e.Readable), nil)
	return shown
}
