// Package db is the only door to PostgreSQL: the instance database, a database per user, every
// query, and migrating. No pool, connection or transaction leaves it.
package db

import (
	"context"
	"io/fs"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Config says which server the databases lie on, and how they are named.
type Config struct {
	URL              string // of the server, as pgx reads it; a database named in it is ignored
	Name             string // of the instance database and prefix of all others; "lightweb" when empty
	Template         string // from which users' databases are cloned; Name and the schema's version when empty
	InstanceTemplate string // from which the instance database is cloned; empty: its migrations make it
	MaxConnections   int    // to users' databases, all together; 64 when 0
	Migrate          bool   // bring the instance schema up to date at Open instead of refusing one that is behind
	Repair           bool   // with Migrate: make a change of the instance schema again that did not end
	Types            Types  // of activities
	Metrics          prometheus.Registerer
	Migrations       fs.FS // those of this binary when nil
}

// Cluster is one PostgreSQL server with the instance database and the users' databases on it.
type Cluster struct {
	Instance *instance.Database

	server      *postgres.Server
	schema      *schema.Databases
	pool        *pool.Pool
	types       Types
	subscribers *subscribers               // of commits in users' databases
	class       pool.Class                 // the use of this Cluster
	mayOpen     func(context.Context) bool // of strangers' work; nil: always
	took        *prometheus.HistogramVec   // by transactions
	log         *slog.Logger
}

// Open reaches the server, makes the instance database when there is none, and checks its schema.
// The fault is Unavailable when the server does not answer, Config when the schema is behind or
// ahead.
func Open(ctx context.Context, c Config, log *slog.Logger) (*Cluster, error) {
	server, err := postgres.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 64
	}
	databases := schema.New(server, schema.Config{Name: c.Name, Template: c.Template, Migrations: c.Migrations})
	cl := &Cluster{server: server, schema: databases, types: c.Types, subscribers: &subscribers{log: log}, log: log}
	if err := databases.Prepare(ctx, schema.Preparing{Template: c.InstanceTemplate, Migrate: c.Migrate, Repair: c.Repair}); err != nil {
		return nil, err
	}
	if cl.Instance, err = instance.Open(ctx, c.URL, server, databases); err != nil {
		return nil, err
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry() // nobody reads it
	}
	cl.took = newTransactionMetric(c.Metrics)
	cl.pool = pool.New(c.MaxConnections, databases.Connect, log, c.Metrics)
	return cl, nil
}

func newTransactionMetric(reg prometheus.Registerer) *prometheus.HistogramVec {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "lightweb_db_transaction_seconds",
		Help:    "Time of a transaction on a user's database, with the wait for a connection.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
	}, []string{"mode"})
	reg.MustRegister(took)
	return took
}

// As returns c for the use of a class; a Cluster that Open returned is for Work. Closing either
// closes both.
func (c *Cluster) As(class pool.Class) *Cluster {
	view := *c
	view.class = class
	return &view
}

// ForStrangers returns c for strangers. mayOpen says whether the work of a context may open a
// connection, which costs fifteen times a write; to use an open one it is not asked.
func (c *Cluster) ForStrangers(mayOpen func(context.Context) bool) *Cluster {
	view := c.As(pool.Stranger)
	view.mayOpen = mayOpen
	return view
}

// Close closes every connection. It waits for queries that are running.
func (c *Cluster) Close() {
	c.pool.Close()
	c.Instance.Close()
}

// CreateUserDatabase makes the database of u, unless that was done before. Then it brings the
// database up to date.
func (c *Cluster) CreateUserDatabase(ctx context.Context, u vocab.Username) error {
	defer c.pool.Retry(c.schema.OfUser(u))
	return c.schema.CreateUser(ctx, u)
}

// DropUserDatabase drops the database of u, with all it holds, if it is there.
func (c *Cluster) DropUserDatabase(ctx context.Context, u vocab.Username) error {
	return c.schema.DropUser(ctx, u)
}

// Destroy drops the instance database, every user's, with all they hold, and the template that has
// this instance's name. c is of no use afterwards.
func (c *Cluster) Destroy(ctx context.Context) error {
	users, err := c.Instance.Users.All(ctx)
	if err != nil {
		return err
	}
	c.Close()
	databases := make([]string, len(users))
	for n, u := range users {
		databases[n] = u.Database
	}
	return c.schema.Destroy(ctx, databases)
}

// Beside is how many connections an instance may use beside those to users' databases: to the
// instance database, for the lock of the process that serves, and for commands that run meanwhile.
const Beside = instance.MaxConnections + 8

// leastConns is how many connections to users' databases an instance needs for its classes of use.
const leastConns = 4

// Fit warns when the server has no room for the configured connections, and uses fewer then.
func (c *Cluster) Fit(ctx context.Context) error {
	limits, err := c.Instance.ReadServerLimits(ctx)
	if err != nil {
		return err
	}
	room := limits.MaxConnections - limits.Reserved // the reserved ones are for whoever must mend the server, also when the role may use them
	if limits.OfRole >= 0 {
		room = min(room, limits.OfRole)
	}
	used := max(leastConns, room-Beside)
	if wanted := c.pool.LowerLimit(used); wanted > used {
		c.log.WarnContext(ctx, "server takes fewer connections than configured", "max_connections", limits.MaxConnections, "reserved", limits.Reserved, "role_limit", limits.OfRole,
			"database.max_connections", wanted, "beside", Beside, "used", used, "hint", "raise max_connections of PostgreSQL, or lower database.max_connections")
	}
	return nil
}
