// Package db opens the databases of an instance, and does the work that needs several of them.
// Only this package and the packages below it use PostgreSQL. They give no pool or connection to
// other packages.
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
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Config says on which server the databases are, how they are named, and how they are used.
type Config struct {
	URL              string     // of the server, as pgx reads it; a database named in it is ignored
	Name             string     // of the instance database, and the prefix of all other names; "lightweb" when empty
	Template         string     // the database from which users' databases are cloned; when empty, its name is made from Name and the schema's version
	InstanceTemplate string     // the database from which the instance database is cloned; when empty, the migrations make the instance database
	MaxConnections   int        // the limit for all users' databases together; 64 when 0
	Migrate          bool       // whether Open migrates an instance schema that is behind; if false, Open refuses it
	Repair           bool       // whether Open, if Migrate is true, repeats a change of the instance schema that was interrupted
	Types            user.Types // the types of activities
	Metrics          prometheus.Registerer
	Migrations       fs.FS // when nil, the migrations of this binary
}

// Cluster is one PostgreSQL server with the instance database and the users' databases on it.
type Cluster struct {
	*user.Databases // the databases of the users
	Instance        *instance.Database

	server *postgres.Server
	schema *schema.Databases
	pool   *pool.Pool
	log    *slog.Logger
}

// Open connects to the server, makes the instance database if it is missing, and checks its
// schema. The fault is Unavailable when the server does not answer, and Config when c.URL is not
// valid. It is also Config when the schema of the instance database is newer than that of this
// binary, is older while c.Migrate is false, or has an interrupted change that is not repaired.
func Open(ctx context.Context, c Config, log *slog.Logger) (*Cluster, error) {
	server, err := postgres.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 64
	}
	databases := schema.New(server, schema.Config{Name: c.Name, Template: c.Template, Migrations: c.Migrations})
	cl := &Cluster{server: server, schema: databases, log: log}
	if err := databases.Prepare(ctx, schema.Preparing{Template: c.InstanceTemplate, Migrate: c.Migrate, Repair: c.Repair}); err != nil {
		return nil, err
	}
	if cl.Instance, err = instance.Open(ctx, c.URL, server, databases); err != nil {
		return nil, err
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry() // nobody reads it
	}
	cl.pool = pool.New(c.MaxConnections, databases.Connect, log, c.Metrics)
	cl.Databases = user.New(databases, cl.pool, c.Types, log, c.Metrics)
	return cl, nil
}

// Reach returns the server and the schema of the databases. Only packages below db call it.
func (c *Cluster) Reach() (*postgres.Server, *schema.Databases) { return c.server, c.schema }

// Close waits for the running queries, and closes every connection.
func (c *Cluster) Close() {
	c.Databases.Close()
	c.pool.Close()
	c.Instance.Close()
}

// CreateUserDatabase makes the database of u with the latest schema. If the database exists
// already, CreateUserDatabase migrates it to that schema.
func (c *Cluster) CreateUserDatabase(ctx context.Context, u vocab.Username) error {
	defer c.pool.Retry(c.schema.OfUser(u))
	return c.schema.CreateUser(ctx, u)
}

// DropUserDatabase drops the database of u with all its data, if it exists. It also drops the
// databases of u that restores have put aside or left unfinished. While a restore runs, it leaves
// the unfinished databases to that restore, which drops them when it ends.
func (c *Cluster) DropUserDatabase(ctx context.Context, u vocab.Username) error {
	if err := c.schema.DropUser(ctx, u); err != nil {
		return err
	}
	release, err := c.Instance.Locks.Restore(ctx)
	if fault.KindOf(err) == fault.Busy {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return c.schema.DropUnfinished(ctx, u)
}

// Destroy drops the instance database and every user's database with all their data, and the
// template that is named after this instance. The Cluster must not be used afterwards.
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

// Beside limits how many connections an instance uses in addition to those to users' databases.
// These are the connections to the instance database, one for the lock of the serving process,
// and those of commands that run meanwhile.
const Beside = instance.MaxConnections + 8

// leastConns is the least number of connections to users' databases that an instance needs. It
// gives each class of use one connection.
const leastConns = 4

// Fit lowers the limit of connections to the number for which the server has room, but to no fewer
// than leastConns. It logs a warning if the new limit is lower than the configured one, and if the
// server's settings risk committed data.
func (c *Cluster) Fit(ctx context.Context) error {
	limits, err := c.Instance.ReadServerLimits(ctx)
	if err != nil {
		return err
	}
	// The reserved connections are for the server's administrator, even if the role may use them.
	room := limits.MaxConnections - limits.Reserved
	if limits.OfRole >= 0 {
		room = min(room, limits.OfRole)
	}
	used := max(leastConns, room-Beside)
	if wanted := c.pool.LowerLimit(used); wanted > used {
		c.log.WarnContext(ctx, "server takes fewer connections than configured", "max_connections", limits.MaxConnections, "reserved", limits.Reserved, "role_limit", limits.OfRole,
			"database.max_connections", wanted, "beside", Beside, "used", used, "hint", "raise max_connections of PostgreSQL, or lower database.max_connections")
	}
	return c.warnOfLoss(ctx)
}

// warnOfLoss logs which settings of the server risk committed data.
func (c *Cluster) warnOfLoss(ctx context.Context) error {
	s, err := c.Instance.ReadDurability(ctx)
	if err != nil {
		return err
	}
	if s.CommitsEarly {
		c.log.WarnContext(ctx, "synchronous_commit is off on the server; the engine's own commits wait for the disk", "hint", "set synchronous_commit of PostgreSQL to on")
	}
	if s.NoSync {
		c.log.WarnContext(ctx, "fsync is off on the server: a power failure can destroy the databases", "hint", "set fsync of PostgreSQL to on")
	}
	return nil
}
