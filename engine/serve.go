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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/vocab"
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

// Serve runs until ctx ends, then drains within the configured time. ready is called once, when requests are answered.
// The first part to end ends all. One process serves an instance: fault.Conflict when another one does.
func (e *Engine) Serve(ctx context.Context, ready func(Serving)) error {
	if e.cfg.isForTrying() {
		e.log.InfoContext(ctx, "public_url is for trying only: no other machine reaches it", "public_url", e.cfg.PublicURL,
			"hint", "set public_url before anybody writes anything: then it is for good")
	}
	if c := e.cfg.TLS; c.Cert != "" {
		if _, err := tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
			return fault.New(fault.Config, "tls.cert and tls.key: "+err.Error()).WithHint("both are PEM files that lightweb may read, and belong together")
		}
	}
	public, err := listen(ctx, "listen", e.cfg.Listen)
	if err != nil {
		return err
	}
	admin, err := listen(ctx, "admin_listen", e.cfg.AdminListen)
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
	release, lost, err := e.db.LockServe(ctx, "lightweb serve")
	if err != nil {
		return errors.Join(err, public.Close(), admin.Close())
	}
	if err = e.checkOrigin(ctx); err == nil { // from now on nobody changes it
		err = e.db.Fit(ctx)
	}
	if err == nil {
		err = e.makeInstanceKeys(ctx)
	}
	if err == nil {
		err = e.relays.Refresh(ctx)
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
	if e.postgres != nil {
		running.Go(func() { e.postgres.Supervise(ctx) })
	}
	running.Go(func() { e.nightly(ctx) })
	running.Go(func() { e.relays.Run(ctx) })
	delivering, stopDelivering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDelivering()
	delivered := make(chan error, 1)
	go func() { delivered <- p.dispatcher.Run(delivering) }()
	running.Go(func() { ended(end, admin, p.admin.Serve(admin)) })
	running.Go(func() {
		if e.cfg.TLS.Cert != "" {
			ended(end, public, p.public.ServeTLS(public, e.cfg.TLS.Cert, e.cfg.TLS.Key))
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
	s := Serving{Version: e.cfg.Version, PublicURL: e.cfg.PublicURL, Listen: public.Addr().String(), AdminListen: admin.Addr().String(),
		Mode: "configured", DataDir: e.cfg.DataDir, Startup: time.Since(e.opened)}
	version, err := e.db.ServerVersion(ctx)
	if err != nil {
		return err
	}
	s.Database = "PostgreSQL " + version
	if e.postgres != nil {
		s.Mode = "embedded"
		s.Database += ", private"
	}
	if s.Users, err = e.db.CountUsers(ctx); err != nil {
		return err
	}
	if e.paused() {
		e.log.WarnContext(ctx, "federation is paused", "hint", "set federation.mode to open, and start again, to take and send activities")
	}
	if ready != nil {
		ready(s)
	}
	return nil
}

// drain stops the parts: no new requests, those under way end, then the writers, then deliveries. What is owed to others
// lies in the databases.
func (e *Engine) drain(p *parts, stopDelivering func(), delivered <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.DrainTimeout)
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

// keepLock holds the serve lock until ctx ends. When the database restarts the lock is lost with its session, and taken
// again as soon as it answers; when another process was faster, this one ends.
func (e *Engine) keepLock(ctx context.Context, release func(), lost <-chan struct{}, end context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			release()
			return
		case <-lost:
		}
		e.log.WarnContext(ctx, "database connection lost")
		var err error
		for {
			if release, lost, err = e.db.LockServe(ctx, "lightweb serve"); err == nil || ctx.Err() != nil {
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
		e.log.InfoContext(ctx, "database reached again")
	}
}

// parts makes what serves, wired together.
func (e *Engine) parts() *parts {
	p := &parts{}
	owners := e.db.As(db.Owner) // the inbox and the deliveries are db.Work, and the server knows who asks
	handlers := handler.New(e.local, e.profiles)
	p.inbox = e.newInbox(handlers, func(u vocab.Username) { p.dispatcher.Wake(u) }, e.metrics)
	p.dispatcher = delivery.New(delivery.Deps{
		Store: e.db, Poster: e.client, Keys: e.keys, Actors: e.actors, Local: p.inbox, InboxOwner: e.local.InboxOwner, Gate: e.gate,
		Synchronization: e.local.Synchronization,
		Paused:          e.paused(), Owner: delivery.Serving + rand.Text(), Concurrency: e.cfg.Delivery.Concurrency, HostConcurrency: e.cfg.Delivery.HostConcurrency, Drain: e.cfg.DrainTimeout,
		Log: e.log.With("component", "delivery"), Metrics: e.metrics, Now: e.now,
	})
	p.feed = feed.New(owners, e.local, e.gate, e.profiles)
	p.outbox = outbox.New(outbox.Deps{
		Store: owners, Local: e.local, Actors: e.actors, Handlers: handlers, Gate: e.gate, Keys: e.keys, Relays: e.relays, Queue: p.dispatcher,
		DeliverBlocks: e.cfg.Federation.DeliverBlocks,
		Log:           e.log.With("component", "outbox"), Metrics: e.metrics, Now: e.now,
	})
	s := server.New(server.Deps{
		Store: e.db, Local: e.local, Verifier: e.verifier, Clients: policy.InboxRequests.LimiterAt(limit(e.cfg.Limits.InboxAddressRate), e.now), Inbox: p.inbox, Outbox: p.outbox, Feed: p.feed,
		Profiles: e.profiles, Gate: e.gate, Version: e.cfg.Version, BodyLimit: e.cfg.Limits.Body, PageSize: e.cfg.Federation.PageSize,
		CORSOrigins:    e.cfg.API.CORSOrigins,
		SecureMode:     e.cfg.Federation.SecureMode || e.cfg.Federation.Mode == "allowlist",
		TrustedProxies: e.cfg.TrustedProxies, Paused: e.paused(), Ready: e.db.Ping, Log: e.log.With("component", "server"), Metrics: e.metrics, Now: e.now,
	})
	broken := slog.NewLogLogger(e.log.With("component", "server").Handler(), slog.LevelDebug) // what connections do wrong
	p.public = &http.Server{Handler: s.Public(), ErrorLog: broken}
	p.admin = &http.Server{Handler: s.Admin(e.cfg.AdminPprof), ErrorLog: broken}
	server.Harden(p.public, e.cfg.TrustedProxies)
	server.Harden(p.admin, nil)
	return p
}

// newInbox makes the inbound pipeline. wake is told of users who have something to deliver; reg may be nil.
func (e *Engine) newInbox(handlers *handler.Registry, wake func(vocab.Username), reg prometheus.Registerer) *inbox.Inbox {
	return inbox.New(inbox.Deps{
		Store: e.db, Local: e.local, Actors: e.actors, Verifier: e.verifier, Gate: e.gate,
		Hosts:    policy.HostRequests.LimiterAt(limit(e.cfg.Limits.InboxHostRate), e.now),
		Senders:  policy.ActorRequests.LimiterAt(limit(e.cfg.Limits.InboxActorRate), e.now),
		Handlers: handlers, Profiles: e.profiles, Relays: e.relays, Wake: wake, Heard: e.hosts.Heard,
		Log: e.log.With("component", "inbox"), Metrics: reg, Now: e.now,
	})
}
