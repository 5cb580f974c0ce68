// Package thread shows a user's clients an object that the user may see, the objects that it
// answers, and the answers to it. A user may see every object in the user's own database, because
// each of them came to the user or was made here. For web pages, the package shows everybody the
// public part of the thread around a public object.
package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of a thread.
const (
	maxAncestors = 40
	maxReplies   = 200
	maxDepth     = 40  // levels of answers
	maxLooked    = 400 // answers that are looked at, shown or not
)

// Store reads users' databases.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Local knows the local users.
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

// Gate returns nil if posts of an actor may be shown, or else an error with the reason.
type Gate interface {
	CheckActor(id vocab.ID) error
}

// Others fetches from other servers, as the instance actor.
type Others interface {
	Object(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error)
	Collection(ctx context.Context, id vocab.ID) (vocab.Doc, error)
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Finder gets an object that is not in a user's database, and the author of the object, from the
// object's own server.
type Finder interface {
	FindObject(ctx context.Context, u vocab.Username, id vocab.ID) (*vocab.Object, *vocab.Actor, error)
}

// Deps are the parts that a reader works with.
type Deps struct {
	Store    Store
	Local    Local
	Profiles Profiles
	Gate     Gate
	Finder   Finder
	Others   Others
	Lookups  *policy.Limiter // limits each user's lookups of objects that are not in the database
	Log      *slog.Logger
	Now      func() time.Time
}

// Reader reads objects and threads.
type Reader struct {
	Deps
	fillings *policy.Limiter // limits the threads that are filled in for each user
}

// New returns a reader.
func New(d Deps) *Reader { return &Reader{d, policy.Fillings.Limiter(d.Now)} }

// Query names the object that is asked for, and the user whose client asks.
type Query struct {
	User      vocab.Username
	URI       vocab.ID // of the object, or of an activity that brought it
	Fill      bool     // missing parts of a thread are fetched from other servers, and not stored
	Assistant bool     // for an LLM engine: it sees nothing that waits among the requests, and no other server is asked
}

// Object is an object as the user's clients see it.
type Object struct {
	URI        vocab.ID        `json:"uri"`
	AuthorURI  vocab.ID        `json:"authorUri,omitempty"` // the proven author; absent if none is proven
	Visibility string          `json:"visibility"`
	InReplyTo  vocab.ID        `json:"inReplyTo,omitempty"`
	Held       bool            `json:"held"`               // it is in the user's database; else it was fetched for this answer
	Archived   bool            `json:"archived,omitempty"` // a copy of what the user wrote under another account
	Replies    int             `json:"replies"`
	Likes      int             `json:"likes"`
	Dislikes   int             `json:"dislikes"`
	Boosts     int             `json:"boosts"`
	Liked      bool            `json:"liked"` // by the user
	Disliked   bool            `json:"disliked"`
	Boosted    bool            `json:"boosted"`
	Object     json.RawMessage `json:"object"` // in the same form as in feeds
}

// Entry is one object with its author.
type Entry struct {
	Object
	Actors map[vocab.ID]vocab.Card `json:"actors"`
}

// Thread is an object with its ancestors and the answers to it.
type Thread struct {
	Ancestors []Object `json:"ancestors"` // the topmost first
	Item      Object   `json:"item"`
	// Replies has the answers to the item first, then the answers to these, and so on. Each level
	// begins with the oldest.
	Replies   []Object                `json:"replies"`
	Actors    map[vocab.ID]vocab.Card `json:"actors"` // the authors
	Truncated bool                    `json:"truncated"`
}

// errNone is the answer for an object that does not exist, and for one that the user may not
// see.
var errNone = fault.New(fault.NotFound, "there is no such object")

// Object returns one object as the user may see it. The fault is NotFound if it does not exist
// or the user may not see it, and Gone if it was deleted.
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

// Thread returns an object, as Object does, with its ancestors and the answers to it. The
// ancestors and answers come from the user's database and, if q.Fill is true, also from other
// servers. Thread leaves out posts of actors that the user blocks or the gate refuses. It also
// leaves out ancestors and answers that the user has muted or that wait among the requests.
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
