package dbtest

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

// second is the migration of the next release. It fails in a database that already has a table
// "extra". It waits while the table "feed" is locked.
const second = "ALTER TABLE feed ADD COLUMN extra integer;\nCREATE TABLE extra (n integer) -- no semicolon at its end"

// NextRelease returns the migrations of an imagined next release: the migrations of this release,
// and the migration in the constant second.
func NextRelease() fs.FS {
	all := fstest.MapFS{}
	err := fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := migrations.FS.ReadFile(path)
		all[path] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		panic(err)
	}
	all[fmt.Sprintf("user/%04d_extra.up.sql", Schema()+1)] = &fstest.MapFile{Data: []byte(second)}
	return all
}

// Upgraded returns a cluster with the migrations of NextRelease. This release made the databases
// of the cluster's users. The result cfg is the configuration of this release for the same
// cluster.
func Upgraded(t *testing.T, names ...string) (c *db.Cluster, cfg db.Config, users []vocab.Username) {
	t.Helper()
	cfg = Destroyed(t, Config(t))
	old := Connect(t, cfg)
	for _, name := range names {
		users = append(users, User(t, old, name))
	}
	cfg.Template = ""
	next := cfg
	next.Migrations = NextRelease()
	template := fmt.Sprintf("%s-template-%d", cfg.Name, Schema()+1)
	t.Cleanup(func() { Run(t, "postgres", `DROP DATABASE IF EXISTS "`+template+`"`) })
	return Connect(t, next), cfg, users
}
