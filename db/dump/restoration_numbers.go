package dump

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
)

// A number that was assigned after the backup is not assigned again, because clients and other
// servers remember numbers. A client that stores the number of the last event it saw would take a
// new event for an old one. So a restore moves all numbers ahead, to the clock: a later restore of
// the same backup moves them further than an earlier one.
const (
	// clockNumber is the SQL expression of the microseconds since 1970, since nobody assigns a
	// million numbers a second for long. Until the year 2255 it is below 2^53, the largest integer
	// that JSON numbers hold exactly.
	clockNumber = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

	// numberGap is how far a number is moved that is ahead of the clock, because the clock was set
	// back.
	numberGap = 1_000_000_000
)

// moveSequences moves sequences ahead of the backup.
func moveSequences(ctx context.Context, conn *pgx.Conn, all []Sequence) error {
	for _, s := range all {
		if s.Last < 0 || s.Last > 1<<62 {
			return fault.New(fault.Invalid, fmt.Sprintf("the backup says that sequence %s is at %d", s.Name, s.Last))
		}
		_, err := conn.Exec(ctx, `SELECT setval($1::text::regclass, CASE WHEN $2 < clock THEN clock ELSE $2 + $3 END)
			FROM (SELECT `+clockNumber+` AS clock) AS now`, s.quoted(), s.Last, int64(numberGap))
		if err != nil {
			return postgres.Fault("move sequence "+s.Name, err)
		}
	}
	return nil
}

// passSequences moves the sequences of a database to where those of the database from are, if these
// are further on. So numbers go on even if the clock was set back.
func passSequences(ctx context.Context, from, to *pgx.Conn) error {
	all, err := sequencesOf(ctx, from)
	if err != nil {
		return err
	}
	for _, s := range all {
		_, err := to.Exec(ctx, `SELECT setval(s, greatest($2, nextval(s))) FROM to_regclass($1) AS s WHERE s IS NOT NULL`, s.quoted(), s.Last)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s Sequence) quoted() string { return pgx.Identifier{"public", s.Name}.Sanitize() }

func sequencesOf(ctx context.Context, conn *pgx.Conn) ([]Sequence, error) {
	rows, err := conn.Query(ctx, `SELECT sequencename, coalesce(last_value, 0) FROM pg_sequences
		WHERE schemaname = 'public' AND data_type = 'bigint'::regtype ORDER BY sequencename`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Sequence])
}
