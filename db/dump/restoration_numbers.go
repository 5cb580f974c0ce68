package dump

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
)

// A number that was assigned after the backup is not assigned again, because clients and other
// servers remember numbers. A client that stores the number of the last event it saw would take a
// new event for an old one. So a restore moves all numbers ahead, to the clock. A later restore
// of the same backup moves them further than an earlier one.
const (
	// clockNumber is the SQL expression of the microseconds since 1970. The clock is ahead of the
	// numbers that were assigned, because nobody assigns a million numbers a second for long.
	// Until the year 2255 clockNumber is below 2^53, the largest integer that JSON numbers hold
	// exactly.
	clockNumber = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

	// numberGap is added to a number that is ahead of the clock because the clock was set
	// back.
	numberGap = 1_000_000_000

	// journalSequence numbers the activities that the operator resubmits. Clients and other
	// servers do not remember these numbers. A restore adds only numberGap to them, and does
	// not set them to the clock, because they must stay below the numbers of arrivals
	// (instance.Journal).
	journalSequence = "intake_seq_seq"

	// clockGeneration and generationGap replace clockNumber and numberGap for the generations
	// of conversations. Generations are assigned rarely and have 31 bits. So clockGeneration
	// counts the seconds since 2025, for which 31 bits are enough until the year 2093.
	clockGeneration = `(extract(epoch FROM clock_timestamp()) - 1735689600)::int`
	generationGap   = 1000
)

// moved returns the SQL expression of a number after a restore.
func moved(number, clock string, gap int) string {
	return fmt.Sprintf(`CASE WHEN %[1]s < %[2]s THEN %[2]s ELSE %[1]s + %[3]d END`, number, clock, gap)
}

// moveSequences sets sequences to numbers that were not assigned after the backup.
func moveSequences(ctx context.Context, conn *pgx.Conn, all []Sequence) error {
	for _, s := range all {
		if s.Last < 0 || s.Last > 1<<62 {
			return fault.New(fault.Invalid, fmt.Sprintf("the backup says that sequence %s is at %d", s.Name, s.Last))
		}
		to := moved("$2::bigint", clockNumber, numberGap)
		if s.Name == journalSequence {
			to = fmt.Sprintf(`$2::bigint + %d`, numberGap)
		}
		if _, err := conn.Exec(ctx, `SELECT setval($1::text::regclass, `+to+`)`, s.quoted(), s.Last); err != nil {
			return postgres.Fault("move sequence "+s.Name, err)
		}
	}
	return nil
}

// passSequences moves each sequence of a database forward to its position in the database "from",
// unless it is further on already. So numbers go on even if the clock was set back.
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

// passConversations raises numbers that are lower than in the database "from". In each open
// conversation that the user hosts, and in each without a host, the last number of the log
// becomes at least the one in "from". In each open hosted conversation, the generation becomes
// greater than the one in "from".
func passConversations(ctx context.Context, from, to *pgx.Conn) error {
	for table, query := range map[string]string{
		"mls_conversations": `UPDATE mls_conversations c SET last_seq = greatest(c.last_seq, f.last_seq), generation = greatest(c.generation, f.generation + 1)
			FROM unnest($1::uuid[], $2::bigint[], $3::int[]) AS f (id, last_seq, generation) WHERE c.id = f.id AND c.status <> 'closed'`,
		"mls_joined": `UPDATE mls_joined j SET last_seq = f.last_seq, whole_seq = f.last_seq
			FROM unnest($1::uuid[], $2::bigint[], $3::int[]) AS f (id, last_seq, generation) JOIN conversations c USING (id)
			WHERE j.id = f.id AND j.last_seq < f.last_seq AND c.host_uri = ''`,
	} {
		all, err := postgres.Collect[reached](ctx, from, "read how far conversations are", `SELECT id, last_seq, generation FROM `+table)
		if lacksTable(err) {
			continue
		}
		if err != nil {
			return err
		}
		ids, seqs, generations := make([]uuid.UUID, len(all)), make([]int64, len(all)), make([]int32, len(all))
		for i, c := range all {
			ids[i], seqs[i], generations[i] = c.ID, c.LastSeq, c.Generation
		}
		if _, err := to.Exec(ctx, query, ids, seqs, generations); err != nil {
			return err
		}
	}
	return nil
}

// reached has the last numbers that were assigned in a conversation.
type reached struct {
	ID         uuid.UUID
	LastSeq    int64
	Generation int32
}

func (s Sequence) quoted() string { return pgx.Identifier{"public", s.Name}.Sanitize() }

func sequencesOf(ctx context.Context, conn *pgx.Conn) ([]Sequence, error) {
	rows, err := conn.Query(ctx, `SELECT sequencename AS name, coalesce(last_value, 0) AS last FROM pg_sequences
		WHERE schemaname = 'public' AND data_type = 'bigint'::regtype ORDER BY sequencename`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Sequence])
}
