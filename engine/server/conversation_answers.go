package server

import (
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/vocab"
)

// conversationHead is the part of a conversation that every answer about it shows.
type conversationHead struct {
	ID          uuid.UUID  `json:"id"`
	URI         vocab.ID   `json:"uri"`
	Mode        string     `json:"mode"`
	Host        vocab.ID   `json:"host,omitempty"`
	Partner     vocab.ID   `json:"partner,omitempty"`
	GroupID     string     `json:"groupId,omitempty"`
	ReadSeq     int64      `json:"readSeq"`
	ReadEntry   int64      `json:"readEntry"`
	Unread      int        `json:"unread"`
	CreatedAt   time.Time  `json:"createdAt"`
	UpgradedAt  *time.Time `json:"upgradedAt,omitempty"`
	ClosedAt    *time.Time `json:"closedAt,omitempty"`
	Predecessor vocab.ID   `json:"predecessor,omitempty"`
	Successor   vocab.ID   `json:"successor,omitempty"`
}

func showHead(c *user.Conversation, unread int) conversationHead {
	return conversationHead{ID: c.ID, URI: c.URI, Mode: c.Mode, Host: c.Host, Partner: c.Partner, GroupID: c.GroupID, ReadSeq: c.ReadSeq, ReadEntry: c.ReadEntry, Unread: unread,
		CreatedAt: c.CreatedAt.UTC(), UpgradedAt: c.UpgradedAt, ClosedAt: c.ClosedAt, Predecessor: c.Predecessor, Successor: c.Successor}
}

func showListed(c user.ListedConversation) conversationHead {
	return showHead(&c.Conversation, c.Unread)
}

type conversationList struct {
	Items []conversationHead `json:"items"`
	Next  string             `json:"next,omitempty"`
}

// shownConversation is a conversation as a member sees it.
type shownConversation struct {
	conversationHead
	Generation int32           `json:"generation"`
	Epoch      int64           `json:"epoch"`
	Status     string          `json:"status"`
	ResetGroup string          `json:"resetGroupId,omitempty"`
	LastSeq    int64           `json:"lastSeq"`
	Mixed      bool            `json:"mixed"` // commits and proposals are PrivateMessages
	Members    []shownMember   `json:"members"`
	Items      []timelineEntry `json:"items"`
	Next       string          `json:"next,omitempty"`
}

type shownMember struct {
	Actor   vocab.ID `json:"actor"`
	Role    string   `json:"role"`
	Leaving bool     `json:"leaving,omitempty"`
}

func showView(v conversation.View, c *user.Conversation, unread int) shownConversation {
	shown := shownConversation{conversationHead: showHead(c, unread), Generation: v.Generation, Epoch: v.Epoch, Status: v.Status,
		ResetGroup: v.Reset, LastSeq: v.LastSeq, Mixed: v.Mixed, Members: showMembers(v.Members), Items: []timelineEntry{}}
	shown.GroupID = v.GroupID
	return shown
}

// showHeld shows a conversation from the user's own database.
func showHeld(h conversation.Held) shownConversation {
	status := user.StatusActive
	if h.ClosedAt != nil {
		status = user.StatusClosed
	}
	return shownConversation{conversationHead: showHead(&h.Conversation, h.Unread), Status: status, Members: showMembers(h.Members), Items: []timelineEntry{}}
}

func showMembers(all []user.ConversationMember) []shownMember {
	shown := make([]shownMember, len(all))
	for i, m := range all {
		shown[i] = shownMember{m.Actor, m.Role, m.Leaving}
	}
	return shown
}

// logged is a message in the log of a conversation.
type logged struct {
	Seq        int64     `json:"seq"`
	Generation int32     `json:"generation"`
	Epoch      int64     `json:"epoch"`
	Kind       string    `json:"kind"`
	Sender     vocab.ID  `json:"sender"`
	Content    []byte    `json:"content"`
	At         time.Time `json:"at"`
}

type logPage struct {
	Items []logged `json:"items"`
	More  bool     `json:"more"`
}

func showLog(entries []user.LogEntry) []logged {
	all := make([]logged, len(entries))
	for i, e := range entries {
		all[i] = logged{e.Seq, e.Generation, e.Epoch, e.Kind, e.Sender, e.Content, e.At}
	}
	return all
}

type groupInfoAnswer struct {
	Epoch     int64  `json:"epoch"`
	GroupInfo []byte `json:"groupInfo"`
}

type resetAnswer struct {
	GroupID string `json:"groupId"` // the id of the next group
}

type welcome struct {
	ID           uuid.UUID  `json:"id"`
	Conversation *uuid.UUID `json:"conversationId,omitempty"` // absent if the Welcome does not tell its conversation
	URI          vocab.ID   `json:"conversation,omitempty"`
	Sender       vocab.ID   `json:"sender,omitempty"` // set if the Welcome came from another server
	KeyPackage   []byte     `json:"keyPackageRef"`
	Content      []byte     `json:"welcome"`
	At           string     `json:"at"`
}

func showWelcome(w user.Welcome) welcome {
	shown := welcome{ID: w.ID, URI: w.URI, Sender: w.Sender, KeyPackage: w.KeyPackage, Content: w.Content, At: w.CreatedAt.Format(time.RFC3339Nano)}
	if w.Conversation != uuid.Nil {
		shown.Conversation = &w.Conversation
	}
	return shown
}

// received is an MLS message as the user's devices see it.
type received struct {
	Number       int64      `json:"number"` // counts the messages in the order of arrival
	Conversation *uuid.UUID `json:"conversationId,omitempty"`
	GroupID      string     `json:"groupId,omitempty"`
	Seq          int64      `json:"seq,omitempty"`
	Generation   int32      `json:"generation"`
	Epoch        int64      `json:"epoch"`
	Kind         string     `json:"kind"`
	Sender       vocab.ID   `json:"sender"`
	Object       vocab.ID   `json:"objectUri,omitempty"`
	Blocked      bool       `json:"blocked,omitempty"`
	Content      []byte     `json:"content"`
	At           time.Time  `json:"at"`
}

type inboxPage struct {
	Items []received `json:"items"`
	More  bool       `json:"more"`
}

func showInbox(all []user.InboxEntry) []received {
	shown := make([]received, len(all))
	for i, e := range all {
		shown[i] = received{Number: e.Arrival, Conversation: e.Conversation, GroupID: e.Group, Generation: e.Generation, Epoch: e.Epoch, Kind: e.Kind, Sender: e.Sender, Object: e.Object,
			Blocked: e.Blocked, Content: e.Content, At: e.At}
		if e.Seq != nil {
			shown[i].Seq = *e.Seq
		}
	}
	return shown
}

type welcomeList struct {
	Items []welcome `json:"items"`
}

// conversationState is all that the sender of a refused message needs to build the message anew.
type conversationState struct {
	GroupID    string   `json:"groupId"`
	Generation int32    `json:"generation"`
	Epoch      int64    `json:"epoch"`
	Status     string   `json:"status"`
	ResetGroup string   `json:"resetGroupId,omitempty"`
	Winner     *winner  `json:"winner,omitempty"`
	Missing    []logged `json:"missing,omitempty"`
}

// winner is the commit that was accepted for the epoch of the refused message.
type winner struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"` // SHA-256 of its content
}

// stateOf returns the state of the conversation that refused a message, or nil if err is another
// error.
func stateOf(err error) *conversationState {
	c, ok := errors.AsType[*conversation.Conflict](err)
	if !ok {
		return nil
	}
	s := &conversationState{GroupID: c.GroupID, Generation: c.Generation, Epoch: c.Epoch, Status: c.Status, ResetGroup: c.Reset, Missing: showLog(c.Missing)}
	if c.HasWinner {
		s.Winner = &winner{c.Missing[0].Seq, hex.EncodeToString(c.Missing[0].Hash)}
	}
	return s
}
