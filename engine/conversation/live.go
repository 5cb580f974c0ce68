package conversation

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// operation is a request to a conversation: a Message or a change.
type operation interface {
	name() string      // the label in metrics
	askedBy() vocab.ID // the actor that asks for it
}

// change is an operation that never shares its transaction with another operation of the same
// conversation.
type change interface {
	operation
	// answerKey returns the key under which the answer is stored, or "" if it is not stored.
	answerKey() string
	// apply makes the change to a conversation whose row is locked. It refuses before it writes
	// anything. It may be called again if the transaction fails.
	apply(ctx context.Context, tx *user.Tx, c *user.HostedConversation) error
}

// task is an operation with the caller that waits for it.
type task struct {
	ctx  context.Context // of the caller
	do   operation
	err  error // the refusal of the operation
	done chan error
}

type letter = mailbox.Letter[*task]

// live is a conversation with a mailbox in this process. The true state of the conversation is in
// the database. The fields are hints, or record how this process uses the conversation.
type live struct {
	registry *Registry
	at       Place
	box      *mailbox.Mailbox[*user.Tx, *task]
	epoch    atomic.Int64             // the epoch as this process last wrote it or read it ahead; -1 if it is not known
	hosted   atomic.Bool              // this process last found the conversation in encrypted mode
	seen     *user.HostedConversation // the row that the present batch locked; only the worker of box uses this field

	// The mutex of the registry guards these fields.
	usedAt     time.Time
	panics     []time.Time
	restsUntil time.Time
}

func newLive(r *Registry, at Place) *live {
	c := &live{registry: r, at: at}
	c.epoch.Store(-1)
	c.box = mailbox.New(mailbox.Owner[*user.Tx, *task]{Slot: c.inTransaction, Alone: isChange, Handle: c.handle, Settle: c.settle, Panicked: c.countPanic},
		mailbox.Limits{Letters: maxWaiting, Batch: maxBatch, Backoff: backoff})
	return c
}

// inTransaction runs a batch in one transaction. The transaction continues even if the callers of
// the batch leave. It may also hold work of other conversations of the same host.
func (c *live) inTransaction(use func(context.Context, *user.Tx) error) error {
	return c.registry.carriers.carry(c.at, use)
}

// isChange says whether a task changes the conversation. Such a task has a transaction of its
// own; messages share one.
func isChange(t *task) bool {
	_, isMessage := t.do.(*Message)
	return !isMessage
}

// handle does the operations of a batch in their order. A task whose caller has gone is skipped.
func (c *live) handle(ctx context.Context, tx *user.Tx, batch []*letter) (err error) {
	if c.seen, err = c.lock(ctx, tx, batch[0].Value.do); err != nil {
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

// lock locks the conversation for a batch. The parameter do is the first operation of the batch.
func (c *live) lock(ctx context.Context, tx *user.Tx, do operation) (*user.HostedConversation, error) {
	asked, is := do.(change)
	if !is {
		return tx.Hosted.Lock(ctx, c.at.ID)
	}
	return tx.Hosted.LockFor(ctx, c.at.ID, asked.askedBy(), asked.answerKey(), c.registry.Now())
}

// applyChange applies a change to a conversation, or refuses it if the conversation does not
// exist.
func applyChange(ctx context.Context, tx *user.Tx, do change, c *user.HostedConversation) error {
	if c == nil {
		return errNoConversation
	}
	return do.apply(ctx, tx, c)
}

// settle answers the tasks of a batch. If the transaction succeeded, each task gets its own
// result. Otherwise all tasks get the error of the transaction.
func (c *live) settle(batch []*letter, err error) error {
	epoch, hosted := int64(-1), false
	if err == nil && c.seen != nil {
		epoch, hosted = c.seen.Epoch, c.seen.Mode == user.ModeEncrypted
	}
	c.epoch.Store(epoch)
	c.hosted.Store(hosted)
	c.seen = nil // its GroupInfo may be large
	for _, l := range batch {
		if err == nil {
			l.Answer(l.Value.err)
		} else {
			l.Answer(err)
		}
	}
	return err
}

// countPanic logs a panic. After more than maxPanics within panicWindow the conversation refuses
// requests for restTime.
func (c *live) countPanic(value any, stack []byte) {
	c.seen = nil
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
