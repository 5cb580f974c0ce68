package schema

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
)

// preparation is work in Go that must be done before a change of the schema relies on it. A
// database that has the change has the work done. Until then its schema is behind, so no engine
// uses it; the work may be done any number of times.
type preparation struct {
	set, change string // the change is in the file NNNN_change.up.sql
	do          func(ctx context.Context, conn *pgx.Conn) error
}

// writtenIDs is the change of users' databases before which their ids become canonical.
const writtenIDs = "written_ids"

func preparations() []preparation {
	return []preparation{
		{Instance, "canonical_ids", respellInstance},
		{User, writtenIDs, RespellUser},
	}
}

// versionOf returns the version that a change makes, 0 when the set has no such change.
func versionOf(all fs.FS, set, change string) int {
	names, err := fs.Glob(all, set+"/*_"+change+".up.sql")
	if err != nil || len(names) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(strings.SplitN(path.Base(names[0]), "_", 2)[0]) // as latest has read them all
	return n
}

// lacks reports whether a database that is there has a schema from before the change.
func (d *Databases) lacks(v Version, set, change string) bool {
	return v.Number > 0 && !v.Dirty && v.Number < versionOf(d.migrations, set, change)
}

// prepare does the work that must be done before the changes that a database lacks. A database
// that is being made holds nothing yet.
func (d *Databases) prepare(ctx context.Context, database, set string) error {
	conn, err := d.server.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	v, err := Read(ctx, conn)
	if postgres.HasCode(err, "42P01") { // undefined table
		return nil
	}
	if err != nil {
		return postgres.Fault("read schema of "+database, err)
	}
	for _, p := range preparations() {
		if p.set != set || !d.lacks(v, set, p.change) {
			continue
		}
		if last := versionOf(d.migrations, set, p.change) - 1; v.Number < last {
			if err := d.migrateTo(ctx, database, set, last); err != nil {
				return err
			}
			v.Number = last
		}
		if err := p.do(ctx, conn); err != nil {
			return postgres.Fault("prepare database "+database, err)
		}
	}
	return nil
}
