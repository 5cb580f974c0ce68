package admin

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Conversations are the conversations that users take part in. Their messages cannot be read.
type Conversations struct{ in *instance.Instance }

// Conversation is a conversation that a user takes part in. A conversation that another server
// hosts has no status and no epoch on this server.
type Conversation struct {
	User vocab.Username `json:"user"`
	user.ConversationOverview
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
	Conversations []Conversation `json:"conversations"` // at most n, the limit of List
	Total         int            `json:"total"`
	Failures      []UserFailure  `json:"failures"`
}

// List returns up to n conversations of users. Among the conversations of one user, those that
// changed last come first. The fault is NoUser when a named user does not exist.
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

// addTo adds conversations of a user to l, until l has n conversations.
func (cs Conversations) addTo(ctx context.Context, l *ConversationList, u vocab.Username, n int) error {
	var total int
	var found []user.ConversationOverview
	err := cs.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if total, err = tx.Conversations.Count(ctx); err == nil {
			found, err = tx.Conversations.ListOverviews(ctx, n-len(l.Conversations))
		}
		return err
	})
	if err != nil {
		return err
	}
	l.Total += total
	for _, o := range found {
		l.Conversations = append(l.Conversations, Conversation{u, o})
	}
	return nil
}

// ConversationDetails is everything that an operator can see of a conversation.
type ConversationDetails struct {
	User vocab.Username `json:"user"`
	user.ConversationDetails
	user.ConversationCounts
	Roster []user.ConversationMember `json:"roster"`
}

// Find returns a conversation of a user. The fault is NotFound when the user has no conversation
// with that id, and NoUser when the user does not exist.
func (cs Conversations) Find(ctx context.Context, u vocab.Username, id uuid.UUID) (d ConversationDetails, err error) {
	if _, err := cs.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return d, err
	}
	err = cs.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		d, err = readDetails(ctx, tx, u, id)
		return err
	})
	return d, err
}

func readDetails(ctx context.Context, tx *user.Tx, u vocab.Username, id uuid.UUID) (d ConversationDetails, err error) {
	found, err := tx.Conversations.FindDetails(ctx, id)
	if err != nil {
		return d, err
	}
	if found == nil {
		return d, fault.New(fault.NotFound, "there is no such conversation").WithHint("lightweb conversation list " + u.String())
	}
	counts, err := tx.Conversations.FindCounts(ctx, id)
	if err != nil {
		return d, err
	}
	members, err := tx.Conversations.ListMembers(ctx, id)
	return ConversationDetails{u, *found, *counts, members}, err
}

// OrderedReset is a pending reset of a conversation.
type OrderedReset struct {
	User  vocab.Username `json:"user"`
	ID    uuid.UUID      `json:"id"`
	Group string         `json:"reset_group_id"` // the MLS group that will replace the current one
	IsNew bool           `json:"asked"`          // false when the reset was pending before
}

// Reset orders a new MLS group for a conversation that the user hosts, as the conversation's
// admin can do. While a reset is pending, another call returns the same group. A serving engine
// emits the event about the reset. The fault is NotFound when the user hosts no such conversation,
// and Conflict when the conversation is closed.
func (cs Conversations) Reset(ctx context.Context, u vocab.Username, id uuid.UUID) (OrderedReset, error) {
	r := OrderedReset{User: u, ID: id}
	if _, err := cs.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return r, err
	}
	registry := cs.in.NewConversations(cs.in.DB.Databases, nil)
	var err error
	r.Group, r.IsNew, err = registry.OrderReset(ctx, conversation.Place{Host: u, ID: id})
	if err := errors.Join(err, registry.Close(ctx)); err != nil {
		return r, err
	}
	return r, cs.in.DB.Instance.Users.MarkEventsDue(ctx, u)
}
