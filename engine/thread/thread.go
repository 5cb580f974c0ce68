// Package thread shows a user's programs an object that the user may see, with what it answers and
// what answers it. A user may see whatever the user holds: it came to the user, or was made here.
package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of a thread.
const (
	maxAncestors = 40
	maxReplies   = 200
	maxDepth     = 40  // answers to answers
	maxLooked    = 400 // answers that are looked at, shown or not
)

// Store reads users' databases.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
}

// Local knows the users.
type Local interface {
	ID(u vocab.Username) vocab.ID
	Owner(id vocab.ID) (vocab.Username, bool)
	IsLocal(id vocab.ID) bool
	Holder(id vocab.ID) (u vocab.Username, rest string, ok bool)
	Thread(object vocab.ID) vocab.ID
	Document(u vocab.Username) (vocab.Doc, error)
}

// Profiles tells which languages a user reads, and what the user has muted.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// Gate says whether an actor may be heard: nil, or why not.
type Gate interface {
	CheckActor(id vocab.ID) error
}

// Others are the other servers, asked by the instance actor.
type Others interface {
	Object(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error)
	Collection(ctx context.Context, id vocab.ID) (vocab.Doc, error)
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Finder gets an object that a user does not hold, and its author, from where it is.
type Finder interface {
	FindObject(ctx context.Context, u vocab.Username, id vocab.ID) (*vocab.Object, *vocab.Actor, error)
}

// Deps is what a reader works with.
type Deps struct {
	Store    Store
	Local    Local
	Profiles Profiles
	Gate     Gate
	Finder   Finder
	Others   Others
	Lookups  *policy.Limiter // of objects that are not held, by user
	Log      *slog.Logger
	Now      func() time.Time
}

// Reader reads objects and threads.
type Reader struct {
	Deps
	fillings *policy.Limiter // by user
}

// New returns a reader.
func New(d Deps) *Reader { return &Reader{d, policy.Fillings.Limiter(d.Now)} }

// Query says which object is asked for, and by whose program.
type Query struct {
	User      vocab.Username
	URI       vocab.ID // of the object, or of an activity that brought it
	Fill      bool     // what is missing of a thread is asked for where it is, and not kept
	Assistant bool     // by an LLM engine, which sees nothing that waits among the requests, and for which nobody is asked
}

// Object is an object as the user's programs are shown it.
type Object struct {
	URI        vocab.ID        `json:"uri"`
	AuthorURI  vocab.ID        `json:"authorUri,omitempty"` // the proven author; absent when there is none
	Visibility string          `json:"visibility"`
	InReplyTo  vocab.ID        `json:"inReplyTo,omitempty"`
	Held       bool            `json:"held"`               // by the user; else it was fetched for this answer
	Archived   bool            `json:"archived,omitempty"` // a copy of what the user wrote under another account
	Replies    int             `json:"replies"`
	Likes      int             `json:"likes"`
	Dislikes   int             `json:"dislikes"`
	Boosts     int             `json:"boosts"`
	Liked      bool            `json:"liked"` // by the user
	Disliked   bool            `json:"disliked"`
	Boosted    bool            `json:"boosted"`
	Object     json.RawMessage `json:"object"` // as in feeds
}

// Entry is one object with its author.
type Entry struct {
	Object
	Actors map[vocab.ID]vocab.Card `json:"actors"`
}

// Thread is an object with what stands before and after it.
type Thread struct {
	Ancestors []Object                `json:"ancestors"` // the first of the thread first
	Item      Object                  `json:"item"`
	Replies   []Object                `json:"replies"` // answers first, then answers to these, each the oldest first
	Actors    map[vocab.ID]vocab.Card `json:"actors"`  // the authors
	Truncated bool                    `json:"truncated"`
}

// errNone is the one answer for what is not there, and for what the user may not see.
var errNone = fault.New(fault.NotFound, "there is no such object")

// Object returns one object as the user may see it. The fault is NotFound for what is not there or
// not for the user, Gone for what was deleted.
func (r *Reader) Object(ctx context.Context, q Query) (e Entry, err error) {
	item, err := r.findItem(ctx, q)
	if err != nil {
		return e, fmt.Errorf("find object: %w", err)
	}
	var shown []Object
	if shown, e.Actors, err = r.showPieces(ctx, q, []*piece{item}); err != nil {
		return e, fmt.Errorf("show object: %w", err)
	}
	if len(shown) == 0 {
		return e, errNone
	}
	e.Object = shown[0]
	return e, nil
}

// Thread returns an object, as Object does, with what it answers and what answers it: of what the
// user holds, and, to fill it, of what other servers show everybody; without posts of actors that
// the user blocks or the gate refuses, and without what waits among the requests.
func (r *Reader) Thread(ctx context.Context, q Query) (t Thread, err error) {
	item, err := r.findItem(ctx, q)
	if err != nil {
		return t, fmt.Errorf("find object: %w", err)
	}
	c := newCollected(item)
	if err := r.Store.Read(ctx, q.User, c.collectHeld); err != nil {
		return t, fmt.Errorf("collect thread: %w", err)
	}
	if q.Fill {
		if err := r.fillThread(ctx, q, c); err != nil {
			return t, fmt.Errorf("fill thread: %w", err)
		}
	}
	shown, actors, err := r.showPieces(ctx, q, c.all())
	if err != nil {
		return t, fmt.Errorf("show thread: %w", err)
	}
	return c.arrange(shown, actors)
}
