// Package db is the only door to PostgreSQL: the instance database, a database per user, every query, and migrating.
// No pool, connection or transaction leaves it.
package db

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
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

// instanceConns bounds the connections to the instance database, beside those to users' databases. lookupConns of them serve
// State alone: other servers wait for its answer, some of them while this one waits for them.
const (
	instanceConns = 12
	lookupConns   = 2
)

// Cluster is one PostgreSQL server with the instance database and the users' databases on it.
type Cluster struct {
	server      *postgres.Server
	schema      *schema.Databases
	pool        *pool.Pool
	instance    instance
	lookups     instance // the same, for State
	active      *active
	subscribers *subscribers // of commits in users' databases
	types       Types
	epoch       *atomic.Int64              // the one LockServe took; 0 in a process that does not serve
	arrivals    *atomic.Int64              // the number of the last activity that arrived
	class       pool.Class                 // the use of this Cluster
	mayOpen     func(context.Context) bool // of strangers' work; nil: always
	took        *prometheus.HistogramVec   // by transactions
	log         *slog.Logger
}

// Open reaches the server, makes the instance database when there is none, and checks its schema. The fault is
// Unavailable when the server does not answer, Config when the schema is behind or ahead.
func Open(ctx context.Context, c Config, log *slog.Logger) (*Cluster, error) {
	server, err := postgres.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 64
	}
	databases := schema.New(server, schema.Config{Name: c.Name, Template: c.Template, Migrations: c.Migrations})
	cl := &Cluster{server: server, schema: databases, active: &active{}, subscribers: &subscribers{log: log}, types: c.Types, epoch: &atomic.Int64{}, arrivals: &atomic.Int64{}, log: log}
	cl.arrivals.Store(firstArrival)
	if err := databases.Prepare(ctx, schema.Preparing{Template: c.InstanceTemplate, Migrate: c.Migrate, Repair: c.Repair}); err != nil {
		return nil, err
	}
	if cl.instance.pool, err = cl.openInstance(ctx, c.URL, instanceConns-lookupConns); err != nil {
		return nil, err
	}
	if cl.lookups.pool, err = cl.openInstance(ctx, c.URL, lookupConns); err != nil {
		cl.instance.pool.Close()
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

// As returns c for the use of a class; a Cluster that Open returned is for Work. Closing either closes both.
func (c *Cluster) As(class pool.Class) *Cluster {
	view := *c
	view.class = class
	return &view
}

// ForStrangers returns c for strangers. mayOpen says whether the work of a context may open a connection, which costs fifteen
// times a write; to use an open one it is not asked.
func (c *Cluster) ForStrangers(mayOpen func(context.Context) bool) *Cluster {
	view := c.As(pool.Stranger)
	view.mayOpen = mayOpen
	return view
}

// openInstance returns a pool of up to so many connections to the instance database.
func (c *Cluster) openInstance(ctx context.Context, url string, conns int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("configure instance pool: %w", err)
	}
	cfg.ConnConfig = c.server.Config(c.schema.Name())
	cfg.MaxConns = conns
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { postgres.ReadAsWritten(conn); return nil }
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	return pool, postgres.Fault("open instance database", err)
}

// Close closes every connection. Queries under way are waited for.
func (c *Cluster) Close() {
	c.pool.Close()
	c.lookups.pool.Close()
	c.instance.pool.Close()
}

// Ping asks the server for a sign of life.
func (c *Cluster) Ping(ctx context.Context) error {
	if err := c.instance.pool.Ping(ctx); err != nil {
		return postgres.Fault("reach PostgreSQL", err)
	}
	return nil
}

// ServerVersion returns the version of the server, such as "15.19".
func (c *Cluster) ServerVersion(ctx context.Context) (string, error) {
	var v string
	if err := c.instance.QueryRow(ctx, `SHOW server_version`).Scan(&v); err != nil {
		return "", postgres.Fault("ask for the server's version", err)
	}
	v, _, _ = strings.Cut(v, " ")
	return v, nil
}

// serveLock is the key of the advisory lock that one serving process per instance holds.
const serveLock = 7305808869232650

// LockServe makes this process the one that serves the instance, or keeps others from serving it, until the returned
// release is called; command says as what. The fault is Conflict, and names the other process, when another one has the
// lock. It holds a connection of its own; lost is closed when that connection ends. With the lock comes the next epoch:
// what a process of an earlier one does to the intake journal has no effect.
func (c *Cluster) LockServe(ctx context.Context, command string) (release func(), lost <-chan struct{}, err error) {
	conn, holder, err := c.tryLock(ctx, job{key: serveLock, name: command})
	if err != nil {
		return nil, nil, err
	}
	if holder != "" {
		return nil, nil, fault.New(fault.Conflict, holder).WithHint("stop it, or wait until it is done: one process at a time serves an instance")
	}
	if err := c.beginEpoch(ctx, conn); err != nil {
		_ = conn.Close(ctx) // with which the lock ends
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.WaitForNotification(ctx) // nobody notifies: it returns when the connection ends or release is called
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_, _ = conn.Exec(closing, `SELECT pg_advisory_unlock_all()`) // so that who comes next need not wait for the session's end
		_ = conn.Close(closing)                                      // with which the lock ends in any case
	}()
	return func() { cancel(); <-gone }, gone, nil
}

// beginEpoch fences off the process that served before, and counts on from what that one has taken in.
func (c *Cluster) beginEpoch(ctx context.Context, conn *pgx.Conn) error {
	var epoch int64
	if err := conn.QueryRow(ctx, `UPDATE serving SET epoch = epoch + 1 RETURNING epoch`).Scan(&epoch); err != nil {
		return postgres.Fault("begin an epoch", err)
	}
	if err := c.continueArrivals(ctx, conn); err != nil {
		return err
	}
	c.epoch.Store(epoch)
	return nil
}

// Beside is how many connections an instance may use beside those to users' databases: to the instance database, for the
// lock of who serves, and of commands that run meanwhile.
const Beside = instanceConns + 8

// leastConns is how many connections to users' databases an instance needs for its classes of use.
const leastConns = 4

// Fit makes sure that the server has room for the connections that are configured: it warns when not, and uses fewer.
func (c *Cluster) Fit(ctx context.Context) error {
	var takes, reserved, ofRole int
	err := c.instance.QueryRow(ctx, `SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int +
		coalesce(current_setting('reserved_connections', true)::int, 0), rolconnlimit FROM pg_roles WHERE rolname = current_user`).
		Scan(&takes, &reserved, &ofRole) // what is reserved is for whoever must mend the server, be we superuser or not
	if err != nil {
		return postgres.Fault("ask how many connections the server takes", err)
	}
	room := takes - reserved
	if ofRole >= 0 {
		room = min(room, ofRole)
	}
	used := max(leastConns, room-Beside)
	if wanted := c.pool.LowerLimit(used); wanted > used {
		c.log.WarnContext(ctx, "server takes fewer connections than configured", "max_connections", takes, "reserved", reserved, "role_limit", ofRole,
			"database.max_connections", wanted, "beside", Beside, "used", used, "hint", "raise max_connections of PostgreSQL, or lower database.max_connections")
	}
	return nil
}
