package intake

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// Background runs work that no request waits for, until Close.
type Background struct {
	log     *slog.Logger
	closing chan struct{}
	ctx     context.Context // see Context
	cancel  context.CancelFunc
	once    sync.Once
	running sync.WaitGroup
}

// panicRest is the pause before Loop calls a function again that panicked.
const panicRest = time.Second

// NewBackground returns a background in which nothing runs. It logs panics to log.
func NewBackground(log *slog.Logger) *Background {
	ctx, cancel := context.WithCancel(context.Background())
	return &Background{log: log, closing: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// Context returns a context for work that need not be finished. It ends when Close is called.
func (b *Background) Context() context.Context { return b.ctx }

// Go calls f in a goroutine of its own. Close waits until f has ended. A panic of f is logged, and
// ends only f.
func (b *Background) Go(f func()) { b.running.Go(func() { b.recoverFrom(f) }) }

// Loop is Go for a function that runs until there is nothing left to do. After a panic it calls f
// again, until Close.
func (b *Background) Loop(f func()) {
	b.running.Go(func() {
		for b.recoverFrom(f) && b.Pause(panicRest) {
			continue
		}
	})
}

// recoverFrom calls f, logs a panic of f, and reports whether f panicked.
func (b *Background) recoverFrom(f func()) (panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			panicked = true
			b.log.Error("background work panicked", "err", v, "stack", string(debug.Stack()))
		}
	}()
	f()
	return false
}

// Pause waits for d, and reports whether work may continue. It returns false once Close was
// called.
func (b *Background) Pause(d time.Duration) bool { return b.pauseOr(d, nil) }

// pauseOr is Pause, but a message on wake ends it early.
func (b *Background) pauseOr(d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-b.closing:
		return false
	default:
	}
	select {
	case <-b.closing:
		return false
	case <-wake:
	case <-t.C:
	}
	return true
}

// stop ends every pause, and the Context.
func (b *Background) stop() { b.once.Do(func() { close(b.closing); b.cancel() }) }

// Close ends every pause, and the Context, and waits for the running work. The fault is Busy when
// ctx ends first.
func (b *Background) Close(ctx context.Context) error {
	b.stop()
	ended := make(chan struct{})
	go func() { b.running.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Busy, "inbound work did not end in time", ctx.Err())
	}
}
