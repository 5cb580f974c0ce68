package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ActivityTrace says what became of an activity, or of an object with what is about it.
type ActivityTrace struct {
	URI     vocab.ID    `json:"uri"`
	Actor   vocab.ID    `json:"actor,omitempty"` // who sent or wrote it, when anybody here has it
	Local   bool        `json:"local"`           // the id was given here
	Blocked bool        `json:"blocked"`         // the policy refuses the server that gave it
	Users   []UserTrace `json:"users"`           // those that it may concern
	Known   bool        `json:"known"`           // something is known of it
	Ignored *Ignored    `json:"ignored,omitempty"`
}

// What became of an activity for one user.
const (
	TraceSent       = "sent" // the user's own
	TraceFeed       = "feed"
	TraceStored     = "stored"
	TraceObject     = "object" // stored, and brought by something else
	TraceDeleted    = "deleted"
	TracePoison     = "poison"
	TraceWaiting    = "waiting"
	TraceNotKept    = "not_kept"
	TraceBlocked    = "blocked"
	TraceNever      = "never"
	TraceUnreadable = "unreadable"
	TraceIgnored    = "ignored" // answered 202, and kept for nobody
)

// Ignored says that an activity was answered 202 and kept for nobody, as far as that is remembered.
type Ignored struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	Says   string    `json:"says"`
}

// UserTrace says what one user's database knows, and what that means.
type UserTrace struct {
	User       vocab.Username   `json:"user"`
	Outcome    string           `json:"outcome"`
	Says       string           `json:"says"` // in one sentence, with what to do
	Acquainted bool             `json:"acquainted"`
	Follows    []vocab.ID       `json:"follows"` // actors on the server that gave the id
	Blocks     []vocab.ID       `json:"blocks"`  // the same; nothing of theirs is kept
	Activities []TracedActivity `json:"activities"`
	StoredAt   *time.Time       `json:"object_stored_at,omitempty"`
	SeenAt     *time.Time       `json:"seen_at,omitempty"` // the id was taken
	DeletedAt  *time.Time       `json:"deleted_at,omitempty"`
	PoisonAt   *time.Time       `json:"poison_at,omitempty"`
	Reason     string           `json:"reason,omitempty"` // why it was set aside
	WaitsSince *time.Time       `json:"waits_since,omitempty"`
	Jobs       []TracedJob      `json:"jobs"`
}

// TracedActivity is an activity with the id, or about it, as it is stored.
type TracedActivity struct {
	URI       vocab.ID  `json:"uri"`
	Type      string    `json:"type"`
	Direction string    `json:"direction"`
	Actor     vocab.ID  `json:"actor"`
	StoredAt  time.Time `json:"stored_at"`
	InFeed    bool      `json:"in_feed"`
	Names     bool      `json:"names_user"` // the id of the user, or of something of the user's, is in it
}

// TracedJob is the fan-out of an activity of the user's.
type TracedJob struct {
	ID         string           `json:"id"`
	Activity   vocab.ID         `json:"activity"`
	Type       string           `json:"type"`
	CreatedAt  time.Time        `json:"created_at"`
	Status     string           `json:"status"` // pending, delivering, partial, delivered or error
	Counts     db.JobCounts     `json:"counts"`
	Deliveries []TracedDelivery `json:"deliveries"` // at most 50, those that are not delivered first
}

// TracedDelivery is a delivery to one inbox.
type TracedDelivery struct {
	Inbox      vocab.ID   `json:"inbox"`
	Status     string     `json:"status"`
	Attempts   int        `json:"attempts"`
	NextAt     *time.Time `json:"next_at,omitempty"`
	LastStatus int        `json:"last_status,omitempty"` // of HTTP
	Error      string     `json:"error,omitempty"`
}

// ShowActivity tells what became of an activity or object for the users that it may concern: the one whose id it is under,
// those who are acquainted with anybody on the server that gave the id, and those that it waits for. Nobody else has
// anything of that server, so no other database is opened. With a user, only that one is looked at. The fault is Invalid
// for what is no id, NoUser when there is no such user.
func (e *Engine) ShowActivity(ctx context.Context, uri string, only vocab.Username) (ActivityTrace, error) {
	id, err := vocab.ParseID(uri)
	if err != nil {
		return ActivityTrace{}, err
	}
	out := ActivityTrace{URI: id, Local: e.in.Local.IsLocal(id), Users: []UserTrace{}}
	out.Blocked = !out.Local && e.in.Gate.Check(id.Host()) != nil
	waiting, err := e.in.DB.WaitingIn(ctx, id)
	if err != nil {
		return out, err
	}
	acquainted, err := e.in.DB.AcquaintedWithServer(ctx, id)
	if err != nil {
		return out, err
	}
	if out.Ignored, err = e.ignored(ctx, id); err != nil {
		return out, err
	}
	users, err := e.concerned(ctx, id, only, waiting, acquainted)
	if err != nil {
		return out, err
	}
	out.Known = out.Ignored != nil
	for _, u := range users {
		t, err := e.trace(ctx, id, u)
		if ctx.Err() != nil {
			return out, err
		}
		seen := sight{id: id, traced: t, u: u, err: err, owner: e.holds(u, id), local: out.Local, blocked: out.Blocked, ignored: out.Ignored}
		if waiting != nil && slices.Contains(waiting.Users, u) {
			seen.waits = &waiting.Since
		}
		shown := seen.show()
		shown.Acquainted = slices.Contains(acquainted, u)
		out.Users = append(out.Users, shown)
		out.Known = out.Known || !slices.Contains([]string{TraceNever, TraceBlocked, TraceUnreadable}, shown.Outcome)
		if out.Actor == "" {
			out.Actor = t.by(id)
		}
	}
	return out, nil
}

// concerned returns the users to look at.
func (e *Engine) concerned(ctx context.Context, id vocab.ID, only vocab.Username, waiting *db.Journaled, acquainted []vocab.Username) ([]vocab.Username, error) {
	if !only.IsZero() {
		row, err := e.in.DB.User(ctx, only)
		if err == nil && row.State == db.UserDeleted {
			err = fault.New(fault.NoUser, fmt.Sprintf("the user %q is deleted", only)).WithHint("lightweb user list")
		}
		return []vocab.Username{only}, err
	}
	users := slices.Clone(acquainted)
	if u, _, ok := e.in.Local.Holder(id); ok {
		users = append(users, u)
	}
	if waiting != nil {
		users = append(users, waiting.Users...)
	}
	return e.in.DB.ActiveUsers(ctx, users)
}

// holds tells whether the id is of something of the user's.
func (e *Engine) holds(u vocab.Username, id vocab.ID) bool {
	owner, _, ok := e.in.Local.Holder(id)
	return ok && owner == u
}

type traced struct{ db.Trace }

func (e *Engine) trace(ctx context.Context, id vocab.ID, u vocab.Username) (t traced, err error) {
	err = e.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		t.Trace, err = tx.Trace(ctx, id, e.in.Local.ID(u))
		return err
	})
	return t, err
}

// by returns who sent or wrote what has the id, empty when that is not stored.
func (t traced) by(id vocab.ID) vocab.ID {
	if len(t.Activities) > 0 && t.Activities[0].URI == id {
		return t.Activities[0].Actor
	}
	if t.Object != nil {
		return t.Object.Author
	}
	return ""
}
