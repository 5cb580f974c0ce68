package conversation

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/mailbox"
)

// operation is something that is asked of a conversation: a message, or a change.
type operation interface {
	name() string // in metrics
}

// change is an operation that is done alone, beside those of other conversations.
type change interface {
	operation
	// apply does it to a conversation that no other transaction changes meanwhile. A refusal comes
	// before anything is written. It may be called again after a transaction that did not hold.
	apply(ctx context.Context, tx *db.Tx, c *db.HostedConversation) error
}

// task is an operation, and who waits for it.
type task struct {
	ctx  context.Context // of the caller
	do   operation
	err  error // the refusal
	done chan error
}

type letter = mailbox.Letter[*task]

// live is a conversation with a mailbox. The database decides what becomes of it; what is here is
// a hint, or says how this process gets on with it.
type live struct {
	registry *Registry
	at       Place
	box      *mailbox.Mailbox[*db.Tx, *task]
	epoch    atomic.Int64 // at the last commit of this process; -1: not known
	waiting  atomic.Int64
	seen     *db.HostedConversation // by the batch that is being handled; the worker's

	// Guarded by the registry.
	usedAt     time.Time
	panics     []time.Time
	restsUntil time.Time
}

func newLive(r *Registry, at Place) *live {
	c := &live{registry: r, at: at}
	c.epoch.Store(-1)
	c.box = mailbox.New(mailbox.Owner[*db.Tx, *task]{Slot: c.inTransaction, Together: countTogether, Handle: c.handle, Settle: c.settle, Panicked: c.countPanic},
		mailbox.Limits{Letters: maxWaiting, Batch: maxBatch, Backoff: backoff})
	return c
}

// inTransaction runs a batch in one transaction, which outlives its callers. Other conversations of
// the host may share it.
func (c *live) inTransaction(use func(context.Context, *db.Tx) error) error {
	return c.registry.carriers.carry(c.at, use)
}

// countTogether lets messages share a transaction, as many as come one after the other. All else is
// done alone.
func countTogether(first []*letter) int {
	n := slices.IndexFunc(first, func(l *letter) bool { _, is := l.Value.do.(*Message); return !is })
	switch n {
	case -1:
		return len(first)
	case 0:
		return 1
	}
	return n
}

// handle does what is asked, one after the other. A task whose caller has gone is skipped.
func (c *live) handle(ctx context.Context, tx *db.Tx, batch []*letter) (err error) {
	if c.seen, err = tx.LockConversation(ctx, c.at.ID); err != nil {
		return err
	}
	var messages []*task
	for _, l := range batch {
		t := l.Value
		if t.err = t.ctx.Err(); t.err != nil {
			continue
		}
		switch do := t.do.(type) {
		case *Message:
			messages = append(messages, t)
		case change:
			if t.err = applyChange(ctx, tx, do, c.seen); t.err != nil && !isRefusal(t.err) {
				return t.err
			}
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return c.registry.acceptMessages(ctx, tx, c.at, c.seen, messages)
}

// applyChange applies a change to a conversation that is there.
func applyChange(ctx context.Context, tx *db.Tx, do change, c *db.HostedConversation) error {
	if c == nil {
		return errNoConversation
	}
	return do.apply(ctx, tx, c)
}

// settle answers a batch: each task with its own refusal when the transaction of all held.
func (c *live) settle(batch []*letter, err error) error {
	if err == nil && c.seen != nil {
		c.epoch.Store(c.seen.Epoch)
	}
	if err != nil {
		c.epoch.Store(-1)
	}
	for _, l := range batch {
		if err == nil {
			l.Answer(l.Value.err)
		} else {
			l.Answer(err)
		}
	}
	return err
}

// countPanic lets a conversation rest that panics again and again.
func (c *live) countPanic(value any, stack []byte) {
	r := c.registry
	r.Log.Error("conversation panicked", "user", c.at.Host, "err", value, "stack", string(stack))
	r.metrics.restarts.Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	c.panics = append(slices.DeleteFunc(c.panics, func(at time.Time) bool { return now.Sub(at) >= panicWindow }), now)
	if len(c.panics) > maxPanics {
		c.panics, c.restsUntil = nil, now.Add(restTime)
		r.Log.Error("conversation rests after panics", "user", c.at.Host, "hint", "report the panic; the conversation goes on in a minute")
	}
}
