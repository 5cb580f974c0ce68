// Package db is the only door to PostgreSQL: the instance database, a database per user, every query, and migrating.
// No pool, connection or transaction leaves it.
package db

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

// Config says which server the databases lie on, and how they are named.
type Config struct {
	URL              string // of the server, as pgx reads it; a database named in it is ignored
	Name             string // of the instance database and prefix of all others; "lightweb" when empty
	Template         string // what users' databases are cloned from; Name and the schema's version when empty
	InstanceTemplate string // what the instance database is cloned from; empty: it is made by its migrations
	MaxConnections   int    // to users' databases, all together; 64 when 0
	Migrate          bool   // bring the instance schema up to date at Open instead of refusing one that is behind
	Repair           bool   // with Migrate: make a change of the instance schema again that did not end
	Types            Types  // of activities
	Metrics          prometheus.Registerer

	migrations fs.FS // those of this binary when nil
}

// instanceConns bounds the connections to the instance database, beside those to users' databases. lookupConns of them do
// nothing but tell who is here: other servers wait for that, some of them while we wait for them.
const (
	instanceConns = 12
	lookupConns   = 2
)

// Cluster is one PostgreSQL server with the instance database and the users' databases on it.
type Cluster struct {
	name       string
	template   string
	migrations fs.FS
	base       *pgx.ConnConfig
	instance   instance
	lookups    instance // the same, for State
	users      *conns
	active     *active
	types      Types
	epoch      *atomic.Int64              // the one LockServe took; 0 in a process that does not serve
	arrivals   *atomic.Int64              // the number of the last activity that arrived
	class      Class                      // what this Cluster is used for
	mayOpen    func(context.Context) bool // of strangers' work; nil: always
	log        *slog.Logger
}

// Open reaches the server, makes the instance database when there is none, and checks its schema. The fault is
// Unavailable when the server does not answer, Config when the schema is behind or ahead.
func Open(ctx context.Context, c Config, log *slog.Logger) (*Cluster, error) {
	base, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, fault.New(fault.Config, "database.url is not a PostgreSQL URL").
			WithHint("use postgres://user@host:5432/ or leave it empty for the embedded default")
	}
	if c.Name == "" {
		c.Name = "lightweb"
	}
	if c.migrations == nil {
		c.migrations = migrations.FS
	}
	if c.Template == "" {
		c.Template = fmt.Sprintf("%s-template-%d", c.Name, latest(c.migrations, userSet))
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 64
	}
	if base.ConnectTimeout == 0 {
		base.ConnectTimeout = 5 * time.Second
	}
	base.RuntimeParams["application_name"] = "lightweb"
	base.RuntimeParams["timezone"] = "UTC"
	cl := &Cluster{name: c.Name, types: c.Types, template: c.Template, migrations: c.migrations, base: base, active: &active{}, epoch: &atomic.Int64{}, arrivals: &atomic.Int64{}, log: log}
	cl.arrivals.Store(firstArrival)
	if err := cl.prepareInstance(ctx, c); err != nil {
		return nil, err
	}
	if cl.instance.pool, err = cl.openInstance(ctx, c.URL, instanceConns-lookupConns); err != nil {
		return nil, err
	}
	if cl.lookups.pool, err = cl.openInstance(ctx, c.URL, lookupConns); err != nil {
		cl.instance.pool.Close()
		return nil, err
	}
	cl.users = newConns(c.MaxConnections, cl.connectUser, log, c.Metrics)
	return cl, nil
}

// openInstance returns a pool of up to so many connections to the instance database.
func (c *Cluster) openInstance(ctx context.Context, url string, conns int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("configure instance pool: %w", err)
	}
	cfg.ConnConfig = c.config(c.name)
	cfg.MaxConns = conns
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { readAsWritten(conn); return nil }
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	return pool, storeFault("open instance database", err)
}

// Close closes every connection. Queries under way are waited for.
func (c *Cluster) Close() {
	c.users.close()
	c.lookups.pool.Close()
	c.instance.pool.Close()
}

// Ping asks the server for a sign of life.
func (c *Cluster) Ping(ctx context.Context) error {
	if err := c.instance.pool.Ping(ctx); err != nil {
		return storeFault("reach PostgreSQL", err)
	}
	return nil
}

// ServerVersion returns the version of the server, such as "15.19".
func (c *Cluster) ServerVersion(ctx context.Context) (string, error) {
	var v string
	if err := c.instance.QueryRow(ctx, `SHOW server_version`).Scan(&v); err != nil {
		return "", storeFault("ask for the server's version", err)
	}
	v, _, _ = strings.Cut(v, " ")
	return v, nil
}

// config returns how to connect to one database.
func (c *Cluster) config(database string) *pgx.ConnConfig {
	cfg := c.base.Copy()
	cfg.Database = database
	return cfg
}

// readAsWritten lets the connection return times in UTC, whatever the zone of this machine is, and documents as they
// are: the server has checked them.
func readAsWritten(conn *pgx.Conn) {
	types := conn.TypeMap()
	types.RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
	types.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: readJSON}})
}

func readJSON(data []byte, into any) error {
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = slices.Clone(data)
		return nil
	}
	return json.Unmarshal(data, into)
}

// userDatabase names the database of u. No username holds a hyphen, so no user can be given the template or another's.
func (c *Cluster) userDatabase(u vocab.Username) string { return c.name + "_" + u.String() }

// connectUser opens a connection to a user's database and refuses one whose schema this binary does not know.
func (c *Cluster) connectUser(ctx context.Context, database string) (*pgx.Conn, error) {
	conn, err := c.reachUser(ctx, database)
	if err != nil {
		return nil, err
	}
	readAsWritten(conn)
	if err := c.checkUserSchema(ctx, conn); err != nil {
		_ = conn.Close(ctx) // it is given up anyway; err says why
		return nil, err
	}
	return conn, nil
}

// reachUser opens a connection to a user's database, whatever its schema.
func (c *Cluster) reachUser(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg := c.config(database)
	// A plan that was made while a new user's tables were empty would go on reading them whole long after they have grown:
	// the statistics are the template's until autovacuum comes by.
	cfg.RuntimeParams["enable_seqscan"] = "off"
	cfg.RuntimeParams["plan_cache_mode"] = "force_generic_plan" // which is the same one, but made once
	cfg.RuntimeParams["jit"] = "off"                            // what must be read whole now looks as dear as if compiling it paid
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if hasCode(err, "3D000") { // no such database
		return nil, userFault(err, restore)
	}
	return conn, storeFault("open database "+database, err)
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
		return storeFault("begin an epoch", err)
	}
	if err := c.continueArrivals(ctx, conn); err != nil {
		return err
	}
	c.epoch.Store(epoch)
	return nil
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
