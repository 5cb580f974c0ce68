package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/deletion"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/profile"
	"github.com/lightweb/lightweb/engine/wish"
)

// Serving describes a server that is ready.
type Serving struct {
	Version, PublicURL  string
	Listen, AdminListen string // the addresses as bound
	Mode                string // "embedded" or "configured"
	Database            string // "PostgreSQL 15.19, private"
	Redis               string // "Redis 7.0.15, private"
	DataDir             string
	Users               int
	Startup             time.Duration // the time since Open
}

// Serve serves until ctx ends, a listener fails, or another process has taken the serve lock. Then
// it lets the work under way end, within the configured drain timeout. It calls the function ready
// once, when it answers requests. Only one process may serve an instance. The fault is Conflict
// when another process serves it, or when the address of a listener is taken.
func (e *Engine) Serve(ctx context.Context, ready func(Serving)) error {
	if e.in.Config.IsLocalOnly() {
		e.in.Log.InfoContext(ctx, "public_url is for trying only: no other machine reaches it", "public_url", e.in.Config.PublicURL,
			"hint", "set public_url before anybody writes anything: then it is for good")
	}
	if err := e.in.Config.CheckCredentials(); err != nil {
		return err
	}
	public, err := listenOn(ctx, "listen", e.in.Config.Listen)
	if err != nil {
		return err
	}
	admin, err := listenOn(ctx, "admin_listen", e.in.Config.AdminListen)
	if err != nil {
		return errors.Join(err, public.Close())
	}
	p, err := e.newParts(ctx)
	if err != nil {
		return errors.Join(err, public.Close(), admin.Close())
	}
	return e.serveOn(ctx, p, public, admin, ready)
}

// listenOn listens on the address. The parameter key is the name of the setting that gives the
// address.
func listenOn(ctx context.Context, key, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.Wrap(fault.Conflict, fmt.Sprintf("%s: the address %s is taken", key, address), err).
			WithHint("stop who listens there ('ss -ltnp'), or set " + key + " to another address")
	}
	if err != nil {
		why := "is the address one of this machine's?"
		if errors.Is(err, fs.ErrPermission) {
			why = "take a port from 1024 on, or give lightweb CAP_NET_BIND_SERVICE"
		}
		return nil, fault.New(fault.Config, key+": "+err.Error()).WithHint(why)
	}
	return l, nil
}

// transactionTime is the time limit of a transaction in the instance database or in a user's
// database in the serving process, unless the work of the transaction sets another limit.
const transactionTime = 30 * time.Second

// serveOn starts the parts and waits until ctx ends, a listener fails, or another process has
// taken the serve lock. Then it drains and stops the parts.
func (e *Engine) serveOn(ctx context.Context, p *parts, public, admin net.Listener, ready func(Serving)) error {
	release, lost, err := e.prepareInstance(ctx, p)
	if err != nil {
		return errors.Join(err, public.Close(), admin.Close())
	}
	serving, err := e.describeServing(ctx, public, admin)
	if err != nil {
		release()
		return errors.Join(err, public.Close(), admin.Close())
	}
	e.in.DB.LimitTransactions(transactionTime)
	e.in.DB.Instance.LimitTransactions(transactionTime)
	caller := ctx
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// The lock is released last, because the next process that serves takes over the leases of
	// all deliveries, even of deliveries that still run here.
	holding, releaseLock := context.WithCancel(context.WithoutCancel(ctx))
	defer releaseLock()
	var running sync.WaitGroup
	running.Go(func() { e.keepLock(holding, release, lost, end) })
	if e.in.Postgres != nil {
		running.Go(func() { e.in.Postgres.Supervise(holding) }) // the drain needs the databases, too
	}
	emitting, stopEmitting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEmitting()
	running.Go(func() { e.runRedis(emitting, p.emitter) })
	running.Go(func() { p.sockets.Run(ctx) })
	running.Go(func() { p.peers.Run(ctx) })
	running.Go(func() { p.search.Run(ctx) })
	running.Go(func() { e.pruneNightly(ctx) })
	running.Go(func() { e.repeat(ctx, conversation.CountEvery, p.stock.LookAround) })
	running.Go(func() { e.repeat(ctx, profile.LookEvery, p.profiles.LookAround) })
	running.Go(func() { e.repeat(ctx, deletion.LookEvery, p.deletions.LookAround) })
	if !e.in.IsPaused() {
		running.Go(func() { e.repeat(ctx, wish.LookEvery, p.wishes.LookAround) })
	}
	running.Go(func() { e.in.Relays.Run(ctx) })
	delivering, stopDelivering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDelivering()
	delivered := make(chan error, 1)
	go func() { delivered <- p.dispatcher.Run(delivering) }()
	running.Go(func() { endWith(end, admin, p.admin.Serve(admin)) })
	running.Go(func() { endWith(end, public, e.servePublic(p, public)) })
	if e.in.IsPaused() {
		e.in.Log.WarnContext(ctx, "federation is paused", "hint", "set federation.mode to open, and start again, to take and send activities")
	}
	if serving.Startup = time.Since(e.in.OpenedAt); ready != nil {
		ready(serving)
	}
	running.Go(func() { p.warmer.WarmUp(ctx) })
	<-ctx.Done()
	err = e.drainParts(p, stopDelivering, delivered)
	stopEmitting()
	releaseLock()
	running.Wait()
	if caller.Err() == nil { // the caller did not stop the engine: a listener or the lock failed
		err = errors.Join(context.Cause(ctx), err)
	}
	return err
}

// repeat calls the function work immediately and then once in every interval, until ctx ends. A
// panic of work is logged, and ends only that call.
func (e *Engine) repeat(ctx context.Context, every time.Duration, work func(context.Context)) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		e.workRecovering(ctx, work)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (e *Engine) workRecovering(ctx context.Context, work func(context.Context)) {
	defer func() {
		if v := recover(); v != nil {
			e.in.Log.ErrorContext(ctx, "background work panicked", "err", v, "stack", string(debug.Stack()))
		}
	}()
	work(ctx)
}

// prepareInstance takes the serve lock and makes the instance ready to serve. No other process can
// change the origin until release is called. The channel lost is closed when the lock is lost.
func (e *Engine) prepareInstance(ctx context.Context, p *parts) (release func(), lost <-chan struct{}, err error) {
	if release, lost, err = e.in.DB.Instance.Locks.Serve(ctx, "lightweb serve"); err != nil {
		return nil, nil, err
	}
	for _, step := range []func(context.Context) error{
		e.in.CheckOrigin, e.in.DB.Fit, e.in.MakeKeys, e.in.Relays.Refresh, p.inbox.Start,
	} {
		if err := step(ctx); err != nil {
			release()
			return nil, nil, err
		}
	}
	return release, lost, nil
}

// servePublic answers requests on the public listener, with TLS if a certificate is set.
func (e *Engine) servePublic(p *parts, l net.Listener) error {
	if e.in.Config.TLS.Cert != "" {
		return p.public.ServeTLS(l, "", "") // its TLSConfig has the certificate
	}
	return p.public.Serve(l)
}

// endWith ends the engine when a listener fails. A listener that was shut down has not failed.
func endWith(end context.CancelCauseFunc, l net.Listener, err error) {
	if !errors.Is(err, http.ErrServerClosed) {
		end(fmt.Errorf("answer on %s: %w", l.Addr(), err))
	}
}

// describeServing describes the server. It asks the database before the parts start, so that a
// slow answer cannot end an engine that already serves.
func (e *Engine) describeServing(ctx context.Context, public, admin net.Listener) (s Serving, err error) {
	s = Serving{Version: e.in.Config.Version, PublicURL: e.in.Config.PublicURL, Listen: public.Addr().String(), AdminListen: admin.Addr().String(),
		Mode: "configured", DataDir: e.in.Config.DataDir, Redis: "Redis"}
	version, err := e.in.DB.Instance.ServerVersion(ctx)
	if err != nil {
		return s, err
	}
	s.Database = "PostgreSQL " + version
	if e.in.Postgres != nil {
		s.Mode = "embedded"
		s.Database += ", private"
	}
	if e.in.Redis != nil {
		s.Redis = e.in.Redis.Name()
	}
	s.Users, err = e.in.DB.Instance.Users.CountActive(ctx)
	return s, err
}

// flushTime is the least time that the events of the work under way have to be emitted at the end.
const flushTime = 2 * time.Second

// drainParts stops the parts within the drain timeout. It starts no further delivery, ends the
// sockets, and waits for requests, writers and deliveries under way. Then the dispatcher stores
// the outcomes that it knows and releases its leases, and the emitter emits the events that all
// parts have committed. Both have a few seconds of their own for that, since the drain timeout may
// be over. Unfinished deliveries stay in the databases, and clients get the events that they
// missed when they reconnect.
func (e *Engine) drainParts(p *parts, stopDelivering func(), delivered <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.in.Config.DrainTimeout)
	defer cancel()
	stopDelivering()
	var errs []error
	if err := p.sockets.Close(ctx); err != nil {
		errs = append(errs, fault.New(fault.Busy, "sockets did not end in time"))
	}
	if err := p.public.Shutdown(ctx); err != nil {
		errs = append(errs, fmt.Errorf("drain requests: %w", errors.Join(err, p.public.Close())))
	}
	if err := errors.Join(p.members.Close(ctx), p.conversations.Close(ctx)); err != nil {
		errs = append(errs, fault.New(fault.Busy, "conversations did not end in time"))
	}
	p.outbox.Flush(ctx)
	if err := p.inbox.Close(ctx); err != nil {
		errs = append(errs, fmt.Errorf("drain inboxes: %w", err))
	}
	errs = append(errs, <-delivered)
	flushing, end := context.WithDeadline(context.Background(), later(ctx, time.Now().Add(flushTime)))
	defer end()
	if err := p.emitter.Flush(flushing); err != nil {
		errs = append(errs, fault.New(fault.Busy, "events were not emitted in time; they are at the next start"))
	}
	return errors.Join(append(errs, p.admin.Close())...)
}

// later returns the deadline of ctx, or t if that is later.
func later(ctx context.Context, t time.Time) time.Time {
	if d, limited := ctx.Deadline(); limited && d.After(t) {
		return d
	}
	return t
}
