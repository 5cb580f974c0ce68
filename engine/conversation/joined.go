package conversation

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// People finds actors of other servers.
type People interface {
	Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Ask(ctx context.Context, id vocab.ID, as *transport.Keys) (*vocab.Actor, *transport.Response, error)
}

// Local knows the users of this server, and speaks for them.
type Local interface {
	ID(u vocab.Username) vocab.ID
	Owner(id vocab.ID) (vocab.Username, bool)
	NewActivityID(u vocab.Username) vocab.ID
	NewObjectID(u vocab.Username) vocab.ID
	Prove(u vocab.Username, d vocab.Doc, now time.Time) (json.RawMessage, error)
}

// MemberDeps is what members are served with.
type MemberDeps struct {
	Registry *Registry
	Store    Store
	Local    Local
	Hosts    Hosts
	Keys     Keys
	People   People
	Log      *slog.Logger
	Metrics  prometheus.Registerer // may be nil
	Now      func() time.Time
}

// Members serves users who take part in conversations, whoever puts these in order: a user of
// this server, somebody elsewhere, or nobody. They read in their own databases, and
// ask the host. It is safe for concurrent use.
type Members struct {
	MemberDeps
	gaps *gaps
}

// NewMembers returns what serves members. It works beside requests until Close.
func NewMembers(d MemberDeps) *Members {
	m := &Members{MemberDeps: d}
	m.gaps = newGaps(m)
	return m
}

// PlaceOf returns where a conversation is put in order if that is on this server.
func (m *Members) PlaceOf(c *db.Conversation) (at Place, isHere bool) {
	host, isLocal := m.Local.Owner(c.Host)
	if !isLocal || c.Host == "" || !IsHosted(c.URI, c.Host) {
		return Place{}, false
	}
	id, err := uuid.Parse(string(c.URI)[strings.LastIndexByte(string(c.URI), '/')+1:])
	return Place{Host: host, ID: id}, err == nil
}

// hosts reports whether the user puts a conversation in order.
func (m *Members) hosts(u vocab.Username, c *db.Conversation) bool { return c.Host == m.Local.ID(u) }

// View returns what a user sees of a conversation.
func (m *Members) View(ctx context.Context, u vocab.Username, c *db.Conversation) (v View, err error) {
	if m.hosts(u, c) {
		return m.Registry.View(ctx, Place{Host: u, ID: c.ID}, m.Local.ID(u))
	}
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		j, err := m.readOpen(ctx, tx, u, c)
		if err != nil {
			return err
		}
		m.gaps.seek(u, j)
		v = View{ID: j.ID, URI: j.URI, GroupID: j.GroupID, Generation: j.Generation, Epoch: j.Epoch, LastSeq: j.WholeSeq, Status: j.Status, Reset: j.ResetGroupID}
		v.Members, err = tx.ConversationMembers(ctx, c.ID)
		return err
	})
	return v, err
}

// readOpen returns a conversation for a user who is in it. One who was removed is refused, as the
// host refuses; what came until then stays among the messages of all conversations.
func (m *Members) readOpen(ctx context.Context, tx *db.Tx, u vocab.Username, c *db.Conversation) (*db.JoinedConversation, error) {
	j, err := readJoined(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	me, err := tx.ConversationMember(ctx, c.ID, m.Local.ID(u))
	if err == nil && me != nil && !me.IsIn() {
		err = errNotMember
	}
	return j, err
}

// readJoined returns a conversation that the user has joined, and may have left.
func readJoined(ctx context.Context, tx *db.Tx, c *db.Conversation) (*db.JoinedConversation, error) {
	j, err := tx.JoinedConversation(ctx, c.ID)
	if err == nil && j == nil {
		err = errNoConversation
	}
	return j, err
}

// ReadLog returns the messages of a conversation after a number, the oldest first, without gaps:
// up to the first that has not come. more tells whether others follow.
func (m *Members) ReadLog(ctx context.Context, u vocab.Username, c *db.Conversation, after int64) (entries []db.LogEntry, more bool, err error) {
	if m.hosts(u, c) {
		return m.Registry.ReadLog(ctx, Place{Host: u, ID: c.ID}, m.Local.ID(u), after)
	}
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		j, err := m.readOpen(ctx, tx, u, c)
		if err != nil {
			return err
		}
		m.gaps.seek(u, j)
		all, err := tx.InboxLog(ctx, c.ID, after, j.WholeSeq, mostLogged, maxLogPage)
		for _, e := range all {
			entries = append(entries, db.LogEntry{Seq: *e.Seq, Generation: e.Generation, Epoch: e.Epoch, Kind: e.Kind, Sender: e.Sender, Content: e.Content, Hash: e.Hash, At: e.At})
		}
		more = len(entries) > 0 && entries[len(entries)-1].Seq < j.WholeSeq
		return err
	})
	return entries, more, err
}

// Messages returns the MLS messages of all conversations that came for a user after one, the
// oldest first, and whether others follow.
func (m *Members) Messages(ctx context.Context, u vocab.Username, after int64) (all []db.InboxEntry, more bool, err error) {
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		all, err = tx.InboxMessages(ctx, after, mostLogged+1, maxLogPage)
		return err
	})
	if more = len(all) > mostLogged; more {
		all = all[:mostLogged]
	}
	return all, more || len(all) > 0 && sizeOf(all) > maxLogPage, err
}

func sizeOf(all []db.InboxEntry) (n int) {
	for _, e := range all {
		n += len(e.Content) + len(e.Activity)
	}
	return n
}

// checkOpen refuses what a conversation does not take that the user does not host.
func (m *Members) checkOpen(ctx context.Context, u vocab.Username, c *db.Conversation) error {
	return m.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		j, err := readJoined(ctx, tx, c)
		if err != nil {
			return err
		}
		switch j.Status {
		case db.StatusFrozen:
			return conflictOf(j, "conversation_frozen", "its host was shown to tell members different things; begin another conversation")
		case db.StatusClosed: // maybe by the user's side, and its host has not heard of that
			return conflictOf(j, "conversation_closed", "the conversation is closed")
		}
		return nil
	})
}

func conflictOf(j *db.JoinedConversation, code, detail string) *Conflict {
	return &Conflict{GroupID: j.GroupID, Generation: j.Generation, Epoch: j.Epoch, Status: j.Status, err: fault.New(fault.Conflict, detail).WithCode(code)}
}

// begin returns where a request goes that changes a conversation: to a user of this server, or
// with isHere false to the host elsewhere.
func (m *Members) begin(ctx context.Context, u vocab.Username, c *db.Conversation) (at Place, isHere bool, err error) {
	if m.hosts(u, c) {
		return Place{Host: u, ID: c.ID}, true, nil
	}
	if err := m.checkOpen(ctx, u, c); err != nil {
		return Place{}, false, err
	}
	if c.Host == "" {
		return Place{}, false, fault.New(fault.Unprocessable, "nobody puts the conversation in order: name those for which a message is, in to").WithCode("no_host")
	}
	at, isHere = m.PlaceOf(c)
	return at, isHere, nil
}

// Commit asks for the end of an epoch.
func (m *Members) Commit(ctx context.Context, u vocab.Username, to *db.Conversation, c Commit) (Accepted, error) {
	c.Caller = m.Local.ID(u)
	at, isHere, err := m.begin(ctx, u, to)
	if err != nil {
		return Accepted{}, err
	}
	if isHere {
		return m.Registry.Commit(ctx, at, c)
	}
	if err := (&commit{Commit: c}).parse(); err != nil { // as the host would refuse it
		return Accepted{}, err
	}
	path := "/commits"
	if c.External {
		path = "/external-commit"
	}
	return m.submit(ctx, u, to, path, c.Key, map[string]any{"commit": c.Message, "groupInfo": c.GroupInfo, "welcomes": c.Welcomes})
}

// submit asks a host elsewhere to take something, and checks its answer.
func (m *Members) submit(ctx context.Context, u vocab.Username, c *db.Conversation, path, key string, body any) (Accepted, error) {
	var a Accepted
	replayed, err := m.ask(ctx, u, c, http.MethodPost, path, key, body, &a)
	if err == nil && (a.Seq < 0 || a.Seq > maxSeq || a.Epoch < 0 || a.Generation < 0) {
		err = badReply(nil)
	}
	a.Replayed = replayed
	return a, err
}

// Send sends ciphertext.
func (m *Members) Send(ctx context.Context, u vocab.Username, c *db.Conversation, content []byte) (Accepted, error) {
	at, isHere, err := m.begin(ctx, u, c)
	if err != nil {
		return Accepted{}, err
	}
	message := Message{Caller: m.Local.ID(u), Content: content}
	if isHere {
		return m.Registry.Send(ctx, at, message)
	}
	if err := message.parse(); err != nil {
		return Accepted{}, err
	}
	return m.submit(ctx, u, c, "/messages", "", map[string]any{"message": content})
}

// AskReset begins a reset, and returns the id of the MLS group that comes next.
func (m *Members) AskReset(ctx context.Context, u vocab.Username, c *db.Conversation) (string, error) {
	at, isHere, err := m.begin(ctx, u, c)
	if err != nil {
		return "", err
	}
	if isHere {
		return m.Registry.AskReset(ctx, at, m.Local.ID(u))
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
func (m *Members) Reset(ctx context.Context, u vocab.Username, c *db.Conversation, groupInfo []byte) (Accepted, error) {
	at, isHere, err := m.begin(ctx, u, c)
	if err != nil {
		return Accepted{}, err
	}
	if isHere {
		return m.Registry.Reset(ctx, at, m.Local.ID(u), groupInfo)
	}
	if _, err := readNewGroup(groupInfo, m.Local.ID(u)); err != nil {
		return Accepted{}, err
	}
	return m.submit(ctx, u, c, "/reset", "", map[string]any{"groupInfo": groupInfo})
}

// GroupInfo returns the state of the MLS group, by which a device joins again.
func (m *Members) GroupInfo(ctx context.Context, u vocab.Username, c *db.Conversation) (groupInfo []byte, epoch int64, err error) {
	at, isHere, err := m.begin(ctx, u, c)
	if err != nil {
		return nil, 0, err
	}
	if isHere {
		return m.Registry.GroupInfo(ctx, at, m.Local.ID(u))
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

// readHostLog returns the messages of a log after a number, from the host.
func (m *Members) readHostLog(ctx context.Context, u vocab.Username, c *db.Conversation, after int64) (entries []loggedSaid, more bool, err error) {
	if at, isHere := m.PlaceOf(c); isHere {
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

// MessagePage is a page of the messages that came, the newest first.
type MessagePage struct {
	Entries []db.InboxEntry
	Total   int64
	More    bool
}

// NewestMessages returns up to n messages before one in the order of coming, or from the end.
func (m *Members) NewestMessages(ctx context.Context, u vocab.Username, before int64, n int) (p MessagePage, err error) {
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if p.Total, err = tx.CountInboxMessages(ctx); err != nil {
			return err
		}
		p.Entries, err = tx.NewestInboxMessages(ctx, before, n+1, maxLogPage)
		return err
	})
	if p.More = len(p.Entries) > n || sizeOf(p.Entries) > maxLogPage; len(p.Entries) > n {
		p.Entries = p.Entries[:n]
	}
	return p, err
}
