// Package instance reads and writes the instance database. That database holds the data that does
// not belong in the database of one user, such as the list of users, remote actors, hosts, tokens,
// reports, relays, and the journal of accepted activities. The type Database has a field for each
// of these.
package instance

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// MaxConnections is the limit of connections to the instance database. lookupConns of them are
// reserved for Users.State, because other servers wait for the result of State, and this server
// may be waiting for these servers at the same time.
const (
	MaxConnections = 12
	lookupConns    = 2
)

// Database is the instance database.
type Database struct {
	Users         Users
	Acquaintances Acquaintances
	Actors        Actors
	Tokens        Tokens
	Passwords     Passwords
	Identities    Identities
	Hosts         Hosts
	Deliveries    Deliveries
	Journal       Journal
	Reports       Reports
	Relays        Relays
	Ignored       IgnoredRing
	Wishes        Wishes
	Locks         Locks

	on      conns
	lookups conns
}

// Open opens the instance database on a server. The parameter url is the URL of this server.
func Open(ctx context.Context, url string, server *postgres.Server, databases *schema.Databases) (*Database, error) {
	limit := new(atomic.Int64)
	all, err := openPool(ctx, url, server, databases.Name(), MaxConnections-lookupConns, limit)
	if err != nil {
		return nil, err
	}
	lookups, err := openPool(ctx, url, server, databases.Name(), lookupConns, limit)
	if err != nil {
		all.pool.Close()
		return nil, err
	}
	d := &Database{on: all, lookups: lookups}
	known := &active{}
	d.Users = Users{on: all, lookups: lookups, active: known, version: databases.Latest(schema.User), database: databases.OfUser}
	d.Acquaintances = Acquaintances{on: all, active: known}
	d.Actors, d.Tokens, d.Passwords, d.Identities, d.Hosts, d.Deliveries = Actors{all}, Tokens{all, &tokenLookups{on: all}}, Passwords{all}, Identities{all}, Hosts{all}, Deliveries{all}
	d.Reports, d.Relays, d.Ignored, d.Wishes = Reports{all}, Relays{all}, IgnoredRing{all}, Wishes{all}
	d.Journal = newJournal(all)
	d.Locks = Locks{config: func() *pgx.ConnConfig { return server.Config(databases.Name()) }, journal: d.Journal}
	return d, nil
}

// openPool returns a pool of connections to the instance database. The pool has at most a given
// number of connections.
func openPool(ctx context.Context, url string, server *postgres.Server, database string, most int32, limit *atomic.Int64) (conns, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return conns{}, fmt.Errorf("configure instance pool: %w", err)
	}
	cfg.ConnConfig = server.Config(database)
	cfg.MaxConns = most
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		postgres.ReadAsWritten(conn)
		return postgres.CommitDurably(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	return conns{pool, limit}, postgres.Fault("open instance database", err)
}

// LimitTransactions limits the time of each statement, and of each transaction other than those of
// InTx, whose context has no deadline. This time includes the wait for a connection. The process
// that serves sets a limit, so that statements to which PostgreSQL does not answer, as after a cut
// in the network, do not hold all connections until the system gives these up. Without a call, as
// in commands, there is no limit.
func (d *Database) LimitTransactions(limit time.Duration) { d.on.limit.Store(int64(limit)) }

// Close waits for the running queries, and closes every connection.
func (d *Database) Close() {
	d.lookups.pool.Close()
	d.on.pool.Close()
}

// Ping checks that the server answers.
func (d *Database) Ping(ctx context.Context) error {
	ctx, cancel := d.on.limited(ctx)
	defer cancel()
	return postgres.Fault("reach PostgreSQL", d.on.pool.Ping(ctx))
}

// ServerVersion returns the version of the server, such as "15.19".
func (d *Database) ServerVersion(ctx context.Context) (string, error) {
	var v string
	if err := d.on.QueryRow(ctx, `SHOW server_version`).Scan(&v); err != nil {
		return "", postgres.Fault("ask for the server's version", err)
	}
	v, _, _ = strings.Cut(v, " ")
	return v, nil
}

// SchemaVersion returns the version of the instance database's schema.
func (d *Database) SchemaVersion(ctx context.Context) (schema.Version, error) {
	v, err := schema.Read(ctx, d.on)
	return v, postgres.Fault("read the instance schema", err)
}

// ServerLimits are the numbers of connections that the server allows.
type ServerLimits struct {
	MaxConnections int
	Reserved       int // connections reserved for the server's administrator
	OfRole         int // the limit of the engine's role; negative if the role has none
}

// ReadServerLimits asks how many connections the server allows.
func (d *Database) ReadServerLimits(ctx context.Context) (l ServerLimits, err error) {
	err = d.on.QueryRow(ctx, `SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int +
		coalesce(current_setting('reserved_connections', true)::int, 0), rolconnlimit FROM pg_roles WHERE rolname = current_user`).
		Scan(&l.MaxConnections, &l.Reserved, &l.OfRole)
	return l, postgres.Fault("ask how many connections the server takes", err)
}

// Durability says which settings of the server risk committed data.
type Durability struct {
	CommitsEarly bool // the server, a database or a role has synchronous_commit = off
	NoSync       bool // the server has fsync = off
}

// ReadDurability asks how the server treats commits.
func (d *Database) ReadDurability(ctx context.Context) (s Durability, err error) {
	err = d.on.QueryRow(ctx, `SELECT current_setting('fsync') = 'off', (SELECT reset_val = 'off' FROM pg_settings WHERE name = 'synchronous_commit')
		OR EXISTS (SELECT FROM pg_db_role_setting WHERE 'synchronous_commit=off' = ANY(setconfig))`).Scan(&s.NoSync, &s.CommitsEarly)
	return s, postgres.Fault("ask how the server treats commits", err)
}

// InTx runs work in a transaction. Only db/dump, which copies tables without knowing their
// contents, and db/measure call it. LimitTransactions does not limit it.
func (d *Database) InTx(ctx context.Context, opts pgx.TxOptions, work func(pgx.Tx) error) error {
	return postgres.Fault("use the instance database", pgx.BeginTxFunc(ctx, d.on, opts, work))
}

// Origin returns the stored origin, with which every id of this instance begins; empty when none
// is stored.
func (d *Database) Origin(ctx context.Context) (string, error) {
	var origin string
	err := d.on.QueryRow(ctx, `SELECT public_url FROM origin`).Scan(&origin)
	if postgres.IsNoRows(err) {
		return "", nil
	}
	return origin, postgres.Fault("read the origin", err)
}

// SetOrigin stores origin if the stored origin equals old, and reports whether it did. If old is
// empty, it stores origin only if no origin is stored yet.
func (d *Database) SetOrigin(ctx context.Context, old, origin string) (bool, error) {
	query, args := `UPDATE origin SET public_url = $1, set_at = now() WHERE public_url = $2`, []any{origin, old}
	if old == "" {
		query, args = `INSERT INTO origin (public_url) VALUES ($1) ON CONFLICT DO NOTHING`, []any{origin}
	}
	tag, err := d.on.Exec(ctx, query, args...)
	return tag.RowsAffected() == 1, postgres.Fault("store the origin", err)
}

// names returns usernames as strings, for a query's argument.
func names(users []vocab.Username) []string {
	out := make([]string, len(users))
	for i, u := range users {
		out[i] = u.String()
	}
	return out
}

// texts returns ids as strings, for a query's argument.
func texts(ids []vocab.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}
