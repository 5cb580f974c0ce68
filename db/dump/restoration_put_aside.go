package dump

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
)

// takeOver adds data to a restored database. The backup lacks these data, and the database that
// is put aside has them. They are blocks, revoked key packages, conversations that are encrypted,
// and the numbers that were assigned. It runs before the restored database is used.
func (r *Restoration) takeOver(ctx context.Context, database string) error {
	from, err := pgx.ConnectConfig(ctx, r.d.server.Config(database))
	if err != nil {
		return err
	}
	defer postgres.Shut(from) // a database with a connection is not renamed
	to, err := pgx.ConnectConfig(ctx, r.d.server.Config(database+schema.Unfinished))
	if err != nil {
		return err
	}
	defer postgres.Shut(to)
	if err := r.keepBlocks(ctx, from, to); err != nil {
		return err
	}
	if err := keepRevocations(ctx, from, to); err != nil {
		return err
	}
	if err := keepEncrypted(ctx, from, to); err != nil {
		return err
	}
	if err := passSequences(ctx, from, to); err != nil {
		return err
	}
	return passConversations(ctx, from, to)
}

// keepRevocations revokes the key packages that are revoked in the database "from", and the
// Welcomes that wait for them. So if a device was given up after the backup, nobody gets its key
// packages again.
func keepRevocations(ctx context.Context, from, to *pgx.Conn) error {
	refs, err := postgres.CollectColumn[[]byte](ctx, from, "read revoked key packages", `SELECT ref FROM mls_key_packages WHERE state = 'revoked'`)
	if lacksTable(err) || err == nil && len(refs) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = to.Exec(ctx, `WITH gone AS (UPDATE mls_key_packages SET state = 'revoked', claimed_by = NULL WHERE ref = ANY($1) AND state <> 'revoked' RETURNING ref)
		UPDATE mls_welcomes SET state = 'invalid', leased_until = NULL WHERE key_package_ref IN (SELECT ref FROM gone) AND state IN ('available', 'in_flight')`, refs)
	return err
}

// lacksTable reports whether err says that the database has an older schema, without the table.
func lacksTable(err error) bool { return postgres.HasCode(err, "42P01") }
