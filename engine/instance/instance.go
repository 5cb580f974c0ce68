// Package instance opens an instance: its databases, keys, policy, client and resolver. Both the
// serving engine and the operator's commands use an Instance.
package instance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/embedded"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/keyspace"
	redis "github.com/lightweb/lightweb/engine/keyspace/embedded"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/transport"
)

// Instance is an opened instance. Open sets its fields, except Redis and Keyspace, which
// OpenRedis sets. The fields do not change afterwards.
type Instance struct {
	Config   Config
	Log      *slog.Logger
	Metrics  *prometheus.Registry
	OpenedAt time.Time
	Now      func() time.Time

	Postgres *embedded.Cluster // nil when database.url is set
	DB       *db.Cluster
	Redis    *redis.Redis // nil when redis.url is set
	Keyspace *keyspace.Keyspace
	Keys     *actor.Keyring
	Local    *actor.Local
	Registry *registry.Registry
	Gate     *policy.Gate
	Client   *transport.Client
	Actors   *actor.Resolver
	Verifier *actor.Verifier
	Relays   *relay.List
	Handlers *handler.Registry

	hosts   *hosts
	serving serving
}

// Open opens an instance. It starts the private database server and migrates the instance database
// on it, unless database.url names another server. It refuses a public_url that cannot be the
// origin of the instance (see KeepOrigin). It also refuses to make a new database server for an
// instance whose databases are elsewhere.
func Open(ctx context.Context, c Config, log *slog.Logger) (*Instance, error) {
	return openAtOrigin(ctx, c, db.Config{}, log)
}

// OpenToMigrate opens an instance whose own schema may be behind. It brings that schema up to
// date. If repair is true, it does so even when an earlier change of the schema did not finish.
// If checkOnly is true, it leaves the schema as it is, and refuses a schema that is behind with an
// error for which IsBehind returns true. On the private database server it ignores checkOnly.
func OpenToMigrate(ctx context.Context, c Config, checkOnly, repair bool, log *slog.Logger) (*Instance, error) {
	return openAtOrigin(ctx, c, db.Config{Migrate: !checkOnly, Repair: repair && !checkOnly}, log)
}

// IsBehind reports whether err says that the instance was not opened because its own schema is
// behind, or because a change of that schema did not finish.
func IsBehind(err error) bool { return schema.IsBehind(err) }

// OpenToRestore opens an instance without giving it an origin, because a backup brings its own. If
// moves is true, the databases of the instance may be elsewhere, because the restore of a whole
// backup moves them to a new private database server.
func OpenToRestore(ctx context.Context, c Config, moves bool, log *slog.Logger) (*Instance, error) {
	if err := checkElsewhere(c); err != nil && !moves {
		return nil, err
	}
	return open(ctx, c, db.Config{}, log)
}

func openAtOrigin(ctx context.Context, c Config, store db.Config, log *slog.Logger) (*Instance, error) {
	if err := checkElsewhere(c); err != nil {
		return nil, err
	}
	in, err := open(ctx, c, store, log)
	if err != nil {
		return nil, err
	}
	err = in.checkData(ctx)
	if err == nil {
		err = in.KeepOrigin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close(context.WithoutCancel(ctx)))
	}
	if err := in.NoteServer(); err != nil { // such as an account that may not write there
		log.Warn("where the databases are is not noted: commands without database.url may make others", "err", err)
	}
	return in, nil
}

func open(ctx context.Context, c Config, store db.Config, log *slog.Logger) (*Instance, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	in := &Instance{Config: c, Log: log, Metrics: prometheus.NewRegistry(), OpenedAt: time.Now(), Now: time.Now}
	in.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	err := in.openDatabases(ctx, store)
	if err == nil {
		in.DB.Subscribe(user.Subscriber{Name: "serving process", Committed: in.tellServing})
		err = in.build()
	}
	if err != nil {
		return nil, errors.Join(err, in.Close(context.WithoutCancel(ctx)))
	}
	return in, nil
}

// Close releases everything that Open acquired. It stops the private servers unless another
// process uses them.
func (in *Instance) Close(ctx context.Context) error {
	in.serving.telling.Wait()
	if in.Client != nil {
		in.Client.Close()
	}
	if in.DB != nil {
		in.DB.Close()
	}
	err := in.closeRedis(ctx)
	if in.Postgres != nil {
		err = errors.Join(err, in.Postgres.Close(ctx))
	}
	return err
}

// IsPaused reports whether federation is paused: the instance accepts no activities, sends none,
// and fetches nothing.
func (in *Instance) IsPaused() bool { return in.Config.Federation.Mode == "paused" }

// NewInbox makes the inbound pipeline; reg may be nil.
func (in *Instance) NewInbox(reg prometheus.Registerer) *inbox.Inbox {
	return inbox.New(inbox.Deps{
		Store: in.DB, Local: in.Local, Actors: in.Actors, Verifier: in.Verifier, Gate: in.Gate,
		Hosts:    policy.HostRequests.LimiterAt(in.Config.Limits.InboxHostRate.policy(), in.Now),
		Senders:  policy.ActorRequests.LimiterAt(in.Config.Limits.InboxActorRate.policy(), in.Now),
		Handlers: in.Handlers, Profiles: in.Registry, Relays: in.Relays, Heard: in.hosts.Heard,
		BodyLimit: in.Config.Limits.Body,
		Log:       in.Log.With("component", "inbox"), Metrics: reg, Now: in.Now,
	})
}

// NewConversations makes a registry of the conversations that users host. If reg is nil, its
// metrics are registered nowhere.
func (in *Instance) NewConversations(databases *user.Databases, reg prometheus.Registerer) *conversation.Registry {
	inboxes := func(all []user.Destination) []user.Inbox {
		return delivery.SkipRefused(in.Gate, delivery.Destinations(all, nil, in.Local.InboxOwner))
	}
	return conversation.NewRegistry(conversation.Deps{Store: databases, Actors: in.Local, Finder: in.Actors, Rules: in.Registry, Inboxes: inboxes, Log: in.Log.With("component", "conversation"), Metrics: reg, Now: in.Now})
}

// NewMembers makes the part that serves this server's users as members of conversations. The
// parameter hosted is the registry of the conversations that these users host.
func (in *Instance) NewMembers(databases *user.Databases, hosted *conversation.Registry, reg prometheus.Registerer) *conversation.Members {
	return conversation.NewMembers(conversation.MemberDeps{Registry: hosted, Store: databases, Users: in.DB.Instance.Users, Local: in.Local, Hosts: in.Client, Keys: in.Keys, People: in.Actors, Gate: in.Gate,
		Log: in.Log.With("component", "conversation"), Metrics: reg, Now: in.Now})
}

// AddressLimiter makes the limiter that counts the inbox requests of each address.
func (in *Instance) AddressLimiter() *policy.Limiter {
	return policy.InboxRequests.LimiterAt(in.Config.Limits.InboxAddressRate.policy(), in.Now)
}
