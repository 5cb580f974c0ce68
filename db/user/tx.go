package user

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/holding"
	"github.com/lightweb/lightweb/engine/vocab"
)

// tx is the state that the nouns of a transaction share. The nouns are the fields of Tx, such as
// Activities.
//
// Added activities, feed entries and reactions are sent later, with the next query or with the
// commit. The same is true for added objects whose uris were read ahead. Events are sent with the
// commit. So a batch of activities of any size costs a few round trips. If such a row causes an
// error, the error appears when the row is sent.
type tx struct {
	all    *Tx // the same transaction with its nouns
	conn   *pgx.Conn
	isLook bool // see Databases.Look
	heard  bool // the database server has answered a statement
	unsent unsent
	ahead  ahead
	types  Types
	reader string // the reader whose stored forms are read (see Feed.ReadFor)

	// The Commit that subscribers get is made from the fields below.
	touched     Touched
	numbered    []Event
	owes        bool // deliveries were added
	leased      []Delivery
	leasedUntil time.Time
	behind      []Behind
	outcome     outcome
}

const (
	maxTries   = 5                     // how many times a transaction is run at most when it conflicts with others
	commitTime = 5 * time.Second       // how long a commit goes on after its context has ended
	rerunPause = 20 * time.Millisecond // the longest pause before the second run; pauses are random, and their limit grows with each run
)

// How a transaction begins.
const (
	beginWrite = `begin`
	beginRead  = `begin isolation level repeatable read read only`
	beginLook  = `` // its one statement is a transaction
)

// Write runs work in one transaction of u's database. It runs work again when the transaction
// conflicts with another one, or when its connection turns out to be dead. So work must change
// nothing outside of the transaction. The fault is Unavailable when the database cannot be used.
// Before Write returns, subscribers are told of the commit. If ctx ends during the commit, Write
// waits for the outcome of the commit for commitTime.
func (d *Databases) Write(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	commit, err := d.write(ctx, u, work)
	if commit != nil {
		d.subscribers.tell(ctx, *commit)
		if commit.Unknown {
			d.tellLater(*commit)
		}
	}
	return err
}

// write does what Write does, but returns the Commit for the subscribers instead of telling
// them. The Commit is nil if the transaction was rolled back.
func (d *Databases) write(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) (*Commit, error) {
	t, err := d.inTx(ctx, u, "write", beginWrite, work)
	return t.commitOf(u), err
}

// Read runs work on one consistent snapshot of u's database. work cannot change the database.
func (d *Databases) Read(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	_, err := d.inTx(ctx, u, "read", beginRead, work)
	return err
}

// Look does what Read does, in one round trip instead of two. work may make only one query, because
// a second one would see another state of the database. work must not change the database; Look
// does not prevent it.
func (d *Databases) Look(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	_, err := d.inTx(ctx, u, "read", beginLook, work)
	return err
}

var errSecondQuery = fault.New(fault.Internal, "a look has one query")

// isConflict reports whether a transaction failed because of a conflict with another one. It
// may succeed when it is run again.
func isConflict(err error) bool {
	return postgres.IsConflict(err) || postgres.Violates(err, "objects_uri_key")
}

// txFault returns postgres.Fault of err, but a conflict with another transaction is the fault
// Busy. Callers of Read and Write get this fault only if all tries ended in a conflict.
func txFault(attempt string, err error) error {
	if err != nil && fault.Of(err) == nil && isConflict(err) {
		err = fault.Wrap(fault.Busy, "others changed the same at the same time", err)
	}
	return postgres.Fault(attempt, err)
}

// inTx runs work in transactions until one ends without a conflict, or maxTries times. It
// returns the last transaction. Before each new try it waits for a random time, so that
// transactions that were in conflict do not meet again.
func (d *Databases) inTx(ctx context.Context, u vocab.Username, mode, begin string, work func(context.Context, *Tx) error) (*Tx, error) {
	start := time.Now()
	defer func() { d.took.WithLabelValues(mode).Observe(time.Since(start).Seconds()) }()
	ctx, cancel := d.limited(ctx)
	defer cancel()
	for try := 1; ; try++ {
		t, err := d.once(ctx, u, begin, work)
		if err == nil || !isConflict(err) || try == maxTries {
			return t, txFault(mode+" in database of "+u.String(), err)
		}
		select {
		case <-ctx.Done():
			return t, txFault(mode+" in database of "+u.String(), ctx.Err())
		case <-time.After(rand.N(time.Duration(try) * rerunPause)):
		}
	}
}

// once runs work in a transaction, which ends before the call returns. All idle connections die
// when the database server restarts. If a connection turns out to have died in this way, work is
// run again over another connection. That is safe, because nothing can have been committed over a
// dead connection.
func (d *Databases) once(ctx context.Context, u vocab.Username, begin string, work func(context.Context, *Tx) error) (*Tx, error) {
	for {
		t := newTx(d.types, begin)
		if died, err := d.over(ctx, u, t, work); !died {
			return t, err
		}
	}
}

// over runs work in t over a connection to u's database. The result "died" reports whether the
// connection had died while it was idle, before work used it.
func (d *Databases) over(ctx context.Context, u vocab.Username, t *Tx, work func(context.Context, *Tx) error) (died bool, err error) {
	l, err := d.pool.Acquire(ctx, d.class, d.schema.OfUser(u), d.strangers)
	if err != nil {
		return false, err
	}
	defer d.pool.Release(l)
	t.conn = l.Conn()
	err = t.run(ctx, work)
	return err != nil && !t.heard && l.IsReused() && l.Conn().IsClosed() && ctx.Err() == nil, err
}

// run runs work and then commits. If work or the commit fails, run rolls back.
func (t *Tx) run(ctx context.Context, work func(context.Context, *Tx) error) error {
	err := work(holding.MarkHolder(ctx), t)
	if err == nil {
		err = t.commit(ctx)
	}
	if err != nil && !postgres.IsSettled(t.conn) {
		_, _ = t.conn.Exec(ctx, `rollback`) // if the rollback fails, Release drops the connection
	}
	return err
}

func digests(ids []vocab.ID) [][]byte {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = schema.Digest(id)
	}
	return out
}

// exec runs a statement that may change anything. So it drops the rows in t.ahead, and stores
// in t.touched that everything that readers see may have changed.
func (t *tx) exec(ctx context.Context, attempt, query string, args ...any) (int64, error) {
	t.ahead, t.touched.Everything = ahead{}, true
	return t.execBeside(ctx, attempt, query, args...)
}

// execBeside runs a statement that does not change relationships, objects or anything that
// readers see. If the statement does change them, the caller must call forgetActor or
// forgetObject, and add the changes to t.touched.
func (t *tx) execBeside(ctx context.Context, attempt, query string, args ...any) (n int64, err error) {
	b := t.unsent.batch()
	b.Queue(query, args...).Exec(func(tag pgconn.CommandTag) error { n = tag.RowsAffected(); return nil })
	err = t.send(ctx, attempt, b)
	return n, err
}

// query reads the rows of a statement.
func (t *tx) query(ctx context.Context, attempt string, read func(pgx.Rows) error, query string, args ...any) error {
	b := t.unsent.batch()
	b.Queue(query, args...).Query(read)
	return t.send(ctx, attempt, b)
}

// row reads the one row of a statement.
func (t *tx) row(ctx context.Context, attempt, query string, args []any, into ...any) error {
	b := t.unsent.batch()
	b.Queue(query, args...).QueryRow(func(r pgx.Row) error { return r.Scan(into...) })
	return t.send(ctx, attempt, b)
}

func (t *tx) send(ctx context.Context, attempt string, b *pgx.Batch) error {
	if t.isLook && t.heard {
		return errSecondQuery
	}
	t.ahead.asked = nil
	err := t.conn.SendBatch(ctx, b).Close()
	t.heard = t.heard || !t.conn.IsClosed()
	return txFault(attempt, err)
}

// Lock waits for the end of every other transaction on this database that has locked the same
// thing. Later reads of this transaction see what those transactions have written.
func (t *Tx) Lock(ctx context.Context, thing string) error { return t.lock(ctx, thing) }

func (t *tx) lock(ctx context.Context, thing string) error {
	t.ahead = ahead{}
	_, err := t.execBeside(ctx, "lock", `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, thing)
	return err
}

// collect returns the rows of a query as structs. Each column sets the field of its name.
func collect[T any](ctx context.Context, t *tx, attempt, query string, args ...any) (out []T, err error) {
	err = t.query(ctx, attempt, into(&out), query, args...)
	return out, err
}

// into returns a function that reads rows as structs, as collect does.
func into[T any](out *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*out, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	}
}

// firstInto returns a function that reads the first row as a struct. If there is no row, it does
// not change *out.
func firstInto[T any](out **T) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		if len(all) > 0 {
			*out = &all[0]
		}
		return err
	}
}

// upTo is like into, but stops as soon as the rows have more than the given number of bytes. It
// reads at least two rows if there are two.
func upTo[T any](bytes int, size func(T) int, out *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for all := 0; (all <= bytes || len(*out) < 2) && rows.Next(); {
			row, err := pgx.RowToStructByName[T](rows)
			if err != nil {
				return err
			}
			*out = append(*out, row)
			all += size(row)
		}
		return nil
	}
}

// one returns the first row of a query, or nil if there is none.
func one[T any](ctx context.Context, t *tx, attempt, query string, args ...any) (out *T, err error) {
	err = t.query(ctx, attempt, firstInto(&out), query, args...)
	return out, err
}

// Place is the end of a page. It has the sort key of the last row of the page. A sort key does
// not change when rows are added.
type Place struct {
	At time.Time
	ID [16]byte
	// Offset is the number of rows up to the end of the page, at the time when the page was
	// read; 0: not known.
	Offset int
}

// first is the place before the newest row.
var first = Place{At: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), ID: [16]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}

// orOldest returns *p, or the place before the oldest row if p is nil.
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
