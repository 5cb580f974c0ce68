package db

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/holding"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Tx is a transaction on one user's database, valid only during the call it is given to. Its
// holder must not wait for the network, for Redis or for another database.
//
// Rows that are only added are sent with the next question, or with the commit: a batch of
// activities costs a few round trips, however many it holds. Errors of such a row
// show when it is sent.
type Tx struct {
	conn   *pgx.Conn
	heard  bool // the server has answered
	unsent unsent
	ahead  ahead
	types  Types

	// Told to subscribers after the commit.
	touched     Touched
	numbered    []Event
	owes        bool // deliveries were added
	leased      []Delivery
	leasedUntil time.Time
	behind      []Behind
	outcome     outcome
}

// maxTries bounds how often a transaction is run that loses against another one.
const maxTries = 5

// How a transaction begins.
const (
	beginWrite = `begin`
	beginRead  = `begin isolation level repeatable read read only`
)

// Write runs work in one transaction of u's database. It is run again when it loses against
// another transaction, so it must change nothing else. The fault is Unavailable when the database
// cannot be used. Before Write returns, the subscribers have heard what it committed.
func (c *Cluster) Write(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	commit, err := c.write(ctx, u, work)
	if commit != nil {
		c.subscribers.tell(ctx, *commit)
	}
	return err
}

// write is Write that returns what subscribers are to be told, nil when nothing was committed.
func (c *Cluster) write(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) (*Commit, error) {
	t, err := c.inTx(ctx, u, "write", beginWrite, work)
	return t.commitOf(u), err
}

// Read runs work on one consistent state of u's database, which it cannot change.
func (c *Cluster) Read(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	_, err := c.inTx(ctx, u, "read", beginRead, work)
	return err
}

// isConflict reports whether a transaction lost against another one, and may succeed when it is
// run again.
func isConflict(err error) bool {
	return postgres.IsConflict(err) || postgres.Violates(err, "objects_uri_key")
}

// txFault is postgres.Fault for a transaction that lost against others as often as it was run.
func txFault(attempt string, err error) error {
	if err != nil && fault.Of(err) == nil && isConflict(err) {
		err = fault.Wrap(fault.Busy, "others changed the same at the same time", err)
	}
	return postgres.Fault(attempt, err)
}

// inTx runs work in transactions until one ends otherwise than by losing against another one, and
// returns that one.
func (c *Cluster) inTx(ctx context.Context, u vocab.Username, mode, begin string, work func(context.Context, *Tx) error) (*Tx, error) {
	start := time.Now()
	defer func() { c.took.WithLabelValues(mode).Observe(time.Since(start).Seconds()) }()
	for try := 1; ; try++ {
		t, err := c.once(ctx, u, begin, work)
		if err == nil || !isConflict(err) || try == maxTries {
			return t, txFault(mode+" in database of "+u.String(), err)
		}
	}
}

// once runs work in a transaction, which does not outlive the call. A connection that died while
// it was idle, as all do when the server restarts, is replaced: nothing was done over it yet.
func (c *Cluster) once(ctx context.Context, u vocab.Username, begin string, work func(context.Context, *Tx) error) (*Tx, error) {
	for {
		t := &Tx{types: c.types, unsent: unsent{begin: begin}}
		if died, err := c.over(ctx, u, t, work); !died {
			return t, err
		}
	}
}

// over runs work in t over a connection of u's, and tells whether that one had died before.
func (c *Cluster) over(ctx context.Context, u vocab.Username, t *Tx, work func(context.Context, *Tx) error) (died bool, err error) {
	l, err := c.pool.Acquire(ctx, c.class, c.schema.OfUser(u), c.mayOpen)
	if err != nil {
		return false, err
	}
	defer c.pool.Release(l)
	t.conn = l.Conn()
	err = t.run(ctx, work)
	return err != nil && !t.heard && l.IsReused() && l.Conn().IsClosed() && ctx.Err() == nil, err
}

// run does the work and commits, or leaves nothing of it.
func (t *Tx) run(ctx context.Context, work func(context.Context, *Tx) error) error {
	err := work(holding.MarkHolder(ctx), t)
	if err == nil {
		err = t.commit(ctx)
	}
	if err != nil && !postgres.IsSettled(t.conn) {
		_, _ = t.conn.Exec(ctx, `rollback`) // release drops a connection it fails on
	}
	return err
}

// digest is what stands for an id where only equality counts: ids can be long.
func digest(id vocab.ID) []byte {
	d := sha256.Sum256([]byte(id.Canonical()))
	return d[:]
}

func digests(ids []vocab.ID) [][]byte {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = digest(id)
	}
	return out
}

// exec runs a statement that may change anything: what was read ahead counts no more, and readers
// may see everything otherwise.
func (t *Tx) exec(ctx context.Context, attempt, query string, args ...any) (int64, error) {
	t.ahead, t.touched.Everything = ahead{}, true
	return t.execBeside(ctx, attempt, query, args...)
}

// execBeside runs a statement that changes nothing of what is read ahead, no relationship and no
// object, and nothing that a reader may see, but what its caller forgets and touches.
func (t *Tx) execBeside(ctx context.Context, attempt, query string, args ...any) (n int64, err error) {
	b := t.unsent.batch()
	b.Queue(query, args...).Exec(func(tag pgconn.CommandTag) error { n = tag.RowsAffected(); return nil })
	err = t.send(ctx, attempt, b)
	return n, err
}

// query reads the rows of a statement.
func (t *Tx) query(ctx context.Context, attempt string, read func(pgx.Rows) error, query string, args ...any) error {
	b := t.unsent.batch()
	b.Queue(query, args...).Query(read)
	return t.send(ctx, attempt, b)
}

// row reads the one row of a statement.
func (t *Tx) row(ctx context.Context, attempt, query string, args []any, into ...any) error {
	b := t.unsent.batch()
	b.Queue(query, args...).QueryRow(func(r pgx.Row) error { return r.Scan(into...) })
	return t.send(ctx, attempt, b)
}

func (t *Tx) send(ctx context.Context, attempt string, b *pgx.Batch) error {
	err := t.conn.SendBatch(ctx, b).Close()
	t.heard = t.heard || !t.conn.IsClosed()
	return txFault(attempt, err)
}

// Lock makes the transaction wait for every other one on this database that locked the same thing,
// until they have ended; what it reads from then on holds what they wrote.
func (t *Tx) Lock(ctx context.Context, thing string) error {
	t.ahead = ahead{}
	_, err := t.execBeside(ctx, "lock", `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, thing)
	return err
}

// collect returns the rows of a query as structs, by position.
func collect[T any](ctx context.Context, t *Tx, attempt, query string, args ...any) (out []T, err error) {
	err = t.query(ctx, attempt, into(&out), query, args...)
	return out, err
}

// into reads rows as structs, by position.
func into[T any](out *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	}
}

// upTo is into that stops once the rows hold more than so many bytes, after at least two.
func upTo[T any](bytes int, size func(T) int, out *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for all := 0; (all <= bytes || len(*out) < 2) && rows.Next(); {
			row, err := pgx.RowToStructByPos[T](rows)
			if err != nil {
				return err
			}
			*out = append(*out, row)
			all += size(row)
		}
		return nil
	}
}

// one returns the row of a query, nil when there is none.
func one[T any](ctx context.Context, t *Tx, attempt, query string, args ...any) (*T, error) {
	out, err := collect[T](ctx, t, attempt, query, args...)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return &out[0], nil
}

// Place is where a page ends: the sort key of its last row. Keys do not move when rows are added.
type Place struct {
	At     time.Time
	ID     [16]byte
	Offset int // how many rows stood before the end of the page when it was read; 0: not known
}

// first is the place before the newest row.
var first = Place{At: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), ID: [16]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}

// orOldest returns the place, or that before the oldest row.
func (p *Place) orOldest() Place {
	if p == nil {
		return Place{}
	}
	return *p
}

func (p *Place) orFirst() Place {
	if p == nil {
		return first
	}
	return *p
}
