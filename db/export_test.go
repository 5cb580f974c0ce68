package db

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/golang-migrate/migrate/v4"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

// Schema returns the version of users' databases that this binary knows.
func Schema() int { return latest(migrations.FS, userSet) }

// WithMigrations returns c with other migrations than those of this binary.
func (c Config) WithMigrations(all fs.FS) Config { c.migrations = all; return c }

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
	driver, err := pgxmigrate.WithInstance(stdlib.OpenDB(*c.config(database)), &pgxmigrate.Config{})
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

// MigrateUp is migrateUp.
func (c *Cluster) MigrateUp(ctx context.Context, database, set string) error {
	return c.migrateUp(ctx, database, set)
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

// SetEpoch makes c believe that it serves in another epoch.
func (c *Cluster) SetEpoch(epoch int64) { c.epoch.Store(epoch) }

// TakeInstance takes every connection to the instance database that all others share, until the returned function.
func (c *Cluster) TakeInstance(ctx context.Context) (release func(), err error) {
	var taken []*pgxpool.Conn
	release = func() {
		for _, conn := range taken {
			conn.Release()
		}
	}
	for range instanceConns - lookupConns {
		conn, err := c.instance.Acquire(ctx)
		if err != nil {
			release()
			return nil, err
		}
		taken = append(taken, conn)
	}
	return release, nil
}

// RespellUser does again what was done before the change that relies on canonical ids.
func (c *Cluster) RespellUser(ctx context.Context, database string) error {
	conn, err := pgx.ConnectConfig(ctx, c.config(database))
	if err != nil {
		return err
	}
	defer shut(conn)
	return respellUser(ctx, conn)
}

// The SQL form of audiences, over a document in raw.
var (
	AddressesPublic = addressesPublic
	Private         = privateIn("raw", "$2::text")
	Named           = namedIn("raw", "$2::text")
	AddressesAny    = addressesAny
	Listed          = listed
)

// Holds tells whether a predicate holds for a document, raw in it.
func Holds(ctx context.Context, t *Tx, predicate string, raw []byte, args ...any) (is bool, err error) {
	err = t.row(ctx, "test", `SELECT coalesce(`+predicate+`, false) FROM (SELECT $1::jsonb AS raw) d`, append([]any{raw}, args...), &is)
	return is, err
}

// HeldColumns returns the columns of users' databases by which a user holds something of an actor, as table.column.
func HeldColumns() (all []string) {
	for _, h := range heldColumns {
		all = append(all, h.table+"."+h.column)
	}
	return all
}

// UnspelledColumns returns those of them that are older than canonical ids, and that are not brought to that form.
func UnspelledColumns() (all []string) {
	before := versionOf(migrations.FS, userSet, "written_ids")
	for _, h := range heldColumns {
		spelled := slices.ContainsFunc(spelledByUsers(), func(s spelled) bool { return s.table == h.table && s.column == h.column })
		if h.since < before && !spelled {
			all = append(all, h.table+"."+h.column)
		}
	}
	return all
}
