// Package measure supports engine/bench, which alone imports it. It fills users' databases, counts
// the activities that arrived in them, and describes the PostgreSQL server and the events that
// Lightweb's sessions wait for.
package measure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Databases are the databases of an instance that is measured.
type Databases struct {
	instance *instance.Database
	schema   *schema.Databases
}

// New returns the databases of a cluster.
func New(c *db.Cluster) *Databases {
	_, databases := c.Reach()
	return &Databases{instance: c.Instance, schema: databases}
}

// CountReceived counts the activities of an actor that u has received, and how many of these are
// shown in the feed.
func (d *Databases) CountReceived(ctx context.Context, u vocab.Username, from vocab.ID) (activities, shown int, err error) {
	err = d.useDatabase(ctx, u, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT count(*), count(f.id) FROM activities a LEFT JOIN feed f ON f.activity_uri = a.uri AND f.actor_uri = a.actor_uri
			WHERE a.direction = 'inbound' AND a.actor_uri = $1`, from).Scan(&activities, &shown)
	})
	return activities, shown, postgres.Fault("count activities of "+u.String(), err)
}

// useDatabase runs work over a connection to the database of u.
func (d *Databases) useDatabase(ctx context.Context, u vocab.Username, work func(*pgx.Conn) error) error {
	conn, err := d.schema.Connect(ctx, d.schema.OfUser(u))
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	return work(conn)
}

// tidy vacuums and analyzes the database, as autovacuum would have done if the rows had come one
// by one.
func tidy(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `VACUUM (ANALYZE)`)
	return err
}
