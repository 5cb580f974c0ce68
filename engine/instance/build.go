package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

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

// openDatabases starts the private database server unless another server is configured, and
// opens the databases on it. c says how to treat the schema of the instance database.
func (in *Instance) openDatabases(ctx context.Context, c db.Config) error {
	if err := makeDataDir(in.Config.DataDir); err != nil {
		return fault.New(fault.Config, "data_dir: "+err.Error()).WithHint("set data_dir to a folder you may write to")
	}
	c.URL, c.Name, c.Template = in.Config.Database.URL.Reveal(), in.Config.Database.Name, in.Config.Database.Template
	c.MaxConnections, c.Metrics = in.Config.Database.MaxConnections, in.Metrics
	c.Types = handler.StoredTypes()
	if c.URL == "" {
		var err error
		if in.Postgres, err = embedded.Open(ctx, embedded.Config{Dir: in.Config.DataDir,
			Connections: c.MaxConnections + db.Beside, Log: in.Log.With("component", "postgres")}); err != nil {
			return err
		}
		c.URL, c.Migrate = in.Postgres.ConnString(), true
	}
	var err error
	in.DB, err = db.Open(ctx, c, in.Log.With("component", "db"))
	return err
}

// makeDataDir creates the data directory with mode 0711 if it is missing. PostgreSQL may run as
// another account, so other accounts may pass through the directory, but they may not list it.
// An existing directory keeps its mode.
func makeDataDir(dir string) error {
	_, err := os.Stat(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o711); err != nil || !missing {
		return err
	}
	return os.Chmod(dir, 0o711) // the umask may have taken bits away
}

// build makes the parts that need no network.
func (in *Instance) build() error {
	c := in.Config
	in.Keys = actor.NewKeyring(c.UsersDir, c.DataDir, c.PublicURL)
	in.Keys.Log = in.Log.With("component", "actor")
	in.Registry = registry.New(c.DataDir, c.UsersDir, in.Log)
	var err error
	if in.Gate, err = NewGate(c, in.Registry, in.Log); err != nil {
		return err
	}
	in.Local = actor.NewLocal(c.PublicURL, in.Keys, in.Registry, "lightweb/"+c.Version)
	if c.Pages && !c.IsSecure() {
		in.Local.OfferPages()
	}
	first, err := signature.ParseDialect(c.Federation.SignatureFirst)
	if err != nil {
		return err
	}
	in.hosts = newHosts(in.DB.Instance.Hosts, in.Log, in.Now)
	in.Client = transport.New(transport.Config{
		AllowAddresses: c.Federation.AllowAddresses, AllowHTTP: c.Federation.AllowHTTP,
		UserAgent: fmt.Sprintf("Lightweb/%s (+%s)", c.Version, c.PublicURL),
		First:     first, Timeout: c.Delivery.Timeout, HostConns: c.Delivery.HostConcurrency, Registerer: in.Metrics,
		Paused: in.IsPaused(),
	}, in.Gate, in.hosts)
	in.Actors = actor.NewResolver(actor.ResolverDeps{
		Fetch: in.Client, Users: in.DB.Instance.Users, Store: in.DB.Instance.Actors, Keeper: in.DB.Instance.Actors, Local: in.Local, Gate: in.Gate, TTL: c.Cache.ActorTTL, AllowHTTP: c.Federation.AllowHTTP,
		KeyRate: c.Limits.KeyFetchRate.policy(), Now: in.Now,
		Log: in.Log.With("component", "actor"),
	})
	in.Verifier = actor.NewVerifier(in.Actors, in.Gate, c.PublicURL, in.Now)
	in.Relays = relay.NewList(relay.Deps{Store: in.DB.Instance.Relays, Actor: in.Local.InstanceID(), Keys: in.Keys.Instance, Poster: in.Client, Gate: in.Gate,
		Log: in.Log.With("component", "relay"), Now: in.Now})
	in.Handlers = handler.New(in.Local, in.Registry)
	return nil
}

// NewGate returns a gate that applies the mode of c and the policy file that r reads. While the
// file is broken, its last good version applies, and an error is logged. The fault is Config if
// the file was never valid.
func NewGate(c Config, r *registry.Registry, log *slog.Logger) (*policy.Gate, error) {
	if _, err := r.Server(); err != nil { // without the blocked domains nothing may be accepted or sent
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

// MakeKeys creates the keys of the instance actor if they are missing and the instance has no
// user. Once the instance has had a user, peers know the keys. Then missing keys are an error,
// and the fault is Config.
func (in *Instance) MakeKeys(ctx context.Context) error {
	_, err := in.Keys.Instance()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	users, err := in.DB.Instance.Users.All(ctx)
	if err != nil {
		return err
	}
	if len(users) == 0 {
		return in.Keys.CreateInstance()
	}
	// Another process may have created the keys and a user since the first look.
	_, err = in.Keys.Instance()
	return err
}
