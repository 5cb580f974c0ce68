package db

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
)

// job is work that one process per instance does at a time.
type job struct {
	key  int64         // of its advisory lock
	name string        // the command
	wait time.Duration // for another process that does it; 0: not at all
}

var (
	migrateJob  = job{key: 7305808869232649, name: "lightweb db migrate"}
	restoreJob  = job{key: 7305808869232648, name: "lightweb restore"}
	pruneJob    = job{key: 7305808869232647, name: "lightweb prune"}
	acquaintJob = job{key: 7305808869232646, name: "lightweb db acquaint"}
	retryJob    = job{key: 7305808869232645, name: "lightweb deliver retry"}
)

// lockJob makes this process the one that does the job, until release is called. The fault is Busy, and names the other
// process, when one does it already.
func (c *Cluster) lockJob(ctx context.Context, j job) (release func(), err error) {
	conn, holder, err := c.tryLock(ctx, j)
	if err != nil {
		return nil, err
	}
	if holder != "" {
		return nil, fault.New(fault.Busy, holder).WithHint("try again when it is done")
	}
	return func() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock_all()`) // so that who comes next need not wait for the session's end
		postgres.Shut(conn)
	}, nil
}

// tryLock takes the lock of a job over a connection that bears the job's name. When another process has the lock there is
// no connection, but a sentence that names the holder.
func (c *Cluster) tryLock(ctx context.Context, j job) (conn *pgx.Conn, holder string, err error) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	cfg := c.server.Config(c.schema.Name())
	cfg.RuntimeParams["application_name"] = fmt.Sprintf("%s, process %d on %s", j.name, os.Getpid(), host)
	if conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, "", postgres.Fault("open instance database", err)
	}
	var got bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, j.key).Scan(&got); err != nil {
		postgres.Shut(conn)
		return nil, "", postgres.Fault("lock instance", err)
	}
	if !got && j.wait > 0 {
		if got, err = awaitLock(ctx, conn, j); err != nil {
			postgres.Shut(conn)
			return nil, "", postgres.Fault("lock instance", err)
		}
	}
	if got {
		return conn, "", nil
	}
	defer postgres.Shut(conn)
	var application, since string
	err = conn.QueryRow(ctx, `SELECT coalesce(application_name, ''), coalesce(to_char(backend_start, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'long ago')
		FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 1
		AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid::bigint << 32 | objid::bigint = $1`, j.key).Scan(&application, &since)
	name, process, ours := strings.Cut(application, ", ")
	if err != nil || !ours { // it has just ended, or cannot be seen
		return nil, "another process keeps '" + j.name + "' from running", nil
	}
	other := "another "
	if name != j.name {
		other = ""
	}
	return nil, other + "'" + name + "' runs (" + process + ", since " + since + ")", nil
}

// awaitLock waits for the lock of a job, and tells whether the session got it in time.
func awaitLock(ctx context.Context, conn *pgx.Conn, j job) (bool, error) {
	if _, err := conn.Exec(ctx, `SELECT set_config('lock_timeout', $1, false)`, strconv.FormatInt(max(j.wait.Milliseconds(), 1), 10)); err != nil {
		return false, err
	}
	_, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, j.key)
	if postgres.HasCode(err, "55P03") { // lock_not_available
		return false, nil
	}
	return err == nil, err
}
