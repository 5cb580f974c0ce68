package socket

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	tellers  = 8               // the most signals that are sent to other servers at the same time
	tellTime = 3 * time.Second // the time limit for sending one signal
	lateTime = 5 * time.Second // a signal that waited longer is dropped

	// restTime is the time for which a host gets no signals after a signal to the host could
	// not be sent, or was answered with 429 or 5xx.
	restTime = time.Minute
	maxRests = 10_000 // entries of Peers.rests; if there are so many, all are removed
)

// People finds actors of other servers.
type People interface {
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Keys has the keys with which users sign.
type Keys interface {
	Keys(u vocab.Username) (transport.Keys, error)
}

// Poster sends signed requests.
type Poster interface {
	Post(ctx context.Context, p transport.Post) (transport.Attempt, error)
}

// PeerDeps are the parts that Peers works with.
type PeerDeps struct {
	People People
	Keys   Keys
	Poster Poster
	Log    *slog.Logger
	Now    func() time.Time
}

// Peers sends signals about encrypted conversations to actors of other servers. Each signal is
// sent once, or is dropped if that is not possible soon.
type Peers struct {
	PeerDeps
	pace    *policy.Limiter // limits the signals of each pair of sender and recipient
	waiting *policy.Pool
	queue   chan telling

	mu    sync.Mutex
	rests map[string]time.Time // the time until which a host gets no signals
}

// telling is a signal to one actor that waits to be sent.
type telling struct {
	from vocab.Username
	to   vocab.ID
	body []byte
	at   time.Time
}

// NewPeers returns Peers that sends signals while Run runs.
func NewPeers(d PeerDeps) *Peers {
	return &Peers{PeerDeps: d, pace: policy.SignalsOfPair.Limiter(d.Now), waiting: policy.SignalsWaiting.NewPool(),
		queue: make(chan telling, policy.SignalsWaiting.Pool), rests: map[string]time.Time{}}
}

// Tell queues a signal to actors. It never waits. It drops a signal if the queue has no room, if
// the sender signals the actor too often, or if the actor's host rests (see restTime).
func (p *Peers) Tell(from vocab.Username, to []vocab.ID, m passed) {
	body, err := vocab.Marshal(m)
	if err != nil {
		panic("socket: a signal cannot be written: " + err.Error()) // it is made of texts
	}
	for _, id := range to {
		if ok, _ := p.pace.Allow(from.String() + " " + string(id)); !ok || p.isResting(id.Host()) || !p.waiting.Take(from.String(), 1) {
			continue
		}
		p.queue <- telling{from, id, body, p.Now()} // never blocks: waiting is as large as the queue
	}
}

// Run sends the queued signals until ctx ends.
func (p *Peers) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range tellers {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case t := <-p.queue:
					p.waiting.Give(t.from.String(), 1)
					p.tell(ctx, t)
				}
			}
		})
	}
	all.Wait()
}

func (p *Peers) tell(ctx context.Context, t telling) {
	if p.Now().Sub(t.at) > lateTime || p.isResting(t.to.Host()) {
		return
	}
	keys, err := p.Keys.Keys(t.from)
	if err != nil { // the other server is not at fault
		p.Log.DebugContext(ctx, "signal not signed", "user", t.from, "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if err := p.post(ctx, t, keys); err != nil {
		p.rest(t.to.Host())
		p.Log.DebugContext(ctx, "signal not taken", "user", t.from, "actor", t.to, "err", err)
	}
}

// post sends a signal to the address that the actor's document states, if it states one.
func (p *Peers) post(ctx context.Context, t telling, keys transport.Keys) error {
	to, err := p.People.Resolve(ctx, t.to)
	if err != nil || to.Realtime == "" {
		return err
	}
	a, err := p.Poster.Post(ctx, transport.Post{Inbox: to.Realtime, Body: t.body, As: keys, Ed25519: to.TakesEd25519(), MediaType: "application/json"})
	if err == nil && (a.Status >= http.StatusInternalServerError || a.Status == http.StatusTooManyRequests) {
		err = fault.New(fault.Unavailable, "the server does not take signals")
	}
	return err
}

func (p *Peers) isResting(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Now().Before(p.rests[host])
}

func (p *Peers) rest(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rests) >= maxRests {
		clear(p.rests)
	}
	p.rests[host] = p.Now().Add(restTime)
}
