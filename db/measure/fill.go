package measure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Multiply fills the database of u. It copies a stored activity n-1 times, with its object, its
// entry in the feed and its row in seen. The activity's id must begin with the object's id.
// Copies have ids of their own, and each copy is a millisecond older than the copy before.
// Multiply calls step with its progress.
func (d *Databases) Multiply(ctx context.Context, u vocab.Username, activity, object vocab.ID, n int, step func(done, all int)) error {
	err := d.useDatabase(ctx, u, func(conn *pgx.Conn) error {
		const chunk = 10_000
		for first := 1; first < n; first += chunk {
			last := min(first+chunk, n) - 1
			args := pgx.NamedArgs{"activity": activity, "object": object, "first": first, "last": last}
			if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return copyChunk(ctx, tx, args) }); err != nil {
				return err
			}
			step(last+1, n)
		}
		return tidy(ctx, conn)
	})
	return postgres.Fault("copy an activity of "+u.String(), err)
}

func copyChunk(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	for _, query := range copies {
		if _, err := tx.Exec(ctx, query, args); err != nil {
			return err
		}
	}
	return nil
}

// copies are the statements of Multiply. They make the copies with the numbers @first to @last.
// The UUID of a copied row has the form of the engine's UUIDs, a time followed by random bits
// (RFC 9562 §5.7).
var copies = func() []string {
	const (
		id = `encode(decode(lpad(to_hex((extract(epoch FROM published) * 1000)::bigint - n), 12, '0'), 'hex') ||
			substring(set_byte(uuid_send(gen_random_uuid()), 6, 112) FROM 7), 'hex')::uuid`
		older   = `published - n * interval '1 millisecond'`
		numbers = ` CROSS JOIN generate_series(@first::int, @last::int) n `
	)
	renamed := func(column string) string { return `replace(` + column + `, @object::text, @object::text || '-' || n)` }
	raw := renamed(`raw::text`) + `::jsonb`
	return []string{
		`INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw)
			SELECT ` + id + `, ` + renamed("uri") + `, direction, type, actor_uri, ` + renamed("object_uri") + `, ` + older + `, ` + raw + `
			FROM activities` + numbers + `WHERE uri = @activity`,
		`INSERT INTO objects (id, uri, published, raw, readable)
			SELECT ` + id + `, ` + renamed("uri") + `, ` + older + `, ` + raw + `, readable FROM objects` + numbers + `WHERE uri = @object`,
		`INSERT INTO feed (id, activity_uri, actor_uri, published)
			SELECT ` + id + `, ` + renamed("activity_uri") + `, actor_uri, ` + older + ` FROM feed` + numbers + `WHERE activity_uri = @activity`,
		`INSERT INTO seen (digest)
			SELECT substring(sha256(convert_to(` + renamed("uri") + `, 'UTF8')) FOR 16) || substring(sha256(convert_to(actor_uri, 'UTF8')) FOR 16) FROM activities` + numbers + `WHERE uri = @activity`,
	}
}()
