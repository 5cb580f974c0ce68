// Package schema makes, migrates, checks and drops the databases of an instance, which are the
// instance database and one database for each user.
package schema

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

// The two sets of migrations.
const (
	User     = "user"
	Instance = "instance"
)

// Config says how the databases of an instance are named and made.
type Config struct {
	Name       string // of the instance database, and the prefix of all other names; "lightweb" when empty
	Template   string // the database from which users' databases are cloned; when empty, its name is made from Name and the schema's version
	Migrations fs.FS  // the migrations of this binary when nil
}

// Databases are the databases of one instance.
type Databases struct {
	server     *postgres.Server
	name       string
	template   string
	migrations fs.FS
}

// New returns the databases of an instance on a server. It does not make any database.
func New(server *postgres.Server, c Config) *Databases {
	d := &Databases{server: server, name: c.Name, template: c.Template, migrations: c.Migrations}
	if d.name == "" {
		d.name = "lightweb"
	}
	if d.migrations == nil {
		d.migrations = migrations.FS
	}
	if d.template == "" {
		d.template = fmt.Sprintf("%s-template-%d", d.name, d.Latest(User))
	}
	return d
}

// Name returns the name of the instance database.
func (d *Databases) Name() string { return d.name }

// Template returns the name of the database from which users' databases are cloned.
func (d *Databases) Template() string { return d.template }

// OfUser returns the name of the database of u. Usernames have no hyphen, so this name differs
// from those of the template, and of databases that are being built or were put aside.
func (d *Databases) OfUser(u vocab.Username) string { return d.name + "_" + u.String() }

// Latest returns the version to which the migrations of a set lead.
func (d *Databases) Latest(set string) int { return latest(d.migrations, set) }

// latest returns the highest version in a set, whose files are named NNNN_title.up.sql.
func latest(all fs.FS, set string) int {
	names, err := fs.Glob(all, set+"/*.up.sql")
	if err != nil || len(names) == 0 {
		panic("schema: no migrations are embedded")
	}
	n, err := strconv.Atoi(strings.SplitN(strings.TrimPrefix(names[len(names)-1], set+"/"), "_", 2)[0])
	if err != nil {
		panic("schema: a migration's name has no number: " + err.Error())
	}
	return n
}

// Connect opens a connection to a user's database. It refuses a database that Check refuses.
func (d *Databases) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	conn, err := d.Reach(ctx, database)
	if err != nil {
		return nil, err
	}
	postgres.ReadAsWritten(conn)
	v, err := readUser(ctx, conn)
	if err == nil {
		err = d.Check(database, v)
	}
	if err == nil {
		err = postgres.CommitDurably(ctx, conn)
	}
	if err != nil {
		_ = conn.Close(ctx) // an error does not matter, because the connection is given up
		return nil, err
	}
	return conn, nil
}

// Reach opens a connection to a user's database, and does not check its schema.
func (d *Databases) Reach(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg := d.server.Config(database)
	// A new database has the template's statistics until autovacuum runs, so the planner takes its
	// tables for empty. A plan made then would go on scanning whole tables after they have grown.
	cfg.RuntimeParams["enable_seqscan"] = "off"
	// The plan does not depend on a statement's arguments, so each statement is planned only once.
	cfg.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	cfg.RuntimeParams["jit"] = "off" // with enable_seqscan off, a scan that cannot be avoided looks expensive enough to compile
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if postgres.HasCode(err, "3D000") { // no such database
		return nil, postgres.UserFault(err, restore)
	}
	return conn, postgres.Fault("open database "+database, err)
}

// restore is the hint for a user's database that is missing or unreadable.
const restore = "lightweb restore FILE --user NAME, out of a backup"

// Look reads the version of a user's database.
func (d *Databases) Look(ctx context.Context, database string) (Version, error) {
	conn, err := d.Reach(ctx, database)
	if err != nil {
		return Version{}, err
	}
	defer postgres.Shut(conn)
	return readUser(ctx, conn)
}

func readUser(ctx context.Context, conn *pgx.Conn) (Version, error) {
	v, err := Read(ctx, conn)
	if ctx.Err() != nil {
		return v, postgres.Fault("read schema of "+conn.Config().Database, err) // ctx has ended, so err says nothing about the database
	}
	if err != nil {
		return v, postgres.UserFault(fmt.Errorf("read schema of %s: %w", conn.Config().Database, err), restore)
	}
	return v, nil
}

// Check refuses a user's database whose version is not that of this binary, or whose last change
// was interrupted.
func (d *Databases) Check(database string, v Version) error {
	known := d.Latest(User)
	command := "lightweb db migrate " + strings.TrimPrefix(database, d.name+"_")
	switch {
	case v.Number > known:
		return postgres.UserFault(fmt.Errorf("%s has schema %d, newer than this lightweb knows (%d)", database, v.Number, known), "run the newer lightweb that migrated it")
	case v.Dirty:
		return postgres.UserFault(fmt.Errorf("the change of %s to schema %d did not end", database, v.Number), command+" --repair")
	case v.Number < known:
		return postgres.UserFault(fmt.Errorf("%s has schema %d, this lightweb needs %d", database, v.Number, known), command)
	}
	return nil
}

// checkInstance refuses an instance database whose schema version is not that of this binary, or
// whose last change was interrupted. If p.Migrate is true, it migrates an older version, and with
// p.Repair it repeats the interrupted change.
func (d *Databases) checkInstance(ctx context.Context, p Preparing) error {
	known := d.Latest(Instance)
	conn, err := pgx.ConnectConfig(ctx, d.server.Config(d.name))
	if err != nil {
		return postgres.Fault("open instance database", err)
	}
	defer postgres.Shut(conn)
	v, err := settle(ctx, conn, repairable(p.Migrate && p.Repair, known))
	if err != nil {
		return postgres.Fault("read the instance schema", err)
	}
	switch {
	case v.Number > known:
		return fault.New(fault.Config, fmt.Sprintf("the instance database has schema %d, newer than this lightweb knows (%d)", v.Number, known)).
			WithHint("run the newer lightweb that migrated it")
	case v.Dirty:
		return fault.New(fault.Config, fmt.Sprintf("the change of the instance database to schema %d did not end", v.Number)).
			WithCode(codeBehind).WithHint("lightweb db migrate --repair")
	case v.Number < known && !p.Migrate:
		return fault.New(fault.Config, fmt.Sprintf("the instance database has schema %d, this lightweb needs %d", v.Number, known)).
			WithCode(codeBehind).WithHint("lightweb db migrate")
	case v.Number < known:
		return d.MigrateUp(ctx, d.name, Instance)
	}
	return nil
}

// codeBehind marks the fault of an instance database that only needs to be migrated or repaired.
const codeBehind = "instance_behind"

// IsBehind reports whether err says that Prepare refused an instance database only because
// Migrate or Repair was false.
func IsBehind(err error) bool { f := fault.Of(err); return f != nil && f.Code == codeBehind }
