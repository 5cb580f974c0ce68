// Package socket sends the events of users to the sockets of their clients as they happen. A
// socket is a WebSocket, or a stream of server-sent events.
//
// A socket begins after an event, and gets every later event of its user, once, in the order of
// the events' numbers. There are two exceptions: LLM engines get no events about private messages
// of strangers, and a reset frame takes the place of events that are no longer stored. The hub
// gets the events after each commit, and hands them to all sockets of the user in memory. A
// socket that begins after an earlier event reads from the user's stream in Redis until it has
// caught up, and from the user's database where the stream lacks events.
package socket

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Kind is the protocol of a socket.
type Kind string

// The kinds of sockets, as metrics name them.
const (
	WebSocket Kind = "websocket"
	SSE       Kind = "sse" // server-sent events
)

const (
	// readers limits the reads of missing events for live sockets that run at the same time.
	// One read serves all live sockets of a user. A socket that is not live yet reads on its
	// own, and does not count.
	readers = 8

	// compareEvery is the time between two comparisons of the streams with the events that
	// sockets have got. A stream may have more events, because another process may have added
	// events.
	compareEvery = 2 * time.Second

	// checkEvery is the time between two checks of the tokens and sessions of open sockets.
	// The sockets of a token end if the token was revoked, has expired, or belongs to a user
	// who is not active. The sockets of a session end if the session is lost.
	checkEvery = 15 * time.Second

	// checkTime limits the wait of such a check for the database. Until the check ends, Run
	// does nothing else.
	checkTime = 10 * time.Second

	// together limits the streams that are compared, or the sessions that are checked, in one
	// round trip.
	together = 100
)

// Store is the users' databases.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Tokens are the API tokens of all users.
type Tokens interface {
	// ListValid returns those of the tokens that are valid and belong to active users.
	ListValid(ctx context.Context, ids []uuid.UUID, now time.Time) ([]uuid.UUID, error)
}

// Local knows the local users.
type Local interface {
	ID(u vocab.Username) vocab.ID
	Owner(id vocab.ID) (vocab.Username, bool)
}

// Profiles has the settings of users, which say who may see their signals.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// Deps are the dependencies of a Hub.
type Deps struct {
	Store    Store
	Streams  *keyspace.Store
	Tokens   Tokens
	Local    Local
	Profiles Profiles
	Peers    *Peers
	Log      *slog.Logger
	Metrics  prometheus.Registerer // may be nil
	Now      func() time.Time
	OfUser   int // the most sockets that a user may have open; LLM engines may have half of them
}

// Hub has the open sockets of all users. An instance has one hub, in one of its processes.
type Hub struct {
	Deps
	metrics *metrics
	all     *policy.Pool
	slots   chan struct{} // limits how many readers run at the same time

	delivered delivered

	pace  *policy.Limiter // limits signals about conversations, for each pair of sender and recipient
	heard heard

	reading     context.Context // the context of reads; it ends with the hub
	stopReading func()

	mu      sync.Mutex
	tails   map[vocab.Username]*tail
	closing bool
	open    sync.WaitGroup // counts the sockets, and the readers for them
}

// NewHub returns a hub without sockets.
func NewHub(d Deps) *Hub {
	h := &Hub{Deps: d, all: policy.Sockets.NewPool(), slots: make(chan struct{}, readers), tails: map[vocab.Username]*tail{},
		delivered: delivered{last: map[vocab.Username]keyspace.ID{}}, pace: policy.SignalsOfPair.Limiter(d.Now), heard: heard{last: map[string]time.Time{}}}
	h.metrics = newMetrics(d.Metrics)
	h.reading, h.stopReading = context.WithCancel(context.Background())
	return h
}

// Request describes the socket to open.
type Request struct {
	User      vocab.Username
	Kind      Kind
	Payer     string       // the payer of the socket's place in the pool of all sockets
	Token     uuid.UUID    // the token of the request or of its session; the socket ends with it
	Session   string       // the session of the request, with which the socket ends; empty if the request had a token
	Assistant bool         // the socket belongs to an LLM engine
	MaySignal bool         // the client may send signals of its user
	After     *keyspace.ID // the last event that the client has; if it is nil, the socket begins with the next event
}

// Open opens a socket. The fault is RateLimited if the user has too many sockets. It is Busy if
// the pool of all sockets is full, if the payer has used up its share of the pool, or if the
// engine is shutting down. The caller closes the socket.
func (h *Hub) Open(r Request) (*Socket, error) {
	if !h.all.Take(r.Payer, 1) {
		return nil, h.refuse(fault.New(fault.Busy, "too many sockets are open").WithCode("overloaded"))
	}
	s := &Socket{hub: h, request: r, wake: make(chan struct{}, 1)}
	if err := h.attach(s); err != nil {
		h.all.Give(r.Payer, 1)
		return nil, h.refuse(err)
	}
	h.metrics.open.WithLabelValues(string(r.Kind)).Inc()
	return s, nil
}

func (h *Hub) refuse(err error) error {
	h.metrics.refused.Inc()
	return err
}

// attach adds a socket to the sockets of its user.
func (h *Hub) attach(s *Socket) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return fault.New(fault.Busy, "the engine ends; come again").WithCode("shutting_down")
	}
	t := h.tails[s.request.User]
	if t == nil {
		t = &tail{hub: h, user: s.request.User, sockets: map[*Socket]struct{}{}, signals: newSignalBudget()}
		h.tails[s.request.User] = t
	}
	if !t.addSocket(s) {
		return fault.New(fault.RateLimited, "you have too many sockets open").WithCode("too_many_sockets")
	}
	s.tail = t
	h.open.Add(1)
	return nil
}

// detach removes a socket from the sockets of its user.
func (h *Hub) detach(s *Socket) {
	h.mu.Lock()
	if s.tail.removeSocket(s) == 0 {
		delete(h.tails, s.tail.user)
	}
	h.mu.Unlock()
	h.all.Give(s.request.Payer, 1)
	h.metrics.open.WithLabelValues(string(s.request.Kind)).Dec()
	h.open.Done()
}

func (h *Hub) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing
}

func (h *Hub) tailOf(u vocab.Username) *tail {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tails[u]
}

func (h *Hub) listTails() []*tail {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*tail, 0, len(h.tails))
	for _, t := range h.tails {
		all = append(all, t)
	}
	return all
}

// Committed gives the sockets of a user the events of a commit in that user's database. It never
// waits.
func (h *Hub) Committed(_ context.Context, c user.Commit) {
	if !c.Unknown && len(c.Events) == 0 {
		return
	}
	if t := h.tailOf(c.User); t != nil {
		t.tell(c.Events, c.Unknown)
	}
}

// Run compares streams, marks delivered events and checks tokens, until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	compare, check := time.NewTicker(compareEvery), time.NewTicker(checkEvery)
	defer compare.Stop()
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-compare.C:
			h.CompareStreams(ctx)
			h.MarkDelivered(ctx)
		case <-check.C:
			h.CheckTokens(ctx)
		}
	}
}

// CompareStreams starts a read for each user whose live sockets lack events. These are events of
// another process, which the user's stream shows, or events that an earlier read failed to get.
func (h *Hub) CompareStreams(ctx context.Context) {
	tails := h.listTails()
	for len(tails) > 0 {
		part := tails[:min(together, len(tails))]
		tails = tails[len(part):]
		users := make([]vocab.Username, len(part))
		for n, t := range part {
			users[n] = t.user
		}
		ids, err := h.Streams.LastIDs(ctx, users, stream)
		if err != nil {
			ids = make([]keyspace.ID, len(part)) // without Redis, the tails still read events that commits of this process announced
		}
		for n, t := range part {
			t.compare(ids[n])
		}
	}
}

// Close ends every socket and refuses new ones. It waits until all sockets are closed and all
// reads have ended, or ctx ends.
func (h *Hub) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	for _, t := range h.listTails() {
		for _, s := range t.listSockets() {
			s.End(GoingAway)
		}
	}
	h.stopReading()
	closed := make(chan struct{})
	go func() { h.open.Wait(); close(closed) }()
	select {
	case <-closed:
		h.MarkDelivered(ctx)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
