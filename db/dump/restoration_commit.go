package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Obstacle returns the fault that keeps a backup from being put in place, or nil if there is no
// obstacle. The fault is Conflict. The backup is one of the user u, or one of the whole instance
// if u is zero. The parameter users has all users whose databases are restored. If replace is
// true, it does not matter that these databases exist already.
func (d *Dumper) Obstacle(ctx context.Context, u vocab.Username, users []vocab.Username, replace bool) error {
	return d.instance.InTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { return d.obstacle(ctx, tx, u, users, replace) })
}

func (d *Dumper) obstacle(ctx context.Context, on pgx.Tx, u vocab.Username, users []vocab.Username, replace bool) error {
	var count int
	var state string
	err := on.QueryRow(ctx, `SELECT count(*), coalesce(max(state) FILTER (WHERE username = $1), '') FROM users`, u).Scan(&count, &state)
	if err != nil {
		return postgres.Fault("look at the users", err)
	}
	switch {
	case u.IsZero() && count > 0:
		return fault.New(fault.Conflict, fmt.Sprintf("the instance has %d users already: a whole backup is restored into an empty one", count)).
			WithHint("restore one user of it with --user, or take another data_dir or database.url")
	case state == instance.UserDeleting || state == instance.UserDeleted:
		return fault.New(fault.Conflict, fmt.Sprintf("the user %q was deleted, and other servers were told: the name is not used again", u))
	case state == instance.UserCreating:
		return fault.New(fault.Conflict, fmt.Sprintf("the user %q is half-made", u)).WithHint("lightweb user create " + u.String() + " finishes it; then restore with --replace")
	}
	names := make([]string, len(users))
	for i, u := range users {
		names[i] = d.schema.OfUser(u)
	}
	var there string
	err = on.QueryRow(ctx, `SELECT coalesce(min(datname), '') FROM pg_database WHERE datname = ANY($1)`, names).Scan(&there)
	if err != nil || there == "" || replace {
		return postgres.Fault("look for databases", err)
	}
	hint := "--replace puts it aside; it is not dropped"
	if u.IsZero() {
		hint = "rename it or drop it; it belongs to no user"
	}
	return fault.New(fault.Conflict, "the database "+there+" is there already").WithHint(hint)
}

// Commit puts the restored databases in place, all in one transaction. These are the database of
// the user u, or all databases of the instance if u is zero. If replace is true, Commit renames
// an existing database that has the name of a restored one, and returns the new name in the
// result "aside". The fault is Conflict when existing users or databases are in the way (see
// Obstacle), and Busy when a database that must be renamed is in use.
func (r *Restoration) Commit(ctx context.Context, u vocab.Username, replace bool) (aside string, err error) {
	scratch, err := pgx.ConnectConfig(ctx, r.d.server.Config(r.instance.name))
	if err != nil {
		return "", postgres.Fault("open database "+r.instance.name, err)
	}
	defer postgres.Shut(scratch)
	live, err := pgx.ConnectConfig(ctx, r.d.server.Config(r.d.schema.Name()))
	if err != nil {
		return "", postgres.Fault("open the instance database", err)
	}
	defer postgres.Shut(live)
	if err := postgres.CommitDurably(ctx, live); err != nil {
		return "", err
	}
	err = pgx.BeginFunc(ctx, live, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, copyForm+`; LOCK TABLE users IN EXCLUSIVE MODE`); err != nil {
			return err
		}
		if err := r.d.obstacle(ctx, tx, u, r.built, replace); err != nil {
			return err
		}
		if err := transfer(ctx, scratch, live, u); err != nil {
			return err
		}
		if aside, err = r.rename(ctx, live, replace); err != nil {
			return err
		}
		return r.place(ctx, live)
	})
	if postgres.HasCode(err, "55006") { // object in use
		err = fault.Wrap(fault.Busy, "a database that is to be renamed is in use", err).WithHint("end what uses it, then restore again")
	}
	return aside, postgres.Fault("put the restored databases in place", err)
}

// rename gives each database that was built the final name of its user's database. If another
// database has that name and replace is true, rename first puts it aside under a new name, and
// returns the new name.
func (r *Restoration) rename(ctx context.Context, live *pgx.Conn, replace bool) (aside string, err error) {
	for _, u := range r.built {
		name := r.d.schema.OfUser(u)
		if replace {
			there, err := schema.Exists(ctx, live, name)
			if err != nil {
				return "", err
			}
			if there {
				if err := r.takeOver(ctx, name); err != nil {
					return "", fault.Wrap(fault.KindOf(err), "blocks, revoked key packages, encrypted conversations and numbers cannot be taken over from the database that is put aside", err).
						WithHint("rename or drop the database " + name + " yourself to restore without them")
				}
				aside = schema.Aside(name, time.Now())
				if err := schema.Rename(ctx, live, name, aside); err != nil {
					return "", err
				}
			}
		}
		if err := schema.Rename(ctx, live, name+schema.Unfinished, name); err != nil {
			return "", err
		}
	}
	return aside, nil
}

// place stores the names and the schema versions of the databases. The names can differ from
// those in the backup, because the backup may be of an instance with another name.
func (r *Restoration) place(ctx context.Context, live *pgx.Conn) error {
	if _, err := live.Exec(ctx, `UPDATE users SET database = $1 || '_' || username WHERE database <> $1 || '_' || username`, r.d.schema.Name()); err != nil {
		return err
	}
	built := make([]string, len(r.built))
	for n, u := range r.built {
		built[n] = u.String()
	}
	_, err := live.Exec(ctx, `UPDATE users SET schema_version = $1 WHERE username = ANY($2)`, r.d.schema.Latest(schema.User), built)
	return err
}

// transfer copies rows of the backup into the instance database. It copies all rows if u is zero,
// else the rows that belong to u. If the user u exists in the instance database already, the
// user's rows there are newer and stay. Then transfer only adds acquaintances, because no
// acquaintance may be missing.
func transfer(ctx context.Context, scratch, live *pgx.Conn, u vocab.Username) error {
	shape, err := shapeOf(ctx, scratch)
	if err != nil {
		return err
	}
	if u.IsZero() {
		return transferAll(ctx, scratch, live, shape)
	}
	var known bool
	if err := live.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users WHERE username = $1)`, u).Scan(&known); err != nil {
		return err
	}
	for _, t := range shape.Tables {
		switch {
		case t.Owner == "" || known && t.Name != acquaintancesTable:
		case known:
			err = mergeAcquaintances(ctx, scratch, live, t, u)
		default:
			err = pipe(ctx, scratch, live, t, u, copyIn(t))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func transferAll(ctx context.Context, scratch, live *pgx.Conn, shape Shape) error {
	all := make([]string, len(shape.Tables))
	for i, t := range shape.Tables {
		all[i] = t.quoted()
	}
	if _, err := live.Exec(ctx, `TRUNCATE `+strings.Join(all, ", ")); err != nil {
		return err
	}
	for _, t := range shape.Tables {
		if err := pipe(ctx, scratch, live, t, vocab.Username{}, copyIn(t)); err != nil {
			return err
		}
	}
	for _, s := range shape.Sequences {
		if _, err := live.Exec(ctx, `SELECT setval($1::text::regclass, greatest($2, nextval($1::text::regclass)))`, s.quoted(), s.Last); err != nil {
			return err
		}
	}
	return nil
}

const acquaintancesTable = "acquaintances"

func mergeAcquaintances(ctx context.Context, scratch, live *pgx.Conn, t Table, u vocab.Username) error {
	if _, err := live.Exec(ctx, `CREATE TEMPORARY TABLE restored (LIKE `+t.quoted()+`) ON COMMIT DROP`); err != nil {
		return err
	}
	if err := pipe(ctx, scratch, live, t, u, `COPY restored (`+t.columns()+`) FROM STDIN`); err != nil {
		return err
	}
	_, err := live.Exec(ctx, `INSERT INTO acquaintances (`+t.columns()+`) SELECT `+t.columns()+` FROM restored
		ON CONFLICT (actor_uri, username) DO UPDATE SET follows = true WHERE excluded.follows AND NOT acquaintances.follows`)
	return err
}

// pipe copies the rows of a table from one connection to another: all rows when u is zero, else
// the rows of u. The COPY statement in the parameter "into" receives the rows.
func pipe(ctx context.Context, from, to *pgx.Conn, t Table, u vocab.Username, into string) error {
	r, w := io.Pipe()
	out := make(chan error, 1)
	go func() {
		_, err := copyOut(ctx, from, t, u, w)
		out <- err
		_ = w.CloseWithError(err) // it never fails
	}()
	_, err := to.PgConn().CopyFrom(ctx, r, into)
	_ = r.Close() // ends the other side if this one has failed; Close itself never fails
	if outErr := <-out; outErr != nil && !errors.Is(outErr, io.ErrClosedPipe) {
		return outErr
	}
	return err
}
