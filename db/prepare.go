package db

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// preparation is work in Go that must be done before a change of the schema relies on it. That the change is made says that
// the work is done. Until then the schema is behind, so no engine uses the database; the work may be done any number of times.
type preparation struct {
	set, change string // the change is in the file NNNN_change.up.sql
	do          func(ctx context.Context, conn *pgx.Conn) error
}

func preparations() []preparation {
	return []preparation{
		{instanceSet, "canonical_ids", respellInstance},
		{userSet, "written_ids", respellUser},
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

// lacks tells whether a database that is there has a schema from before the change.
func (c *Cluster) lacks(s schema, set, change string) bool {
	return s.version > 0 && !s.dirty && s.version < versionOf(c.migrations, set, change)
}

// prepare does what must be done before the changes that a database lacks. A database that is being made holds nothing yet.
func (c *Cluster) prepare(ctx context.Context, database, set string) error {
	conn, err := pgx.ConnectConfig(ctx, c.config(database))
	if err != nil {
		return storeFault("open database "+database, err)
	}
	defer shut(conn)
	s, err := schemaOf(ctx, conn)
	if hasCode(err, "42P01") { // undefined table
		return nil
	}
	if err != nil {
		return storeFault("read schema of "+database, err)
	}
	for _, p := range preparations() {
		if p.set != set || !c.lacks(s, set, p.change) {
			continue
		}
		if before := versionOf(c.migrations, set, p.change) - 1; s.version < before {
			if err := c.migrateTo(ctx, database, set, before); err != nil {
				return err
			}
			s.version = before
		}
		if err := p.do(ctx, conn); err != nil {
			return storeFault("prepare database "+database, err)
		}
	}
	return nil
}
