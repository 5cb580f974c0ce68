package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// People finds actors of this and other servers.
type People interface {
	Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	// Fresh fetches the actor from its own server. The fault is Gone if the actor is deleted
	// there.
	Fresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Ask(ctx context.Context, id vocab.ID, as *transport.Keys) (*vocab.Actor, *transport.Response, error)
}

// Local finds the users of this server, and makes ids and signatures for them.
type Local interface {
	ID(u vocab.Username) vocab.ID
	Owner(id vocab.ID) (vocab.Username, bool)
	NewActivityID(u vocab.Username) vocab.ID
	NewObjectID(u vocab.Username) vocab.ID
	Prove(u vocab.Username, d vocab.Doc, now time.Time) (json.RawMessage, error)
}

// Gate returns an error if the operator refuses an actor.
type Gate interface{ CheckActor(id vocab.ID) error }

// Users tells the state of users of this server, as db/instance names it.
type Users interface {
	State(ctx context.Context, u vocab.Username) (string, error)
}

// MemberDeps are the dependencies of Members.
type MemberDeps struct {
	Registry *Registry
	Store    Store
	Users    Users
	Local    Local
	Hosts    Hosts
	Keys     Keys
	People   People
	Gate     Gate
	Log      *slog.Logger
	Metrics  prometheus.Registerer // may be nil
	Now      func() time.Time
}

// Members serves users as members of conversations. The host of a conversation may be a user of
// this server or an actor of another server, or there may be no host. Reads other than GroupInfo
// use the user's own database, and changes are sent to the host. Members is safe for concurrent
// use.
type Members struct {
	MemberDeps
	gaps *gaps
}

// NewMembers returns a Members, which reads missing messages in the background until Close.
func NewMembers(d MemberDeps) *Members {
	m := &Members{MemberDeps: d}
	m.gaps = newGaps(m)
	return m
}

// PlaceOf returns the Place of a conversation that a user of this server hosts. For any other
// conversation the result "isHere" is false.
func (m *Members) PlaceOf(c *user.Conversation) (at Place, isHere bool) {
	host, isLocal := m.Local.Owner(c.Host)
	if !isLocal || c.Host == "" || !IsHosted(c.URI, c.Host) {
		return Place{}, false
	}
	id, err := uuid.Parse(string(c.URI)[strings.LastIndexByte(string(c.URI), '/')+1:])
	return Place{Host: host, ID: id}, err == nil
}

// CheckHost returns the fault host_unreachable if a user of this server is suspended. Members of
// the user's conversations are answered so, here and on other servers, and try again later.
func (m *Members) CheckHost(ctx context.Context, u vocab.Username) error {
	state, err := m.Users.State(ctx, u)
	if err == nil && state == instance.UserSuspended {
		err = unreachable(errSuspended)
	}
	return err
}

var errSuspended = errors.New("the user is suspended")

// hosts reports whether the user is the host of a conversation.
func (m *Members) hosts(u vocab.Username, c *user.Conversation) bool { return c.Host == m.Local.ID(u) }

// View returns a conversation as the user sees it.
func (m *Members) View(ctx context.Context, u vocab.Username, c *user.Conversation) (v View, err error) {
	if m.hosts(u, c) {
		return m.Registry.View(ctx, Place{Host: u, ID: c.ID}, m.Local.ID(u))
	}
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		j, err := m.readOpen(ctx, tx, u, c)
		if err != nil {
			return err
		}
		m.gaps.seek(u, j)
		v = View{ID: j.ID, URI: j.URI, GroupID: j.GroupID, Generation: j.Generation, Epoch: j.Epoch, LastSeq: j.WholeSeq, Status: j.Status, Reset: j.ResetGroupID, Mixed: j.Mixed}
		v.Members, err = tx.Conversations.ListMembers(ctx, c.ID)
		return err
	})
	return v, err
}

// readOpen returns a conversation for a user who is in it. A user who has left or was removed is
// refused, as the host refuses such a user. The method Messages still returns the messages up to
// the end of the membership.
func (m *Members) readOpen(ctx context.Context, tx *user.Tx, u vocab.Username, c *user.Conversation) (*user.JoinedConversation, error) {
	j, err := readJoined(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	me, err := tx.Conversations.FindMember(ctx, c.ID, m.Local.ID(u))
	if err == nil && me != nil && !me.IsIn() {
		err = errNotMember
	}
	return j, err
}

// readJoined returns a conversation that the user has joined, even if the user has left it
// since.
func readJoined(ctx context.Context, tx *user.Tx, c *user.Conversation) (*user.JoinedConversation, error) {
	j, err := tx.Joined.Find(ctx, c.ID)
	if err == nil && j == nil {
		err = errNoConversation
	}
	return j, err
}

// ReadLog returns the messages of a conversation with numbers higher than after, the oldest
// first. The list ends before the first message that is missing here. The result "more" reports
// whether other messages follow.
func (m *Members) ReadLog(ctx context.Context, u vocab.Username, c *user.Conversation, after int64) (entries []user.LogEntry, more bool, err error) {
	if m.hosts(u, c) {
		return m.Registry.ReadLog(ctx, Place{Host: u, ID: c.ID}, m.Local.ID(u), after)
	}
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		j, err := m.readOpen(ctx, tx, u, c)
		if err != nil {
			return err
		}
		m.gaps.seek(u, j)
		all, err := tx.Messages.ListLog(ctx, c.ID, after, j.WholeSeq, mostLogged, maxLogPage)
		for _, e := range all {
			entries = append(entries, user.LogEntry{Seq: *e.Seq, Generation: e.Generation, Epoch: e.Epoch, Kind: e.Kind, Sender: e.Sender, Content: e.Content, Hash: e.Hash, At: e.At})
		}
		more = len(entries) > 0 && entries[len(entries)-1].Seq < j.WholeSeq
		return err
	})
	return entries, more, err
}

// Messages returns the stored MLS messages with arrival numbers higher than after, the oldest
// first. Some of them belong to no known conversation. Messages leaves out commits and proposals
// that the host of their conversation has not put in order. The result "more" reports whether
// other messages follow.
func (m *Members) Messages(ctx context.Context, u vocab.Username, after int64) (all []user.InboxEntry, more bool, err error) {
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		all, err = tx.Messages.List(ctx, after, mostLogged+1, maxLogPage)
		return err
	})
	if more = len(all) > mostLogged; more {
		all = all[:mostLogged]
	}
	return all, more || len(all) > 0 && sizeOf(all) > maxLogPage, err
}

func sizeOf(all []user.InboxEntry) (n int) {
	for _, e := range all {
		n += len(e.Content) + len(e.Activity)
	}
	return n
}

// Commit sends a commit to the host of a conversation.
func (m *Members) Commit(ctx context.Context, u vocab.Username, to *user.Conversation, c Commit) (Accepted, error) {
	c.Caller = m.Local.ID(u)
	host, err := m.findHost(ctx, u, to)
	if err != nil {
		return Accepted{}, err
	}
	if m.hosts(u, to) {
		return m.Registry.Commit(ctx, host.at, c)
	}
	do := &commit{Commit: c, registry: m.Registry, host: to.Host, now: m.Now()}
	if err := do.parse(); err != nil { // the same check as at the host
		return Accepted{}, err
	}
	if err := m.holdCommit(ctx, u, to, do); err != nil {
		return Accepted{}, err
	}
	var a Accepted
	if host.isHere {
		a, err = m.Registry.Commit(ctx, host.at, c)
	} else {
		path := "/commits"
		if c.External {
			path = "/external-commit"
		}
		a, err = m.submit(ctx, u, to, path, c.Key, commitSent{c.Message, c.GroupInfo, c.Welcomes, c.Added, c.Removed})
	}
	if err == nil {
		m.noteJoined(ctx, u, to, host)
	}
	return a, m.dropHeld(ctx, u, to, c.Message, err)
}

// commitSent is the body of the request that sends a commit to a host on another server.
type commitSent struct {
	Commit    []byte     `json:"commit"`
	GroupInfo []byte     `json:"groupInfo,omitempty"`
	Welcomes  [][]byte   `json:"welcomes,omitempty"`
	Added     [][]byte   `json:"added,omitempty"`
	Removed   []vocab.ID `json:"removed,omitempty"`
}

// Send sends an encrypted message to the host of a conversation.
func (m *Members) Send(ctx context.Context, u vocab.Username, c *user.Conversation, content []byte) (Accepted, error) {
	host, err := m.findHost(ctx, u, c)
	if err != nil {
		return Accepted{}, err
	}
	message := Message{Caller: m.Local.ID(u), Content: content}
	if m.hosts(u, c) {
		return m.Registry.Send(ctx, host.at, message)
	}
	if err := message.parse(); err != nil {
		return Accepted{}, err
	}
	if err := m.holdMessage(ctx, u, c, content, nil); err != nil {
		return Accepted{}, err
	}
	var a Accepted
	if host.isHere {
		a, err = m.Registry.Send(ctx, host.at, message)
	} else {
		a, err = m.submit(ctx, u, c, "/messages", "", map[string]any{"message": content})
	}
	if err == nil {
		m.noteJoined(ctx, u, c, host)
	}
	return a, m.dropHeld(ctx, u, c, content, err)
}

// AskReset begins a reset, and returns the id of the next MLS group.
func (m *Members) AskReset(ctx context.Context, u vocab.Username, c *user.Conversation) (string, error) {
	host, err := m.findHost(ctx, u, c)
	if err != nil {
		return "", err
	}
	if host.isHere {
		return m.Registry.AskReset(ctx, host.at, m.Local.ID(u))
	}
	var said struct {
		GroupID string `json:"groupId"`
	}
	_, err = m.ask(ctx, u, c, http.MethodPost, "/reset", "", struct{}{}, &said)
	if err == nil && (said.GroupID == "" || said.GroupID != groupName([]byte(said.GroupID))) {
		err = badReply(nil)
	}
	return said.GroupID, err
}

// Reset ends a reset with the GroupInfo of the next group.
func (m *Members) Reset(ctx context.Context, u vocab.Username, c *user.Conversation, groupInfo []byte) (Accepted, error) {
	host, err := m.findHost(ctx, u, c)
	if err != nil {
		return Accepted{}, err
	}
	var a Accepted
	if host.isHere {
		a, err = m.Registry.Reset(ctx, host.at, m.Local.ID(u), groupInfo)
	} else if _, err = readNewGroup(groupInfo, m.Local.ID(u)); err == nil {
		a, err = m.submit(ctx, u, c, "/reset", "", map[string]any{"groupInfo": groupInfo})
	}
	if err == nil {
		m.noteJoined(ctx, u, c, host)
	}
	return a, err
}

// GroupInfo returns the GroupInfo of the conversation's MLS group, and the epoch of the group.
// With the GroupInfo a device can join again.
func (m *Members) GroupInfo(ctx context.Context, u vocab.Username, c *user.Conversation) (groupInfo []byte, epoch int64, err error) {
	host, err := m.findHost(ctx, u, c)
	if err != nil {
		return nil, 0, err
	}
	if host.isHere {
		return m.Registry.GroupInfo(ctx, host.at, m.Local.ID(u))
	}
	var said struct {
		Epoch     int64  `json:"epoch"`
		GroupInfo []byte `json:"groupInfo"`
	}
	if _, err := m.ask(ctx, u, c, http.MethodGet, "/group-info", "", nil, &said); err != nil {
		return nil, 0, err
	}
	if len(said.GroupInfo) > maxCommit || said.Epoch < 0 {
		return nil, 0, badReply(nil)
	}
	return said.GroupInfo, said.Epoch, nil
}

// readHostLog asks the host for the messages of its log with numbers higher than after. The
// result "more" reports whether other messages follow.
func (m *Members) readHostLog(ctx context.Context, u vocab.Username, c *user.Conversation, after int64) (entries []loggedSaid, more bool, err error) {
	if at, isHere := m.PlaceOf(c); isHere {
		if err := m.CheckHost(ctx, at.Host); err != nil {
			return nil, false, err
		}
		all, more, err := m.Registry.ReadLog(ctx, at, m.Local.ID(u), after)
		for _, e := range all {
			entries = append(entries, loggedSaid{e.Seq, e.Generation, e.Epoch, e.Kind, string(e.Sender), e.Content, e.At})
		}
		return entries, more, err
	}
	var said struct {
		Items []loggedSaid `json:"items"`
		More  bool         `json:"more"`
	}
	_, err = m.ask(ctx, u, c, http.MethodGet, "/log?after="+strconv.FormatInt(after, 10), "", nil, &said)
	return said.Items[:min(len(said.Items), mostLogged)], said.More || len(said.Items) > mostLogged, err
}

// MessagePage is a page of received messages, the newest first.
type MessagePage struct {
	Entries []user.InboxEntry
	Total   int64
	More    bool
}

// NewestMessages returns up to n of the messages that Messages returns, the newest first. If the
// parameter before is not zero, it returns only messages with lower arrival numbers.
func (m *Members) NewestMessages(ctx context.Context, u vocab.Username, before int64, n int) (p MessagePage, err error) {
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if p.Total, err = tx.Messages.Count(ctx); err != nil {
			return err
		}
		p.Entries, err = tx.Messages.ListNewest(ctx, before, n+1, maxLogPage)
		return err
	})
	if p.More = len(p.Entries) > n || sizeOf(p.Entries) > maxLogPage; len(p.Entries) > n {
		p.Entries = p.Entries[:n]
	}
	return p, err
}
