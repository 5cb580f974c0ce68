package socket

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// MaxSignal limits the bytes of a signal from another server.
	MaxSignal = 4 << 10

	// maxCompany limits the size of a conversation whose signals are passed on. In a larger
	// conversation nobody waits to see who types.
	maxCompany = 100

	// maxSeq is the largest number of a log entry in a signal. JSON holds integers up to this
	// number exactly.
	maxSeq = 1 << 53

	// newsTime limits the age of a signal from another server, and the lead of the other
	// server's clock.
	newsTime = 2 * time.Minute

	// maxPairs limits the pairs of sender and recipient in heard. While heard is full of pairs
	// younger than newsTime, signals of other pairs are dropped.
	maxPairs = 50_000
)

// Read reads a user's database.
type Read func(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error

// passed is a signal about an encrypted conversation in the form in which servers exchange it.
type passed struct {
	Type         string    `json:"type"`
	Conversation vocab.ID  `json:"conversation"`
	On           bool      `json:"on,omitempty"`  // for typing: whether the actor is still typing
	Seq          int64     `json:"seq,omitempty"` // for read: the last entry of the log that was read
	Timestamp    time.Time `json:"timestamp"`
}

func (m *passed) check() error {
	if m.Type != typing && m.Type != read {
		return fault.New(fault.Invalid, "a signal about a conversation is of type typing or read").WithCode("unknown_frame")
	}
	if _, err := vocab.ParseID(string(m.Conversation)); err != nil {
		return fault.New(fault.Invalid, "conversation is a URI").WithCode("bad_frame")
	}
	if m.Seq < 0 || m.Seq > maxSeq {
		return fault.New(fault.Invalid, "seq is a number of the log").WithCode("bad_frame")
	}
	return nil
}

// rule returns the function that selects, from a user's permissions, the rule for signals of m's
// type.
func (m *passed) rule() func(registry.Permissions) registry.Rule {
	if m.Type == read {
		return seeReadReceipts
	}
	return seePresence
}

// tellConversation sends a signal to those other members of an encrypted conversation who may
// see it: to local users over their sockets, and to remote members through their servers.
func (s *Socket) tellConversation(ctx context.Context, said signal) error {
	h, me := s.hub, s.request.User
	m := passed{Type: said.Type, Conversation: said.Conversation, Timestamp: h.Now().UTC()}
	if m.Type == typing {
		m.On = said.On
	} else {
		m.Seq = said.Seq
	}
	if said.Actor != "" {
		return fault.New(fault.Invalid, "a signal is for an actor or for a conversation").WithCode("bad_frame")
	}
	if err := m.check(); err != nil {
		return err
	}
	others, err := h.companions(ctx, h.Store.Read, me, &m)
	if err != nil {
		return err
	}
	var away []vocab.ID
	for _, id := range others {
		u, isLocal := h.Local.Owner(id)
		if !isLocal {
			away = append(away, id)
			continue
		}
		if err := h.arrive(ctx, h.Store.Read, u, h.Local.ID(me), &m); err != nil {
			return err
		}
	}
	if len(away) > 0 {
		h.Peers.Tell(me, away, m)
	}
	return nil
}

// companions returns the other members of a conversation who meet the user's rule for a signal
// and are not blocked. It returns none if the user is no member, or the conversation is too
// large.
func (h *Hub) companions(ctx context.Context, from Read, u vocab.Username, m *passed) (others []vocab.ID, err error) {
	var company []vocab.ID
	var ties map[vocab.ID][]string
	err = from(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if company, err = tx.Threads.ListCompany(ctx, m.Conversation, maxCompany+1); err == nil {
			ties, err = tx.Relationships.FindTies(ctx, company)
		}
		return err
	})
	me := h.Local.ID(u)
	if err != nil || len(company) > maxCompany || !slices.Contains(company, me) {
		return nil, err
	}
	r := audience.Rule(m.rule()(h.Profiles.User(u).Permissions))
	for _, id := range company {
		if id != me && r.IsMet(ties[id]) {
			others = append(others, id)
		}
	}
	return others, nil
}

// Arrive handles a signal that an actor of another server has signed. The result does not tell
// whether the signal was shown, because that would disclose who is online, and who is in a
// conversation. The fault is Invalid if body is no signal.
func (h *Hub) Arrive(ctx context.Context, from Read, to vocab.Username, actor vocab.ID, body []byte) error {
	var m passed
	if err := json.Unmarshal(body, &m); err != nil {
		return fault.New(fault.Invalid, "a signal is a JSON object with a type and a timestamp").WithCode("bad_frame")
	}
	if err := m.check(); err != nil {
		return err
	}
	return h.arrive(ctx, from, to, actor.Canonical(), &m)
}

// arrive shows the actor's signal to a user if both are in the conversation, and if the user lets
// the actor see the user's own signals of that type. It drops a signal that is old or not newer
// than the last one shown, and the signals of an actor that sends too many.
func (h *Hub) arrive(ctx context.Context, from Read, to vocab.Username, actor vocab.ID, m *passed) error {
	pair := pairOf(actor, h.Local.ID(to))
	if h.tailOf(to) == nil || !h.heard.isNews(pair, m.Timestamp, h.Now()) {
		return nil
	}
	if ok, _ := h.pace.Allow(pair); !ok {
		return nil
	}
	others, err := h.companions(ctx, from, to, m)
	if err != nil || !slices.Contains(others, actor) || !h.heard.note(pair, m.Timestamp, h.Now()) {
		return err
	}
	d := signalDoc{Type: m.Type, From: actor, Conversation: m.Conversation, Seq: m.Seq, Timestamp: m.Timestamp.UTC().Format(time.RFC3339Nano)}
	if m.Type == typing {
		d.On = &m.On
	}
	h.pushTo([]vocab.Username{to}, d)
	return nil
}

func pairOf(from, to vocab.ID) string { return string(from) + " " + string(to) }

// heard stores, for each pair of sender and recipient, the time of the last signal that was
// shown. A signal with that time or an earlier one is not shown. Old times are removed when
// there is no room.
type heard struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (p *heard) isNews(pair string, at, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(at).Abs() <= newsTime && at.After(p.last[pair])
}

// note stores the time of a signal. It returns false if a signal of the same time or a later one
// came meanwhile, or if there is no room.
func (p *heard) note(pair string, at, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.last[pair]
	if !at.After(last) {
		return false
	}
	if !known && len(p.last) >= maxPairs {
		maps.DeleteFunc(p.last, func(_ string, t time.Time) bool { return now.Sub(t) > newsTime })
		if len(p.last) >= maxPairs {
			return false
		}
	}
	p.last[pair] = at
	return true
}
