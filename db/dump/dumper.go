// Package dump copies the databases of an instance out for a backup, and back in when the backup is
// restored.
package dump

import (
	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/db/user"
)

// Dumper takes snapshots of the databases of an instance, and restores them.
type Dumper struct {
	server   *postgres.Server
	schema   *schema.Databases
	instance *instance.Database
	users    *user.Databases
}

// New returns the Dumper of an instance.
func New(c *db.Cluster) *Dumper {
	server, databases := c.Reach()
	return &Dumper{server: server, schema: databases, instance: c.Instance, users: c.Databases}
}
