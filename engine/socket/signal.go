package socket

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Signals tell others, immediately or never, that a user types, is present, or has read
// something. They go to the sockets of those local users who meet the sender's rule, except for
// sockets of LLM engines. Only presence is stored. Signals about an encrypted conversation go to
// other servers, too.
const (
	typing   = "typing"
	read     = "read"
	presence = "presence"
)

// The states of presence.
const (
	online  = "online"
	away    = "away"
	offline = "offline"
)

const (
	// presenceTime is the lifetime of presence without a renewal. A socket renews presence
	// every 30 seconds.
	presenceTime = 90 * time.Second

	// Limits of the signals that all of a user's sockets together may send: in each second, and in
	// a burst.
	signalsPerSec  = 10
	signalsAtATime = 30

	signalTime = 5 * time.Second // the time limit for handling one signal
)

// signal is a message of a client.
type signal struct {
	Type   string   `json:"type"`
	Actor  vocab.ID `json:"to"`     // for typing and read: the recipient
	Object vocab.ID `json:"object"` // the object that was read or is being answered; may be empty
	On     bool     `json:"on"`     // for typing: whether the user is still typing
	// Conversation is, for typing and read, the conversation whose members get the signal. Then
	// Actor is empty.
	Conversation vocab.ID `json:"conversation"`
	Seq          int64    `json:"seq"`   // for read: the last entry of the conversation's log that was read
	State        string   `json:"state"` // for presence
}

// signalDoc is a signal as its recipients get it.
type signalDoc struct {
	Type         string   `json:"type"`
	From         vocab.ID `json:"from"`
	Object       vocab.ID `json:"object,omitempty"`
	Conversation vocab.ID `json:"conversation,omitempty"`
	Seq          int64    `json:"seq,omitempty"`
	On           *bool    `json:"on,omitempty"`
	State        string   `json:"state,omitempty"`
	Timestamp    string   `json:"timestamp"`
}

// errorDoc tells a client that its message was refused.
type errorDoc struct {
	Type   string `json:"type"`
	Error  string `json:"error"`
	Detail string `json:"detail"`
}

// Signal handles a message of the client. It tells the client if the message was refused, but not
// who got it, because that would disclose who is online.
func (s *Socket) Signal(ctx context.Context, message []byte) {
	ctx, cancel := context.WithTimeout(ctx, signalTime)
	defer cancel()
	err := s.sendSignal(ctx, message)
	if err == nil {
		return
	}
	if kind := fault.KindOf(err); kind == fault.Internal || kind == fault.Unavailable {
		s.hub.Log.WarnContext(ctx, "signal not passed on", "user", s.request.User, "err", err)
	}
	d := errorDoc{Type: "error", Error: "unavailable", Detail: fault.Public(err)}
	if of := fault.Of(err); of != nil && of.Code != "" {
		d.Error = of.Code
	}
	s.tail.pushSignal(newDocFrame("error", d), s)
}

func (s *Socket) sendSignal(ctx context.Context, message []byte) error {
	var m signal
	if err := json.Unmarshal(message, &m); err != nil {
		return fault.New(fault.Invalid, "a message is a JSON object with a type").WithCode("bad_frame")
	}
	if !s.request.MaySignal {
		return fault.New(fault.Forbidden, "the token is not for that").WithCode("insufficient_scope")
	}
	if !s.tail.signals.Allow() {
		return fault.New(fault.RateLimited, "too many signals").WithCode("rate_limited")
	}
	switch m.Type {
	case presence:
		return s.setPresence(ctx, m.State)
	case typing, read:
		if m.Conversation != "" {
			return s.tellConversation(ctx, m)
		}
		return s.tellOne(ctx, m)
	}
	return fault.New(fault.Invalid, "a message is of type typing, read or presence").WithCode("unknown_frame")
}

// tellOne passes a signal on to its recipient, if that is a local user who may see it.
func (s *Socket) tellOne(ctx context.Context, m signal) error {
	for _, id := range []vocab.ID{m.Actor, m.Object} {
		if _, err := vocab.ParseID(string(id)); err != nil && id != "" {
			return fault.New(fault.Invalid, "to and object are URIs").WithCode("bad_frame")
		}
	}
	to, isLocal := s.hub.Local.Owner(m.Actor.Canonical())
	if !isLocal || s.hub.tailOf(to) == nil {
		return nil
	}
	rule := seePresence
	if m.Type == read {
		rule = seeReadReceipts
	}
	viewers, err := s.hub.viewersAmong(ctx, s.request.User, []vocab.Username{to}, rule)
	if err != nil || len(viewers) == 0 {
		return err
	}
	d := s.hub.newSignal(m.Type, s.request.User)
	d.Object = m.Object
	if m.Type == typing {
		d.On = &m.On
	}
	s.hub.pushTo(viewers, d)
	return nil
}

func (h *Hub) newSignal(kind string, from vocab.Username) signalDoc {
	return signalDoc{Type: kind, From: h.Local.ID(from), Timestamp: h.Now().UTC().Format(time.RFC3339Nano)}
}

// Rules of a user that say who may see the user's signals.
func seePresence(p registry.Permissions) registry.Rule     { return p.SeePresence }
func seeReadReceipts(p registry.Permissions) registry.Rule { return p.SeeReadReceipts }

// viewersAmong returns the candidates that meet the given rule of u and are not blocked by u.
func (h *Hub) viewersAmong(ctx context.Context, u vocab.Username, candidates []vocab.Username, rule func(registry.Permissions) registry.Rule) (viewers []vocab.Username, err error) {
	ties, err := h.tiesTo(ctx, u, candidates)
	if err != nil {
		return nil, err
	}
	r := audience.Rule(rule(h.Profiles.User(u).Permissions))
	for _, one := range candidates {
		if r.IsMet(ties[h.Local.ID(one)]) {
			viewers = append(viewers, one)
		}
	}
	return viewers, nil
}

// tiesTo returns the relationships of u to the candidates. It leaves out those that u blocks.
func (h *Hub) tiesTo(ctx context.Context, u vocab.Username, candidates []vocab.Username) (ties map[vocab.ID][]string, err error) {
	ids := make([]vocab.ID, len(candidates))
	for n, one := range candidates {
		ids[n] = h.Local.ID(one)
	}
	err = h.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		ties, err = tx.Relationships.FindTies(ctx, ids)
		return err
	})
	return ties, err
}

// pushTo pushes a signal to the open sockets of users.
func (h *Hub) pushTo(users []vocab.Username, d signalDoc) {
	f := newDocFrame(d.Type, d)
	for _, u := range users {
		if t := h.tailOf(u); t != nil {
			t.pushSignal(f, nil)
		}
	}
}

// pushSignal gives a frame to sockets of the user. If a socket is given, that socket alone gets
// the frame. Otherwise all sockets get it, except those of LLM engines. A socket for which many
// frames wait is skipped.
func (t *tail) pushSignal(f Frame, only *Socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.sockets {
		isMeant := s == only || only == nil && !s.request.Assistant
		if !isMeant || s.closed != nil || len(s.buffer) >= maxBuffered/2 {
			continue
		}
		s.buffer = append(s.buffer, f)
		s.wakeUp()
	}
}

func newDocFrame(kind string, d any) Frame {
	body, err := vocab.Marshal(d)
	if err != nil {
		panic("socket: a signal cannot be written: " + err.Error()) // it is made of texts
	}
	return Frame{ID: keyspace.ID{}, Type: kind, Body: body}
}

func newSignalBudget() *rate.Limiter { return rate.NewLimiter(signalsPerSec, signalsAtATime) }
