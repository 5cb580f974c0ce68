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

// preparation is work in Go that must be done before a certain change of the schema. In a
// database that has the change, the work has been done. No engine uses a database that lacks the
// change, because the schema of such a database is behind. If the work is interrupted, it is done
// again from the beginning.
type preparation struct {
	set, change string // the change is in the file NNNN_change.up.sql
	do          func(ctx context.Context, conn *pgx.Conn) error
}

// writtenIDs is the change of users' databases that RespellUser prepares.
const writtenIDs = "written_ids"

func preparations() []preparation {
	return []preparation{
		{Instance, "canonical_ids", respellInstance},
		{User, writtenIDs, RespellUser},
	}
}

// versionOf returns the version to which a change leads, 0 when the set has no such change.
func versionOf(all fs.FS, set, change string) int {
	names, err := fs.Glob(all, set+"/*_"+change+".up.sql")
	if err != nil || len(names) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(strings.SplitN(path.Base(names[0]), "_", 2)[0]) // never fails, because the name of every migration begins with its number
	return n
}

// lacks reports whether a database with the version v lacks the change. It is false for a database
// without any change, and for a dirty one.
func (d *Databases) lacks(v Version, set, change string) bool {
	return v.Number > 0 && !v.Dirty && v.Number < versionOf(d.migrations, set, change)
}

// prepare does the preparations of the changes that a database lacks. Ahead of each preparation
// it makes all changes of the schema that come before the change to prepare. It does nothing for
// a database that is being made, because such a database has no data yet.
func (d *Databases) prepare(ctx context.Context, database, set string) error {
	conn, err := d.server.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	if err := keepSession(ctx, conn); err != nil {
		return err
	}
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
