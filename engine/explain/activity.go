package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Trace shows what happened on this server to an activity, or to an object and the activities
// about it.
type Trace struct {
	URI     vocab.ID    `json:"uri"`
	Actor   vocab.ID    `json:"actor,omitempty"` // the activity's sender or the object's author, if it is stored for a user of this server
	Local   bool        `json:"local"`           // whether URI belongs to this server
	Blocked bool        `json:"blocked"`         // whether the policy refuses the server of URI
	Users   []UserTrace `json:"users"`           // one for each user that Activity looks at
	// Known says whether this server has any record of the activity or object.
	Known   bool     `json:"known"`
	Ignored *Ignored `json:"ignored,omitempty"`
	// Unread is the error of the first user's database that could not be read, as a fault of
	// the kind Partial. It is nil if Activity has looked at all users.
	Unread error `json:"-"`
}

// Outcomes of an activity for one user.
const (
	TraceSent       = "sent" // it is the user's own
	TraceFeed       = "feed"
	TraceStored     = "stored"
	TraceObject     = "object" // stored because of another activity
	TraceDeleted    = "deleted"
	TracePoison     = "poison"
	TraceWaiting    = "waiting"
	TraceNotKept    = "not_kept"
	TraceBlocked    = "blocked"
	TraceNever      = "never"
	TraceUnreadable = "unreadable"
	TraceIgnored    = "ignored" // answered 202 and stored for no user
)

// Ignored records that an activity was answered 202 and stored for no user. The record is
// deleted after a while.
type Ignored struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	Says   string    `json:"says"`
}

// UserTrace shows what one user's database stores about an activity, and what that means.
type UserTrace struct {
	User       vocab.Username   `json:"user"`
	Outcome    string           `json:"outcome"`
	Says       string           `json:"says"` // one sentence: what the outcome means, and what to do
	Acquainted bool             `json:"acquainted"`
	Follows    []vocab.ID       `json:"follows"` // the actors that the user follows, or asked to follow, on the server of the id
	Blocks     []vocab.ID       `json:"blocks"`  // the actors that the user blocks on that server; nothing that they send is stored
	Activities []TracedActivity `json:"activities"`
	StoredAt   *time.Time       `json:"object_stored_at,omitempty"`
	SeenAt     *time.Time       `json:"seen_at,omitempty"` // when the id was first used, by its activity or by an Undo of it
	DeletedAt  *time.Time       `json:"deleted_at,omitempty"`
	PoisonAt   *time.Time       `json:"poison_at,omitempty"`
	Reason     string           `json:"reason,omitempty"` // why the activity was set aside, at PoisonAt
	WaitsSince *time.Time       `json:"waits_since,omitempty"`
	Jobs       []TracedJob      `json:"jobs"`
}

// TracedActivity is a stored activity that has the id of the Trace, or is about the object with
// that id.
type TracedActivity = user.TracedActivity

// TracedJob is the fan-out of one of the user's activities.
type TracedJob struct {
	ID         string           `json:"id"`
	Activity   vocab.ID         `json:"activity"`
	Type       string           `json:"type"`
	CreatedAt  time.Time        `json:"created_at"`
	Status     string           `json:"status"` // pending, delivering, partial, delivered or error
	Counts     JobCounts        `json:"counts"`
	Deliveries []TracedDelivery `json:"deliveries"` // at most 50, undelivered ones first
}

// JobCounts counts the deliveries of a fan-out by state.
type JobCounts = user.JobCounts

// TracedDelivery is a delivery to one inbox.
type TracedDelivery struct {
	Inbox      vocab.ID   `json:"inbox"`
	Status     string     `json:"status"`
	Attempts   int        `json:"attempts"`
	NextAt     *time.Time `json:"next_at,omitempty"`
	LastStatus int        `json:"last_status,omitempty"` // the status of the last HTTP response
	Error      string     `json:"error,omitempty"`
}

// Activity reports what happened to the activity or object with the id uri, for each user that it
// may concern and that is active or suspended. These are its owner, the users who are acquainted
// with an actor on the server of uri, and the users whose copies of the activity wait in the
// journal. No other user has anything from that server, so Activity opens no other user's
// database. If the parameter only names a user, Activity looks at that user alone, even if the
// user is neither active nor suspended. The fault is Invalid if uri is malformed, and NoUser if
// the user does not exist or is deleted.
func Activity(ctx context.Context, in *instance.Instance, uri string, only vocab.Username) (Trace, error) {
	id, err := vocab.ParseID(uri)
	if err != nil {
		return Trace{}, err
	}
	out := Trace{URI: id, Local: in.Local.IsLocal(id), Users: []UserTrace{}}
	out.Blocked = !out.Local && in.Gate.Check(id.Host()) != nil
	waiting, err := in.DB.Instance.Journal.Find(ctx, id)
	if err != nil {
		return out, err
	}
	acquainted, err := in.DB.Instance.Acquaintances.UsersOfServer(ctx, id)
	if err != nil {
		return out, err
	}
	if out.Ignored, err = findIgnored(ctx, in, id); err != nil {
		return out, err
	}
	users, err := concernedUsers(ctx, in, id, only, waiting, acquainted)
	if err != nil {
		return out, err
	}
	out.Known = out.Ignored != nil
	for _, row := range users {
		u := row.Name
		t, err := readTrace(ctx, in, id, u)
		if ctx.Err() != nil {
			return out, err
		}
		seen := userFacts{id: id, traced: t, u: u, suspended: row.State == dbinstance.UserSuspended, err: err, owner: isOwner(in, u, id), local: out.Local, blocked: out.Blocked, ignored: out.Ignored}
		if waiting != nil && slices.Contains(waiting.Users, u) {
			seen.waits = &waiting.Since
		}
		shown := seen.describe()
		shown.Acquainted = slices.Contains(acquainted, u)
		out.Users = append(out.Users, shown)
		out.Known = out.Known || !slices.Contains([]string{TraceNever, TraceBlocked, TraceUnreadable}, shown.Outcome)
		if shown.Outcome == TraceUnreadable && out.Unread == nil {
			out.Unread = fault.Wrap(fault.Partial, fmt.Sprintf("the database of %s could not be read", u), err).WithHint(seen.remedy())
		}
		if out.Actor == "" {
			out.Actor = t.author(id)
		}
	}
	return out, nil
}

// concernedUsers returns the users that Activity looks at.
func concernedUsers(
	ctx context.Context, in *instance.Instance, id vocab.ID, only vocab.Username, waiting *dbinstance.Journaled, acquainted []vocab.Username,
) ([]dbinstance.User, error) {
	if !only.IsZero() {
		row, err := in.DB.Instance.Users.FindUndeleted(ctx, only)
		return []dbinstance.User{row}, err
	}
	users := map[vocab.Username]bool{}
	for _, u := range acquainted {
		users[u] = true
	}
	if u, _, ok := in.Local.Holder(id); ok {
		users[u] = true
	}
	if waiting != nil {
		for _, u := range waiting.Users {
			users[u] = true
		}
	}
	rows, err := in.DB.Instance.Users.All(ctx)
	return slices.DeleteFunc(rows, func(r dbinstance.User) bool {
		return !users[r.Name] || r.State != dbinstance.UserActive && r.State != dbinstance.UserSuspended
	}), err
}

// isOwner reports whether the activity or object that id names belongs to u.
func isOwner(in *instance.Instance, u vocab.Username, id vocab.ID) bool {
	owner, _, ok := in.Local.Holder(id)
	return ok && owner == u
}

// traced has the facts that a user's database stores about an id.
type traced struct{ user.Trace }

func readTrace(ctx context.Context, in *instance.Instance, id vocab.ID, u vocab.Username) (t traced, err error) {
	err = in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		t.Trace, err = tx.Activities.Trace(ctx, id, in.Local.ID(u))
		return err
	})
	return t, err
}

// author returns the sender of the activity that id names, or the author of the object that id
// names. It returns an empty id if neither the activity nor the object is stored.
func (t traced) author(id vocab.ID) vocab.ID {
	if len(t.Activities) > 0 && t.Activities[0].URI == id {
		return t.Activities[0].Actor
	}
	if t.Object != nil {
		return t.Object.Author
	}
	return ""
}
