package engine

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/deletion"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/profile"
	"github.com/lightweb/lightweb/engine/search"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/wish"
)

// parts are the components that run while the engine serves.
type parts struct {
	inbox      *inbox.Inbox
	outbox     *outbox.Outbox
	feed       *feed.Reader
	threads    *thread.Reader
	search     *search.Searcher
	lookups    *policy.Limiter // limits the remote fetches that users' clients cause
	dispatcher *delivery.Dispatcher
	emitter    *event.Emitter
	sockets    *socket.Hub
	peers      *socket.Peers

	conversations *conversation.Registry
	members       *conversation.Members
	stock         *conversation.Stock
	warmer        conversation.Warmer

	profiles  *profile.Watcher
	deletions *deletion.Watcher
	wishes    *wish.Watcher
	public    *http.Server
	admin     *http.Server
}

// newParts makes the parts and wires them together.
func (e *Engine) newParts(ctx context.Context) (*parts, error) {
	in := e.in
	if err := in.OpenRedis(ctx, true); err != nil {
		return nil, err
	}
	cert := &certificate{cert: in.Config.TLS.Cert, key: in.Config.TLS.Key, log: in.Log.With("component", "server"), now: in.Now}
	in.Metrics.MustRegister(openReports{in}, newPausedGauge(in), newNotAfterGauge(cert))
	// The inbox and the deliveries use database connections of the class pool.Work. The requests
	// of users use those of the class pool.Owner.
	owners := in.DB.As(pool.Owner)
	p := &parts{inbox: in.NewInbox(in.Metrics)}
	p.dispatcher = e.newDispatcher(p.inbox)
	feeds, dropped := feed.Store(in.NewFeeds(owners)), func(context.Context, user.Commit) {}
	if cached := in.NewCachedFeeds(owners); cached != nil {
		feeds, dropped = cached, cached.Committed
	}
	p.feed = feed.New(feeds, in.Gate, in.Registry, in.Local)
	var s *server.Server // set before the emitter runs
	p.emitter = e.newEmitter(func(ctx context.Context, c user.Commit) {
		dropped(ctx, c)
		s.Committed(ctx, c)
	})
	p.peers = socket.NewPeers(socket.PeerDeps{People: in.Actors, Keys: in.Keys, Poster: in.Client, Log: in.Log.With("component", "socket"), Now: in.Now})
	p.sockets = socket.NewHub(socket.Deps{Store: owners, Streams: in.Keyspace.Events, Tokens: in.DB.Instance.Tokens, Local: in.Local, Profiles: in.Registry, Peers: p.peers, Log: in.Log.With("component", "socket"), Metrics: in.Metrics, Now: in.Now,
		OfUser: policy.SocketsOfUser})
	p.conversations = in.NewConversations(owners, in.Metrics)
	p.members = in.NewMembers(owners, p.conversations, in.Metrics)
	p.stock = conversation.NewStock(conversation.StockDeps{Store: in.DB, Owners: in.DB.Instance.Users, ID: in.Local.ID, Log: in.Log.With("component", "conversation"), Metrics: in.Metrics, Now: in.Now})
	p.warmer = conversation.Warmer{Registry: p.conversations, Store: in.DB.As(pool.Stranger), Users: in.DB.Instance.Users, Log: in.Log.With("component", "conversation")}
	p.outbox = outbox.New(outbox.Deps{
		Conversations: p.conversations, Members: p.members,
		Store: owners, Instance: e.in.DB.Instance, Local: in.Local, Actors: in.Actors, Stale: in.Actors, Objects: in.Actors, Handlers: in.Handlers, Gate: in.Gate, Keys: in.Keys, Profiles: in.Registry, Relays: in.Relays, Dispatcher: p.dispatcher,
		DeliverBlocks: in.Config.Federation.DeliverBlocks,
		Log:           in.Log.With("component", "outbox"), Metrics: in.Metrics, Now: in.Now,
	})
	p.lookups = policy.Lookups.Limiter(in.Now)
	p.threads = thread.New(thread.Deps{Store: owners, Local: in.Local, Profiles: in.Registry, Gate: in.Gate, Finder: p.outbox, Others: in.Actors, Lookups: p.lookups,
		Log: in.Log.With("component", "thread"), Now: in.Now})
	p.profiles = profile.NewWatcher(profile.Deps{Files: in.Registry, Users: in.DB.Instance.Users, Actors: in.Local, Teller: p.outbox, Log: in.Log.With("component", "profile"), Now: in.Now})
	p.deletions = deletion.NewWatcher(deletion.Deps{Users: in.DB.Instance.Users, Teller: p.outbox, Holder: in, Log: in.Log.With("component", "deletion"), Now: in.Now})
	p.wishes = wish.NewWatcher(wish.Deps{Wishes: in.DB.Instance.Wishes, Fulfiller: p.outbox, Log: in.Log.With("component", "wish"), Now: in.Now})
	p.search = search.New(search.Deps{Store: owners, Shower: p.threads, Gate: in.Gate, Log: in.Log.With("component", "search"), Now: in.Now})
	s, err := e.newServer(p)
	if err != nil {
		return nil, err
	}
	// Subscribers are notified of a commit in this order. The first one clears the cache,
	// because the others may read the new rows immediately.
	in.DB.Subscribe(user.Subscriber{Name: "cache", Committed: dropped}, user.Subscriber{Name: "pages", Committed: s.Committed},
		user.Subscriber{Name: "emitter", Committed: p.emitter.Committed}, user.Subscriber{Name: "sockets", Committed: p.sockets.Committed},
		user.Subscriber{Name: "dispatcher", Committed: p.dispatcher.Committed}, user.Subscriber{Name: "members", Committed: p.members.Committed},
		user.Subscriber{Name: "stock", Committed: p.stock.Committed})
	log := slog.NewLogLogger(in.Log.With("component", "server").Handler(), slog.LevelDebug) // gets the errors of broken connections
	p.public = &http.Server{Handler: s.Public(), ErrorLog: log, TLSConfig: &tls.Config{GetCertificate: cert.current}}
	p.admin = &http.Server{Handler: s.Admin(in.Config.AdminPprof), ErrorLog: log}
	server.Harden(p.public, in.Config.TrustedProxies)
	server.Harden(p.admin, nil)
	return p, nil
}

// newDispatcher makes the dispatcher. The dispatcher gives a delivery for a local user directly
// to the inbox, which is the parameter local.
func (e *Engine) newDispatcher(local *inbox.Inbox) *delivery.Dispatcher {
	in, c := e.in, e.in.Config
	return delivery.New(delivery.Deps{
		Store: in.DB, Users: in.DB.Instance.Users, Hosts: in.DB.Instance.Hosts, Due: in.DB.Instance.Deliveries, Poster: in.Client, Keys: in.Keys, Actors: in.Actors, Local: local, InboxOwner: in.Local.InboxOwner, Gate: in.Gate,
		Synchronization: in.Local.Synchronization, Paused: in.IsPaused(), Lasting: handler.LastingTypes(),
		Owner: delivery.Serving + rand.Text(), Concurrency: c.Delivery.Concurrency, HostConcurrency: c.Delivery.HostConcurrency, Drain: c.DrainTimeout,
		Log: in.Log.With("component", "delivery"), Metrics: in.Metrics, Now: in.Now,
	})
}

// dueUsers is the store of users. Its ListEventsDue returns the users whose databases another
// process has written to. For each of them it calls the function dropped, which clears the cached
// data of that user.
type dueUsers struct {
	instance.Users
	dropped func(context.Context, user.Commit)
}

// ListEventsDue implements event.Users.
func (d dueUsers) ListEventsDue(ctx context.Context) ([]instance.EventsDue, error) {
	all, err := d.Users.ListEventsDue(ctx)
	for _, due := range all {
		d.dropped(ctx, user.Commit{User: due.User, Touched: user.Touched{Everything: true}})
	}
	return all, err
}

// newEmitter makes the emitter of the users' events. When another process has written to a user's
// database, the function dropped is called for that user before the events are emitted.
func (e *Engine) newEmitter(dropped func(context.Context, user.Commit)) *event.Emitter {
	in, memory := e.in, e.in.Config.Events.Memory
	if in.Redis != nil {
		memory = in.Redis.EventsMemory()
	}
	return event.NewEmitter(event.Deps{Store: in.DB, Users: dueUsers{in.DB.Instance.Users, dropped}, Streams: in.Keyspace.Events, Keep: in.Config.Events.MaxLen, Memory: memory,
		Log: in.Log.With("component", "event"), Metrics: in.Metrics, Now: in.Now})
}

// runRedis runs the emitter until ctx ends. It also watches Redis, and keeps a private Redis
// running.
func (e *Engine) runRedis(ctx context.Context, emitter *event.Emitter) {
	var all sync.WaitGroup
	if e.in.Redis != nil {
		all.Go(func() { e.in.Redis.Supervise(ctx) })
	}
	all.Go(func() { e.in.Keyspace.Watch(ctx) })
	all.Go(func() { emitter.Run(ctx) })
	all.Wait()
}

// newServer makes the handlers of both listeners.
func (e *Engine) newServer(p *parts) (*server.Server, error) {
	in, c := e.in, e.in.Config
	openID, err := in.NewOpenID()
	if err != nil {
		return nil, err
	}
	return server.New(server.Deps{
		OpenID: openID,
		Store:  in.DB, Redis: in.Keyspace.Events, Local: in.Local, Verifier: in.Verifier, Clients: in.AddressLimiter(), Lookups: p.lookups, Inbox: p.inbox, Outbox: p.outbox, Feed: p.feed, Threads: p.threads, Search: p.search, Sockets: p.sockets, Conversations: p.conversations, Members: p.members,
		Profiles: in.Registry, Pictures: in.Registry, Gate: in.Gate, Version: c.Version, BodyLimit: c.Limits.Body, MLSBodyLimit: c.Limits.MLSBody, PageSize: c.Federation.PageSize,
		CORSOrigins:    c.API.CORSOrigins,
		SecureMode:     c.IsSecure(),
		TrustedProxies: c.TrustedProxies, Paused: in.IsPaused(), Ready: in.DB.Instance.Ping, EventsWait: func() bool { return !in.Keyspace.Events.IsUp() || p.emitter.IsRefused() },
		Log: in.Log.With("component", "server"), Metrics: in.Metrics, Now: in.Now,
	}), nil
}
