package admin

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Conversations are those that users take part in. Of what is said in them nothing can be read.
type Conversations struct{ in *instance.Instance }

// Conversation is one that a user takes part in. One that another server puts in order has no
// status and no epoch here.
type Conversation struct {
	User     vocab.Username `json:"user"`
	ID       uuid.UUID      `json:"id"`
	Mode     string         `json:"mode"`
	Status   string         `json:"status"`
	Epoch    int64          `json:"epoch"`
	Members  int            `json:"members"`
	Host     vocab.ID       `json:"host"`
	ActiveAt time.Time      `json:"active_at"` // when it changed last
}

func describeConversation(u vocab.Username, o db.ConversationOverview) Conversation {
	return Conversation{User: u, ID: o.ID, Mode: o.Mode, Status: o.Status, Epoch: o.Epoch, Members: o.Members, Host: o.Host, ActiveAt: o.ActiveAt.UTC()}
}

// UserFailure is a user whose database cannot be used.
type UserFailure struct {
	User  vocab.Username `json:"user"`
	Error string         `json:"error"`
	Hint  string         `json:"-"`
}

func describeFailure(u vocab.Username, err error) UserFailure {
	return UserFailure{User: u, Error: err.Error(), Hint: fault.Hint(err)}
}

// ConversationList lists conversations.
type ConversationList struct {
	Conversations []Conversation `json:"conversations"` // at most as many as were asked for
	Total         int            `json:"total"`
	Failures      []UserFailure  `json:"failures"`
}

// List returns up to n conversations of users, of each those that changed last first. The fault is
// NoUser when a named user does not exist.
func (cs Conversations) List(ctx context.Context, named []vocab.Username, all bool, n int) (ConversationList, error) {
	l := ConversationList{Conversations: []Conversation{}, Failures: []UserFailure{}}
	users, err := chooseUsers(ctx, cs.in, named, all)
	if err != nil {
		return l, err
	}
	for _, u := range users {
		if err := cs.addTo(ctx, &l, u, n); err != nil {
			l.Failures = append(l.Failures, describeFailure(u, err))
		}
	}
	return l, nil
}

// addTo adds the conversations of a user to a list of n.
func (cs Conversations) addTo(ctx context.Context, l *ConversationList, u vocab.Username, n int) error {
	var total int
	var found []db.ConversationOverview
	err := cs.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		if total, err = tx.CountConversations(ctx); err == nil {
			found, err = tx.ConversationOverviews(ctx, n-len(l.Conversations))
		}
		return err
	})
	if err != nil {
		return err
	}
	l.Total += total
	for _, o := range found {
		l.Conversations = append(l.Conversations, describeConversation(u, o))
	}
	return nil
}

// ConversationDetails is all that an operator sees of a conversation.
type ConversationDetails struct {
	Conversation
	URI        vocab.ID             `json:"uri"`
	Group      string               `json:"group_id"`
	Generation int32                `json:"generation"`
	Term       int32                `json:"term"`
	LastSeq    int64                `json:"last_seq"`
	Reset      string               `json:"reset_group_id"` // empty unless a reset is pending
	Log        LogCounts            `json:"log"`
	Welcomes   int                  `json:"welcomes_waiting"`
	Roster     []ConversationMember `json:"roster"`
}

// LogCounts is how many messages the log of a conversation has, by kind.
type LogCounts struct {
	Commits      int `json:"commit"`
	Proposals    int `json:"proposal"`
	Applications int `json:"application"`
}

// ConversationMember is an actor who is in a conversation.
type ConversationMember struct {
	Actor   vocab.ID `json:"actor"`
	Role    string   `json:"role"`
	Joined  int64    `json:"joined_seq"`
	Leaving bool     `json:"leaving"` // it asked to be removed
}

// Find returns a conversation of a user. The fault is NotFound when the user has none with that
// id, NoUser when there is no such user.
func (cs Conversations) Find(ctx context.Context, u vocab.Username, id uuid.UUID) (d ConversationDetails, err error) {
	if _, err := cs.in.DB.Instance.Users.Find(ctx, u); err != nil {
		return d, err
	}
	err = cs.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		d, err = readDetails(ctx, tx, u, id)
		return err
	})
	return d, err
}

func readDetails(ctx context.Context, tx *db.Tx, u vocab.Username, id uuid.UUID) (d ConversationDetails, err error) {
	o, err := tx.ConversationOverview(ctx, id)
	if err != nil {
		return d, err
	}
	if o == nil {
		return d, fault.New(fault.NotFound, "there is no such conversation").WithHint("lightweb conversation list " + u.String())
	}
	counts, err := tx.ConversationCounts(ctx, id)
	if err != nil {
		return d, err
	}
	members, err := tx.ConversationMembers(ctx, id)
	d = ConversationDetails{Conversation: describeConversation(u, *o), URI: o.URI, Group: o.GroupID, Generation: o.Generation, Term: o.Term, LastSeq: o.LastSeq, Reset: o.Reset,
		Log: LogCounts{counts.Commits, counts.Proposals, counts.Applications}, Welcomes: counts.Welcomes, Roster: make([]ConversationMember, len(members))}
	for n, m := range members {
		d.Roster[n] = ConversationMember{m.Actor, m.Role, m.JoinedSeq, m.Leaving}
	}
	return d, err
}

// OrderedReset is a reset of a conversation that is pending.
type OrderedReset struct {
	User  vocab.Username `json:"user"`
	ID    uuid.UUID      `json:"id"`
	Group string         `json:"reset_group_id"` // the MLS group that comes next
	IsNew bool           `json:"asked"`          // false when it was pending before
}

// Reset asks for a new MLS group of a conversation that the user hosts, as its admin does. While
// that is pending the answer is the same. The engine that serves, if any, tells the user. The
// fault is NotFound when the user hosts no such conversation, Conflict when it is closed.
func (cs Conversations) Reset(ctx context.Context, u vocab.Username, id uuid.UUID) (OrderedReset, error) {
	r := OrderedReset{User: u, ID: id}
	if _, err := cs.in.DB.Instance.Users.Find(ctx, u); err != nil {
		return r, err
	}
	registry := cs.in.NewConversations(cs.in.DB, nil)
	var err error
	r.Group, r.IsNew, err = registry.OrderReset(ctx, conversation.Place{Host: u, ID: id})
	if err := errors.Join(err, registry.Close(ctx)); err != nil {
		return r, err
	}
	return r, cs.in.DB.Instance.Users.MarkEventsDue(ctx, u)
}
