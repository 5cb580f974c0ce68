// Package engine is the facade: an engine is opened, serves, is closed, and has a method for each administrative task.
// Whatever the command line can do, a test can do through it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/embedded"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Engine is an instance, opened: its stores are reached and its parts made. Nothing listens before Serve.
type Engine struct {
	cfg     Config
	log     *slog.Logger
	metrics *prometheus.Registry
	opened  time.Time
	now     func() time.Time

	postgres *embedded.Cluster // nil when database.url is set
	db       *db.Cluster
	keys     *actor.Keyring
	local    *actor.Local
	profiles *registry.Registry
	gate     *policy.Gate
	hosts    *hosts
	client   *transport.Client
	actors   *actor.Resolver
	verifier *actor.Verifier
	relays   *relay.List
}

// maxLimited is how many hosts, and how many actors, a rate limit tells apart.
const maxLimited = 50_000

// Open makes the engine ready: stores reached, the embedded ones started and migrated.
func Open(ctx context.Context, c Config, log *slog.Logger) (*Engine, error) {
	return openAtOrigin(ctx, c, db.Config{}, log)
}

func openAtOrigin(ctx context.Context, c Config, store db.Config, log *slog.Logger) (*Engine, error) {
	e, err := open(ctx, c, store, log)
	if err != nil {
		return nil, err
	}
	if err := e.keepOrigin(ctx); err != nil {
		return nil, errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	return e, nil
}

func open(ctx context.Context, c Config, store db.Config, log *slog.Logger) (*Engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: c, log: log, opened: time.Now(), now: time.Now, metrics: prometheus.NewRegistry()}
	e.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := e.openStore(ctx, store); err != nil {
		return nil, errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	if err := e.build(); err != nil {
		return nil, errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	return e, nil
}

// makeDataDir makes the data directory where there is none. Others may pass through it, as the account must that PostgreSQL
// runs as, and see nothing of what is in it. A folder that is there is left as its owner wants it.
func makeDataDir(dir string) error {
	_, err := os.Stat(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o711); err != nil || !missing {
		return err
	}
	return os.Chmod(dir, 0o711) // whatever the umask took away
}

// openStore starts the private cluster unless a server is configured, and opens the databases on it: c says what is done
// about the instance schema.
func (e *Engine) openStore(ctx context.Context, c db.Config) error {
	if err := makeDataDir(e.cfg.DataDir); err != nil {
		return fault.New(fault.Config, "data_dir: "+err.Error()).WithHint("set data_dir to a folder you may write to")
	}
	c.URL, c.Name, c.Template = e.cfg.Database.URL.Reveal(), e.cfg.Database.Name, e.cfg.Database.Template
	c.Types = handler.StoredTypes()
	c.MaxConnections, c.Metrics = e.cfg.Database.MaxConnections, e.metrics
	if c.URL == "" {
		var err error
		if e.postgres, err = embedded.Open(ctx, embedded.Config{Dir: e.cfg.DataDir,
			Connections: c.MaxConnections + db.Beside, Log: e.log.With("component", "postgres")}); err != nil {
			return err
		}
		c.URL, c.Migrate = e.postgres.ConnString(), true
	}
	var err error
	e.db, err = db.Open(ctx, c, e.log.With("component", "db"))
	return err
}

// build makes the parts that serving and administrative tasks share.
func (e *Engine) build() error {
	c := e.cfg
	e.keys = actor.NewKeyring(c.UsersDir, c.DataDir, c.PublicURL)
	e.keys.Log = e.log.With("component", "actor")
	e.profiles = registry.New(c.DataDir, c.UsersDir, e.log)
	var err error
	if e.gate, err = newGate(c, e.profiles, e.log); err != nil {
		return err
	}
	e.local = actor.NewLocal(c.PublicURL, e.keys, e.profiles, "lightweb/"+c.Version)
	first, err := signature.ParseDialect(c.Federation.SignatureFirst)
	if err != nil {
		return err
	}
	e.hosts = newHosts(e.db, e.log, e.now)
	e.client = transport.New(transport.Config{
		AllowAddresses: c.Federation.AllowAddresses, AllowHTTP: c.Federation.AllowHTTP,
		UserAgent: fmt.Sprintf("Lightweb/%s (+%s)", c.Version, c.PublicURL),
		First:     first, Timeout: c.Delivery.Timeout, HostConns: c.Delivery.HostConcurrency, Registerer: e.metrics,
		Paused: e.paused(),
	}, e.gate, e.hosts)
	e.actors = actor.NewResolver(actor.ResolverDeps{
		Fetch: e.client, Store: e.db, Local: e.local, Gate: e.gate, TTL: c.Cache.ActorTTL, AllowHTTP: c.Federation.AllowHTTP,
		KeyRate: limit(c.Limits.KeyFetchRate), Now: e.now,
		Log: e.log.With("component", "actor"),
	})
	e.verifier = actor.NewVerifier(e.actors, e.gate, c.PublicURL, e.now)
	e.relays = relay.NewList(relay.Deps{Store: e.db, Actor: e.local.InstanceID(), Keys: e.keys.Instance, Poster: e.client, Gate: e.gate,
		Log: e.log.With("component", "relay"), Now: e.now})
	e.metrics.MustRegister(openReports{e}, e.pausedGauge())
	return nil
}

// paused tells whether nothing is taken from other servers, nor sent to them or asked of them.
func (e *Engine) paused() bool { return e.cfg.Federation.Mode == "paused" }

// pausedGauge shows it to those who watch.
func (e *Engine) pausedGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lightweb_federation_paused",
		Help: "1 while federation.mode is paused, else 0.",
	}, func() float64 {
		if e.paused() {
			return 1
		}
		return 0
	})
}

// newGate returns the policy in force. While its file is broken the last good one holds, and the registry says so.
func newGate(c Config, r *registry.Registry, log *slog.Logger) (*policy.Gate, error) {
	if _, err := r.Server(); err != nil { // without its blocked domains nothing may be taken or sent
		return nil, fault.New(fault.Config, err.Error()).WithHint("mend the file, or remove it to block nobody")
	}
	mode := policy.Open
	if c.Federation.Mode == "allowlist" {
		mode = policy.Allowlist
	}
	return policy.NewGate(func() policy.Lists {
		s, err := r.Server()
		if err != nil {
			log.Error("policy not readable", "err", err)
		}
		return policy.Lists{Blocked: s.BlockedDomains, Allowed: s.AllowedDomains, Suspended: s.SuspendedActors}
	}, mode, vocab.ID(c.PublicURL).Host()), nil
}

func limit(r Rate) policy.Rate { return policy.Rate{PerSecond: r.Events, Burst: r.Burst} }

// Close lets go of everything Open took; the embedded cluster is stopped when nobody else uses it.
func (e *Engine) Close(ctx context.Context) error {
	if e.client != nil {
		e.client.Close()
	}
	if e.db != nil {
		e.db.Close()
	}
	if e.postgres != nil {
		return e.postgres.Close(ctx)
	}
	return nil
}

// id is what the facade shows of a user's actor.
func (e *Engine) id(u vocab.Username) vocab.ID { return e.local.ID(u) }
