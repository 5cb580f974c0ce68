package db

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Tx is a transaction on one user's database, valid only during the call it is given to. Who holds it must not wait for
// the network, for Redis or for another database.
type Tx struct {
	tx pgx.Tx
}

// maxTries bounds how often a transaction is run that loses against another one.
const maxTries = 5

// Write runs work in one transaction of u's database. It is run again when it loses against another transaction, so it
// must change nothing else. The fault is Unavailable when the database cannot be used.
func (c *Cluster) Write(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	return c.inTx(ctx, u, "write", pgx.TxOptions{}, work)
}

// Read runs work on one consistent state of u's database, which it cannot change.
func (c *Cluster) Read(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	return c.inTx(ctx, u, "read", pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, work)
}

func (c *Cluster) inTx(ctx context.Context, u vocab.Username, mode string, opts pgx.TxOptions, work func(context.Context, *Tx) error) error {
	start := time.Now()
	defer func() { c.users.metrics.took.WithLabelValues(mode).Observe(time.Since(start).Seconds()) }()
	for try := 1; ; try++ {
		err := c.once(ctx, u, opts, work)
		if err == nil || !again(err) || try == maxTries {
			return storeFault(mode+" in database of "+u.String(), err)
		}
	}
}

// once runs work in a transaction, which does not outlive the call.
func (c *Cluster) once(ctx context.Context, u vocab.Username, opts pgx.TxOptions, work func(context.Context, *Tx) error) error {
	l, tx, err := c.begin(ctx, u, opts)
	if err != nil {
		return err
	}
	defer c.users.release(l)
	defer func() { _ = tx.Rollback(ctx) }() // nothing once it is committed; release drops a connection it fails on
	if err := work(ctx, &Tx{tx}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// begin opens a transaction on a connection of u's. One that died while it was idle, as all do when the server restarts,
// is replaced: nothing was done over it yet.
func (c *Cluster) begin(ctx context.Context, u vocab.Username, opts pgx.TxOptions) (*lease, pgx.Tx, error) {
	for {
		l, err := c.users.acquire(ctx, c.userDatabase(u))
		if err != nil {
			return nil, nil, err
		}
		tx, err := l.conn.BeginTx(ctx, opts)
		if err == nil {
			return l, tx, nil
		}
		died := l.reused && l.conn.IsClosed() && ctx.Err() == nil
		c.users.release(l)
		if !died {
			return nil, nil, err
		}
	}
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

func (t *Tx) exec(ctx context.Context, attempt, query string, args ...any) (int64, error) {
	tag, err := t.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), storeFault(attempt, err)
}

// Lock makes the transaction wait for every other one on this database that locked the same thing, until they have ended;
// what it reads from then on holds what they wrote.
func (t *Tx) Lock(ctx context.Context, thing string) error {
	_, err := t.exec(ctx, "lock", `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, thing)
	return err
}

// collect returns the rows of a query as structs, by position.
func collect[T any](ctx context.Context, t *Tx, attempt, query string, args ...any) ([]T, error) {
	rows, err := t.tx.Query(ctx, query, args...)
	if err != nil {
		return nil, storeFault(attempt, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	return out, storeFault(attempt, err)
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
	At time.Time
	ID [16]byte
}

// first is the place before the newest row.
var first = Place{At: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), ID: [16]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}

func (p *Place) orFirst() Place {
	if p == nil {
		return first
	}
	return *p
}
