package db

import (
	"context"
	"errors"
	"io/fs"

	"github.com/golang-migrate/migrate/v4"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

// Schema returns the version of users' databases that this binary knows.
func Schema() int { return schema.New(nil, schema.Config{}).Latest(schema.User) }

// WithMigrations returns c with other migrations than those of this binary.
func (c Config) WithMigrations(all fs.FS) Config { c.Migrations = all; return c }

// Exec runs any statement in a transaction.
func Exec(ctx context.Context, t *Tx, query string) error {
	_, err := t.exec(ctx, "test", query)
	return err
}

// AwaitLock runs a statement once another session of the database waits for a lock.
func AwaitLock(ctx context.Context, t *Tx, query string) error {
	for waiting := false; !waiting; {
		if err := Exec(ctx, t, `SELECT pg_stat_clear_snapshot()`); err != nil {
			return err
		}
		if err := t.row(ctx, "test", `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted
			AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database()))`, nil, &waiting); err != nil {
			return err
		}
	}
	return Exec(ctx, t, query)
}

// MigrateDown undoes every migration of a set.
func (c *Cluster) MigrateDown(database, set string) error {
	src, err := iofs.New(migrations.FS, set)
	if err != nil {
		return err
	}
	driver, err := pgxmigrate.WithInstance(stdlib.OpenDB(*c.server.Config(database)), &pgxmigrate.Config{})
	if err != nil {
		return err
	}
	m, err := migrate.NewWithInstance("iofs", src, "pgx5", driver)
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	err = m.Down()
	srcErr, dbErr := m.Close()
	return errors.Join(err, srcErr, dbErr)
}

// MigrateUp brings a database to the latest version of a set.
func (c *Cluster) MigrateUp(ctx context.Context, database, set string) error {
	return c.schema.MigrateUp(ctx, database, set)
}

// JobCounts counts the deliveries of a job by state.
func (t *Tx) JobCounts(ctx context.Context, job uuid.UUID) (JobCounts, error) {
	c, err := one[JobCounts](ctx, t, "count deliveries", `SELECT count(*), count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'delivered'),
		count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'skipped') FROM deliveries WHERE job_id = $1`, job)
	if err != nil {
		return JobCounts{}, err
	}
	return *c, nil
}

// CountReactions counts the reactions of a type to an object.
func (t *Tx) CountReactions(ctx context.Context, object vocab.ID, kind, reaction string) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM reactions WHERE object_uri = $1 AND kind = $2 AND type = $3`, object, kind, reaction)
}

// Unsent counts the activities that wait to be sent.
func Unsent(t *Tx) int { return len(t.unsent.activities) }

// KeptOfFollower is how many activities are kept of a follower that is no contact.
const KeptOfFollower = keptOfFollower

// ArrivedBy returns the id that rows have which arrived before t.
var ArrivedBy = arrivedBy

// RespellUser does again what was done before the change that relies on canonical ids.
func (c *Cluster) RespellUser(ctx context.Context, database string) error {
	conn, err := pgx.ConnectConfig(ctx, c.server.Config(database))
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	return schema.RespellUser(ctx, conn)
}

// The SQL form of audiences, over a document in raw.
var (
	AddressesPublic = addressesPublic
	Private         = privateIn("raw", "raw ->> 'attributedTo'", "$2::text")
	Named           = namedIn("raw", "$2::text")
	AddressesAny    = addressesAny
	Listed          = listed
)

// Holds tells whether a predicate holds for a document, raw in it.
func Holds(ctx context.Context, t *Tx, predicate string, raw []byte, args ...any) (is bool, err error) {
	err = t.row(ctx, "test", `SELECT coalesce(`+predicate+`, false) FROM (SELECT $1::jsonb AS raw) d`, append([]any{raw}, args...), &is)
	return is, err
}

// WriteTold is Write that returns what subscribers are to be told, instead of telling them.
func (c *Cluster) WriteTold(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) (*Commit, error) {
	return c.write(ctx, u, work)
}

// SubscriberTime is how long a writer waits for one subscriber.
const SubscriberTime = subscriberTime
