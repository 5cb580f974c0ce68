package engine

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/server"
)

// Serving says what a server that is ready stands for.
type Serving struct {
	Version, PublicURL  string
	Listen, AdminListen string // the addresses as bound
	Mode                string // "embedded" or "configured"
	Database            string // "PostgreSQL 15.19, private"
	DataDir             string
	Users               int
	Startup             time.Duration // since Open
}

// parts are what runs while the engine serves.
type parts struct {
	inbox      *inbox.Inbox
	outbox     *outbox.Outbox
	feed       *feed.Reader
	dispatcher *delivery.Dispatcher
	public     *http.Server
	admin      *http.Server
}

// Serve runs until ctx ends, then drains within the configured time. ready is called once, when
// requests are answered. The first part to end ends all. One process serves an instance:
// fault.Conflict when another one does.
func (e *Engine) Serve(ctx context.Context, ready func(Serving)) error {
	if e.in.Config.IsLocalOnly() {
		e.in.Log.InfoContext(ctx, "public_url is for trying only: no other machine reaches it", "public_url", e.in.Config.PublicURL,
			"hint", "set public_url before anybody writes anything: then it is for good")
	}
	if c := e.in.Config.TLS; c.Cert != "" {
		if _, err := tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
			return fault.New(fault.Config, "tls.cert and tls.key: "+err.Error()).WithHint("both are PEM files that lightweb may read, and belong together")
		}
	}
	public, err := listen(ctx, "listen", e.in.Config.Listen)
	if err != nil {
		return err
	}
	admin, err := listen(ctx, "admin_listen", e.in.Config.AdminListen)
	if err != nil {
		return errors.Join(err, public.Close())
	}
	return e.serve(ctx, e.parts(), public, admin, ready)
}

func listen(ctx context.Context, key, address string) (net.Listener, error) {
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

// serve starts the parts in order, waits, and stops them in reverse.
func (e *Engine) serve(ctx context.Context, p *parts, public, admin net.Listener, ready func(Serving)) error {
	release, lost, err := e.in.DB.LockServe(ctx, "lightweb serve")
	if err != nil {
		return errors.Join(err, public.Close(), admin.Close())
	}
	if err = e.in.CheckOrigin(ctx); err == nil { // from now on nobody changes it
		err = e.in.DB.Fit(ctx)
	}
	if err == nil {
		err = e.in.MakeKeys(ctx)
	}
	if err == nil {
		err = e.in.Relays.Refresh(ctx)
	}
	if err == nil {
		err = p.inbox.Start(ctx)
	}
	if err != nil {
		release()
		return errors.Join(err, public.Close(), admin.Close())
	}
	told := ctx
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// The lock is let go of last: who serves next takes over every lease.
	holding, letGo := context.WithCancel(context.WithoutCancel(ctx))
	defer letGo()
	var running sync.WaitGroup
	running.Go(func() { e.keepLock(holding, release, lost, end) })
	if e.in.Postgres != nil {
		running.Go(func() { e.in.Postgres.Supervise(ctx) })
	}
	running.Go(func() { e.nightly(ctx) })
	running.Go(func() { e.in.Relays.Run(ctx) })
	delivering, stopDelivering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDelivering()
	delivered := make(chan error, 1)
	go func() { delivered <- p.dispatcher.Run(delivering) }()
	running.Go(func() { ended(end, admin, p.admin.Serve(admin)) })
	running.Go(func() {
		if e.in.Config.TLS.Cert != "" {
			ended(end, public, p.public.ServeTLS(public, e.in.Config.TLS.Cert, e.in.Config.TLS.Key))
			return
		}
		ended(end, public, p.public.Serve(public))
	})
	if err := e.announce(ctx, public, admin, ready); err != nil {
		end(err)
	}
	<-ctx.Done()
	err = e.drain(p, stopDelivering, delivered)
	letGo()
	running.Wait()
	if told.Err() == nil { // nobody told us to stop: a part has ended
		err = errors.Join(context.Cause(ctx), err)
	}
	return err
}

// ended ends everything when a listener ends that nobody has stopped.
func ended(end context.CancelCauseFunc, l net.Listener, err error) {
	if !errors.Is(err, http.ErrServerClosed) {
		end(fmt.Errorf("answer on %s: %w", l.Addr(), err))
	}
}

// announce says that requests are answered.
func (e *Engine) announce(ctx context.Context, public, admin net.Listener, ready func(Serving)) error {
	s := Serving{Version: e.in.Config.Version, PublicURL: e.in.Config.PublicURL, Listen: public.Addr().String(), AdminListen: admin.Addr().String(),
		Mode: "configured", DataDir: e.in.Config.DataDir, Startup: time.Since(e.in.OpenedAt)}
	version, err := e.in.DB.ServerVersion(ctx)
	if err != nil {
		return err
	}
	s.Database = "PostgreSQL " + version
	if e.in.Postgres != nil {
		s.Mode = "embedded"
		s.Database += ", private"
	}
	if s.Users, err = e.in.DB.CountUsers(ctx); err != nil {
		return err
	}
	if e.in.IsPaused() {
		e.in.Log.WarnContext(ctx, "federation is paused", "hint", "set federation.mode to open, and start again, to take and send activities")
	}
	if ready != nil {
		ready(s)
	}
	return nil
}

// drain stops the parts: no new requests, those under way end, then the writers, then deliveries.
// What is owed to others lies in the databases.
func (e *Engine) drain(p *parts, stopDelivering func(), delivered <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.in.Config.DrainTimeout)
	defer cancel()
	stopDelivering()
	var errs []error
	if err := p.public.Shutdown(ctx); err != nil {
		errs = append(errs, fmt.Errorf("drain requests: %w", errors.Join(err, p.public.Close())))
	}
	p.outbox.Flush(ctx)
	if err := p.inbox.Close(ctx); err != nil {
		errs = append(errs, fmt.Errorf("drain inboxes: %w", err))
	}
	select {
	case err := <-delivered:
		errs = append(errs, err)
	case <-ctx.Done():
		errs = append(errs, fault.New(fault.Busy, "deliveries did not end in time; they go on at the next start"))
	}
	return errors.Join(append(errs, p.admin.Close())...)
}

// keepLock holds the serve lock until ctx ends. When the database restarts the lock is lost with
// its session, and taken again as soon as it answers; when another process was faster, this one
// ends.
func (e *Engine) keepLock(ctx context.Context, release func(), lost <-chan struct{}, end context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			release()
			return
		case <-lost:
		}
		e.in.Log.WarnContext(ctx, "database connection lost")
		var err error
		for {
			if release, lost, err = e.in.DB.LockServe(ctx, "lightweb serve"); err == nil || ctx.Err() != nil {
				break
			}
			if fault.KindOf(err) == fault.Conflict {
				end(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		if err != nil {
			return
		}
		e.in.Log.InfoContext(ctx, "database reached again")
	}
}

// parts makes what serves, wired together.
func (e *Engine) parts() *parts {
	e.in.Metrics.MustRegister(openReports{e.in}, newPausedGauge(e.in))
	p := &parts{}
	owners := e.in.DB.As(pool.Owner) // the inbox and the deliveries are pool.Work, and the server knows who asks
	p.inbox = e.in.NewInbox(e.in.Metrics)
	p.dispatcher = delivery.New(delivery.Deps{
		Store: e.in.DB, Poster: e.in.Client, Keys: e.in.Keys, Actors: e.in.Actors, Local: p.inbox, InboxOwner: e.in.Local.InboxOwner, Gate: e.in.Gate,
		Synchronization: e.in.Local.Synchronization,
		Paused:          e.in.IsPaused(), Lasting: handler.LastingTypes(), Owner: delivery.Serving + rand.Text(), Concurrency: e.in.Config.Delivery.Concurrency, HostConcurrency: e.in.Config.Delivery.HostConcurrency, Drain: e.in.Config.DrainTimeout,
		Log: e.in.Log.With("component", "delivery"), Metrics: e.in.Metrics, Now: e.in.Now,
	})
	e.in.DB.Subscribe(db.Subscriber{Name: "dispatcher", Committed: p.dispatcher.Committed})
	p.feed = feed.New(feed.NewDatabase(owners, e.in.Local.ID), e.in.Local, e.in.Gate, e.in.Registry, handler.HasEmoji)
	p.outbox = outbox.New(outbox.Deps{
		Store: owners, Local: e.in.Local, Actors: e.in.Actors, Handlers: e.in.Handlers, Gate: e.in.Gate, Keys: e.in.Keys, Relays: e.in.Relays, Dispatcher: p.dispatcher,
		DeliverBlocks: e.in.Config.Federation.DeliverBlocks,
		Log:           e.in.Log.With("component", "outbox"), Metrics: e.in.Metrics, Now: e.in.Now,
	})
	s := server.New(server.Deps{
		Store: e.in.DB, Local: e.in.Local, Verifier: e.in.Verifier, Clients: e.in.AddressLimiter(), Inbox: p.inbox, Outbox: p.outbox, Feed: p.feed,
		Profiles: e.in.Registry, Gate: e.in.Gate, Version: e.in.Config.Version, BodyLimit: e.in.Config.Limits.Body, PageSize: e.in.Config.Federation.PageSize,
		CORSOrigins:    e.in.Config.API.CORSOrigins,
		SecureMode:     e.in.Config.Federation.SecureMode || e.in.Config.Federation.Mode == "allowlist",
		TrustedProxies: e.in.Config.TrustedProxies, Paused: e.in.IsPaused(), Ready: e.in.DB.Ping, Log: e.in.Log.With("component", "server"), Metrics: e.in.Metrics, Now: e.in.Now,
	})
	broken := slog.NewLogLogger(e.in.Log.With("component", "server").Handler(), slog.LevelDebug) // what connections do wrong
	p.public = &http.Server{Handler: s.Public(), ErrorLog: broken}
	p.admin = &http.Server{Handler: s.Admin(e.in.Config.AdminPprof), ErrorLog: broken}
	server.Harden(p.public, e.in.Config.TrustedProxies)
	server.Harden(p.admin, nil)
	return p
}
