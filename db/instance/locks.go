package instance

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

// Locks keep processes from doing two jobs on the instance at the same time if these jobs exclude
// each other. Most locks let only one process at a time do a job.
type Locks struct {
	config  func() *pgx.ConnConfig // of the instance database
	journal Journal
}

// job is work on an instance that is done under a lock.
type job struct {
	key    int64         // of its advisory lock
	name   string        // the command
	wait   time.Duration // how long to wait while another process has the lock; 0: not at all
	shared bool          // several processes may have the lock at once, if the job of each is shared
}

// function returns the name of PostgreSQL's function that takes the lock of the job. The
// parameter exclusive is the name of the function for a job that is not shared.
func (j job) function(exclusive string) string {
	if j.shared {
		return exclusive + "_shared"
	}
	return exclusive
}

// The jobs. serveJob has no name here, because several commands take its lock.
var (
	serveJob    = job{key: 7305808869232650}
	migrateJob  = job{key: 7305808869232649, name: "lightweb db migrate"}
	restoreJob  = job{key: 7305808869232648, name: "lightweb restore"}
	pruneJob    = job{key: 7305808869232647, name: "lightweb prune"}
	acquaintJob = job{key: 7305808869232646, name: "lightweb db acquaint"}
	retryJob    = job{key: 7305808869232645, name: "lightweb deliver retry"}
	backupJob   = job{key: 7305808869232644, name: "lightweb backup", wait: backupWait, shared: true}
	removalJob  = job{key: 7305808869232644, name: "lightweb user delete"}
	rebuildJob  = job{key: 7305808869232643, name: "lightweb cache rebuild"}
)

// backupWait limits how long a backup waits for the removal of a user. It is longer than a
// removal may take.
const backupWait = 3 * time.Minute

// Migrate makes this process the only one that migrates users' databases, until release is called.
// If another process does that already, the fault is Busy and names that process.
func (l Locks) Migrate(ctx context.Context) (release func(), err error) {
	return l.lock(ctx, migrateJob)
}

// Restore makes this process the only one that restores, until release is called. If another
// process does that already, the fault is Busy and names that process.
func (l Locks) Restore(ctx context.Context) (release func(), err error) {
	return l.lock(ctx, restoreJob)
}

// Prune makes this process the only one that prunes, until release is called. If another process
// does that already, the fault is Busy and names that process.
func (l Locks) Prune(ctx context.Context) (release func(), err error) { return l.lock(ctx, pruneJob) }

// Rebuild makes this process the only one that rebuilds caches, until release is called. If another
// process does that already, the fault is Busy and names that process.
func (l Locks) Rebuild(ctx context.Context) (release func(), err error) {
	return l.lock(ctx, rebuildJob)
}

// Acquaint makes this process the only one that makes acquaintances again, until release is
// called. If another process does that already, the fault is Busy and names that process.
func (l Locks) Acquaint(ctx context.Context) (release func(), err error) {
	return l.lock(ctx, acquaintJob)
}

// Retry makes this process the only one, besides the serving process, that sends deliveries, until
// release is called. If another process does that already, Retry waits for its end, but no longer
// than the duration in the parameter wait. Then the fault is Busy and names that process.
func (l Locks) Retry(ctx context.Context, wait time.Duration) (release func(), err error) {
	j := retryJob
	j.wait = wait
	return l.lock(ctx, j)
}

// Backup keeps users from being removed until release is called, so that a backup finds every user
// as its first snapshot shows them. Several processes may do that at once. If a user is being
// removed, Backup waits for the end of the removal. The fault is Busy when that takes too long.
func (l Locks) Backup(ctx context.Context) (release func(), err error) {
	return l.lock(ctx, backupJob)
}

// Removal makes this process the only one that removes a user, while no process makes a backup.
// If another process does either, the fault is Busy and names that process.
func (l Locks) Removal(ctx context.Context) (release func(), err error) {
	return l.lock(ctx, removalJob)
}

// Quiet takes the lock of Serve if it is free, so that no process serves the instance until
// release is called. The result "quiet" is true if Quiet has taken the lock and the journal is
// empty. Then no activity of another server enters a user's database until release is called. If
// another process has the lock, release does nothing.
func (l Locks) Quiet(ctx context.Context) (release func(), quiet bool, err error) {
	release, _, err = l.Serve(ctx, acquaintJob.name)
	if fault.KindOf(err) == fault.Conflict {
		return func() {}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if quiet, err = l.journal.IsEmpty(ctx); err != nil {
		release()
		return nil, false, err
	}
	return release, quiet, nil
}

// IsQuiet reports whether Quiet would find the instance quiet now. It takes no lock, so its
// answer may be out of date at once.
func (l Locks) IsQuiet(ctx context.Context) (is bool, err error) {
	if served, err := l.IsServed(ctx); err != nil || served {
		return false, err
	}
	return l.journal.IsEmpty(ctx)
}

// Serve takes the lock of the serving process. No other process can serve the instance until
// release is called. Other processes see this process under the name in the parameter command. If
// another process has the lock, the fault is Conflict and names that process. Serve uses a
// connection of its own; the channel "lost" is closed when that connection ends. Serve also
// begins the next epoch. From then on, changes of the journal by a process of an earlier epoch
// have no effect.
func (l Locks) Serve(ctx context.Context, command string) (release func(), lost <-chan struct{}, err error) {
	j := serveJob
	j.name = command
	conn, holder, err := l.tryLock(ctx, j)
	if err != nil {
		return nil, nil, err
	}
	if holder != "" {
		return nil, nil, fault.New(fault.Conflict, holder).WithHint("stop it, or wait until it is done: one process at a time serves an instance")
	}
	if err := l.journal.beginEpoch(ctx, conn); err != nil {
		_ = conn.Close(ctx) // which releases the lock
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.WaitForNotification(ctx) // there are no notifications: it returns when the connection ends or release is called
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		unlock(closing, conn)
		_ = conn.Close(closing)
	}()
	return func() { cancel(); <-gone }, gone, nil
}

// beginEpoch begins the next epoch, so that a process that served before can no longer change the
// journal. The numbers of arrival continue above those of that process.
func (j Journal) beginEpoch(ctx context.Context, conn *pgx.Conn) error {
	var epoch int64
	if err := conn.QueryRow(ctx, `UPDATE serving SET epoch = epoch + 1 RETURNING epoch`).Scan(&epoch); err != nil {
		return postgres.Fault("begin an epoch", err)
	}
	if err := j.continueNumbers(ctx, conn); err != nil {
		return err
	}
	j.epoch.Store(epoch)
	return nil
}

// IsServed reports whether a process has the lock of Serve.
func (l Locks) IsServed(ctx context.Context) (is bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, l.config())
	if err != nil {
		return false, postgres.Fault("open instance database", err)
	}
	defer postgres.Shut(conn)
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+held+`)`, serveJob.key).Scan(&is)
	return is, postgres.Fault("look for the process that serves", err)
}

// held selects the sessions that have the lock with the key $1.
const held = `pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 1
	AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND classid::bigint << 32 | objid::bigint = $1`

func (l Locks) lock(ctx context.Context, j job) (release func(), err error) {
	conn, holder, err := l.tryLock(ctx, j)
	if err != nil {
		return nil, err
	}
	if holder != "" {
		return nil, fault.New(fault.Busy, holder).WithHint("try again when it is done")
	}
	return func() {
		unlock(context.WithoutCancel(ctx), conn)
		postgres.Shut(conn)
	}, nil
}

// unlock releases the locks of a session, so that the next process need not wait until the server
// ends the session. It waits no longer than a second for a server that hangs, because the end of
// the connection releases the locks in any case.
func unlock(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, _ = conn.Exec(ctx, `SELECT pg_advisory_unlock_all()`)
}

// tryLock takes the lock of a job over a connection that bears the job's name. If another process
// has the lock, it returns no connection. Then holder is a sentence that names the other process.
func (l Locks) tryLock(ctx context.Context, j job) (conn *pgx.Conn, holder string, err error) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	cfg := l.config()
	cfg.RuntimeParams["application_name"] = fmt.Sprintf("%s, process %d on %s", j.name, os.Getpid(), host)
	if conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, "", postgres.Fault("open instance database", err)
	}
	if err := postgres.CommitDurably(ctx, conn); err != nil { // an epoch that is lost would be begun twice
		postgres.Shut(conn)
		return nil, "", err
	}
	var got bool
	if err := conn.QueryRow(ctx, `SELECT `+j.function("pg_try_advisory_lock")+`($1)`, j.key).Scan(&got); err != nil {
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
		FROM `+held, j.key).Scan(&application, &since)
	name, process, ours := strings.Cut(application, ", ")
	if err != nil || !ours { // the other process has just ended, or cannot be seen
		return nil, "another process keeps '" + j.name + "' from running", nil
	}
	other := "another "
	if name != j.name {
		other = ""
	}
	return nil, other + "'" + name + "' runs (" + process + ", since " + since + ")", nil
}

// awaitLock waits for the lock of a job for at most j.wait, and reports whether it got the lock.
func awaitLock(ctx context.Context, conn *pgx.Conn, j job) (bool, error) {
	if _, err := conn.Exec(ctx, `SELECT set_config('lock_timeout', $1, false)`, strconv.FormatInt(max(j.wait.Milliseconds(), 1), 10)); err != nil {
		return false, err
	}
	_, err := conn.Exec(ctx, `SELECT `+j.function("pg_advisory_lock")+`($1)`, j.key)
	if postgres.HasCode(err, "55P03") { // lock_not_available
		return false, nil
	}
	return err == nil, err
}
