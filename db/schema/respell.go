package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Older databases hold ids as peers wrote them. This file changes these ids to canonical form, page
// by page, each page in a transaction of its own. A run that was killed is completed by the next
// run, because the pages that are done have no such ids left.

// The limits of one transaction.
const (
	// respellPage is the number of ids in one page. For a column that need not be unique, it
	// is also the number of rows that one statement changes.
	respellPage  = 500
	documentPage = 50
)

// spelled is a column that holds ids.
type spelled struct {
	table, column string
	array         bool
	by            []string // the statements that change the rows with the id $1 to the id $2; nil: the column need not be unique (see respellColumn)
}

// unusual returns the condition that an id is possibly not canonical, in its scheme, host or
// port. The condition also holds for some ids that are canonical.
func unusual(id string) string {
	return `(` + id + ` !~ '^https?://[a-z0-9_-]+(\.[a-z0-9_-]+)*(:[0-9]+)?([/?#]|$)' OR ` + id + ` ~ '^(https://[^/?#]*:443|http://[^/?#]*:80)([/?#]|$)')`
}

// unusualWithin is the condition that the document of a row possibly has an id for which unusual
// holds.
const unusualWithin = `(raw::text ~ '"(?!https?://[a-z0-9_-]+(\.[a-z0-9_-]+)*(:[0-9]+)?[/?#"])[hH][tT][tT][pP][sS]?://'
	OR raw::text ~ '"(https://[^/?#"]*:443|http://[^/?#"]*:80)[/?#"]')`

// unique returns a column of a table that has at most one row for each value of that column
// together with the columns in beside. A row w with the id $1 gets the id $2. But if a row r with
// the id $2 has the same values in beside, w is deleted. Before that the SET clause in merge
// changes r; if merge is empty, r stays as it is.
func unique(table, column, merge string, beside ...string) spelled {
	both, same := `w.`+column+` = $1 AND r.`+column+` = $2`, ``
	for _, b := range beside {
		same += ` AND r.` + b + ` = w.` + b
	}
	by := []string{`UPDATE ` + table + ` AS w SET ` + column + ` = $2 WHERE ` + column + ` = $1
		AND NOT EXISTS (SELECT FROM ` + table + ` AS r WHERE r.` + column + ` = $2` + same + `)`}
	if merge != "" {
		set, where, _ := strings.Cut(merge, " WHERE ")
		if where != "" {
			where = ` AND (` + where + `)`
		}
		by = append(by, `UPDATE `+table+` AS r SET `+set+` FROM `+table+` AS w WHERE `+both+same+where)
	}
	return spelled{table: table, column: column, by: append(by, `DELETE FROM `+table+` WHERE `+column+` = $1 AND $1 <> $2::text`)}
}

// taking returns a SET clause that copies these columns from the row w (see unique).
func taking(columns ...string) string {
	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + ` = w.` + c
	}
	return strings.Join(sets, ", ")
}

// spelledByUsers returns the columns of users' databases that hold ids.
func spelledByUsers() []spelled {
	newestReaction := taking("type", "activity_uri", "created_at") + ` WHERE w.created_at > r.created_at`
	return []spelled{
		unique("actors", "uri", taking("type", "preferred_username", "inbox", "outbox", "shared_inbox", "public_key_pem", "raw", "fetched_at")+` WHERE w.fetched_at > r.fetched_at`),
		unique("relationships", "actor_uri", `
			status = CASE WHEN 'accepted' IN (r.status, w.status) THEN 'accepted' WHEN 'pending' IN (r.status, w.status) THEN 'pending' ELSE 'rejected' END,
			activity_uri = CASE WHEN w.updated_at > r.updated_at THEN w.activity_uri ELSE r.activity_uri END,
			created_at = least(r.created_at, w.created_at), updated_at = greatest(r.updated_at, w.updated_at)`, "type", "relation"),
		unique("group_members", "actor_uri", taking("activity_uri", "added_at")+` WHERE w.added_at < r.added_at`, "group_id"),
		unique("reactions", "actor_uri", newestReaction, "object_uri", "kind"),
		unique("reactions", "object_uri", newestReaction, "actor_uri", "kind"),
		unique("pins", "actor_uri", "", "object_uri"),
		unique("pins", "object_uri", "", "actor_uri"),
		unique("votes", "actor_uri", "", "question_uri", "option"), // the Question's counts stay as users have seen them
		unique("votes", "question_uri", "", "actor_uri", "option"),
		unique("feed", "activity_uri", ""),
		unique("activities", "uri", ""),
		unique("objects", "uri", taking("published", "raw", "updated_at", "deleted_at")+` WHERE r.deleted_at IS NULL
			AND (w.deleted_at IS NOT NULL OR coalesce(w.updated_at, w.published) > coalesce(r.updated_at, r.published))`),
		unique("poison", "uri", ""),
		{table: "actors", column: "inbox"}, {table: "actors", column: "outbox"}, {table: "actors", column: "shared_inbox"},
		{table: "relationships", column: "activity_uri"}, {table: "group_members", column: "activity_uri"},
		{table: "reactions", column: "activity_uri"}, {table: "pins", column: "activity_uri"},
		{table: "feed", column: "actor_uri"}, {table: "blocks", column: "actor_uri"}, {table: "blocks", column: "activity_uri"},
		{table: "activities", column: "actor_uri"}, {table: "activities", column: "object_uri"},
		{table: "delivery_jobs", column: "activity_uri"}, {table: "delivery_jobs", column: "object_uri"},
		{table: "delivery_jobs", column: "audience", array: true}, {table: "deliveries", column: "targets", array: true},
		{table: "unnamed_recipients", column: "actors", array: true},
	}
}

// spelledByInstance returns the columns of the instance database that hold ids. Rows of actor_keys
// refer to rows of actors, so an actor is copied before its keys change.
func spelledByInstance() []spelled {
	return []spelled{
		unique("acquaintances", "actor_uri", `follows = true WHERE w.follows AND NOT r.follows`, "username"),
		{table: "actors", column: "uri", by: []string{
			`INSERT INTO actors SELECT (jsonb_populate_record(a, jsonb_build_object('uri', $2::text))).* FROM actors a WHERE uri = $1 ON CONFLICT DO NOTHING`,
			`UPDATE actors AS r SET ` + taking("handle", "raw", "fetched_at", "gone_at") + ` FROM actors AS w
				WHERE w.uri = $1 AND r.uri = $2 AND greatest(w.fetched_at, w.gone_at) > greatest(r.fetched_at, r.gone_at)`,
			`UPDATE actor_keys SET actor_uri = $2 WHERE actor_uri = $1`,
			`DELETE FROM actors WHERE uri = $1 AND uri <> $2`,
		}},
		unique("actor_keys", "key_id", ""),
		unique("relays", "actor_uri", ""),
		{table: "relays", column: "inbox"},
	}
}

// RespellUser changes the ids in a user's database to canonical form. Then it removes follows and
// memberships of blocked actors, because a Block did not end follows and memberships that were
// stored under another spelling of the actor's id.
func RespellUser(ctx context.Context, conn *pgx.Conn) error {
	for _, s := range spelledByUsers() {
		if err := s.respell(ctx, conn); err != nil {
			return err
		}
	}
	for _, table := range []string{"activities", "objects"} {
		if err := respellDocuments(ctx, conn, table); err != nil {
			return err
		}
	}
	for _, q := range []string{
		`DELETE FROM relationships WHERE type IN ('follower', 'following') AND sha256(convert_to(actor_uri, 'UTF8')) IN (SELECT digest FROM blocks)`,
		`DELETE FROM group_members WHERE sha256(convert_to(actor_uri, 'UTF8')) IN (SELECT digest FROM blocks)`,
	} {
		if _, err := conn.Exec(ctx, q); err != nil {
			return fmt.Errorf("end what a Block ended: %w", err)
		}
	}
	return nil
}

func respellInstance(ctx context.Context, conn *pgx.Conn) error {
	for _, s := range spelledByInstance() {
		if err := s.respell(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// respell changes the column's ids to canonical form, in the order in which they sort.
func (s spelled) respell(ctx context.Context, conn *pgx.Conn) error {
	from := s.table + ` CROSS JOIN LATERAL (SELECT ` + s.column + `) AS v (spelling)`
	if s.array {
		from = s.table + ` CROSS JOIN LATERAL unnest(` + s.column + `) AS v (spelling)`
	}
	list := `SELECT DISTINCT spelling FROM ` + from + ` WHERE spelling > $1 AND ` + unusual("spelling") + ` ORDER BY spelling LIMIT $2`
	last := ""
	for {
		rows, err := conn.Query(ctx, list, last, respellPage)
		if err != nil {
			return s.wrapError(err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(ids) == 0 {
			return s.wrapError(err)
		}
		if err := s.respellRows(ctx, conn, ids); err != nil {
			return s.wrapError(err)
		}
		last = ids[len(ids)-1]
	}
}

func (s spelled) wrapError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("bring ids of %s.%s to canonical form: %w", s.table, s.column, err)
}

// respellRows changes the ids in the column's rows to canonical form. The parameter ids lists the
// ids to change.
func (s spelled) respellRows(ctx context.Context, conn *pgx.Conn, ids []string) error {
	var written, canonical []string
	for _, id := range ids {
		if c := string(vocab.IDOf(id)); c != id {
			written, canonical = append(written, id), append(canonical, c)
		}
	}
	if len(written) == 0 {
		return nil
	}
	if s.by == nil {
		return s.respellColumn(ctx, conn, written, canonical)
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for i := range written {
			for _, q := range s.by {
				if _, err := tx.Exec(ctx, q, written[i], canonical[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// respellColumn is respellRows for a column that need not be unique. canonical[i] replaces
// written[i].
func (s spelled) respellColumn(ctx context.Context, conn *pgx.Conn, written, canonical []string) error {
	t, c := s.table, s.column
	q := `UPDATE ` + t + ` SET ` + c + ` = m.canonical FROM unnest($1::text[], $2::text[]) AS m (written, canonical)
		WHERE m.written = ` + c + ` AND ` + t + `.ctid = ANY(ARRAY(SELECT ctid FROM ` + t + ` WHERE ` + c + ` = ANY($1) LIMIT $3))`
	if s.array {
		q = `UPDATE ` + t + ` SET ` + c + ` = ARRAY(SELECT DISTINCT coalesce(m.canonical, spelling) FROM unnest(` + c + `) AS v (spelling)
				LEFT JOIN unnest($1::text[], $2::text[]) AS m (written, canonical) ON m.written = spelling ORDER BY 1)
			WHERE ctid = ANY(ARRAY(SELECT ctid FROM ` + t + ` WHERE ` + c + ` && $1 LIMIT $3))`
	}
	for {
		tag, err := conn.Exec(ctx, q, written, canonical, respellPage)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
	}
}

// respellDocuments changes the ids in the documents of a table to canonical form.
func respellDocuments(ctx context.Context, conn *pgx.Conn, table string) error {
	type row struct {
		ID  uuid.UUID
		Raw []byte
	}
	var last uuid.UUID
	for {
		rows, err := conn.Query(ctx, `SELECT id, raw FROM `+table+` WHERE id > $1 AND `+unusualWithin+` ORDER BY id LIMIT $2`, last, documentPage)
		if err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		page, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
		if err != nil || len(page) == 0 {
			return err
		}
		b := &pgx.Batch{}
		for _, r := range page {
			d, err := vocab.ParseDoc(r.Raw)
			if err != nil {
				continue // an earlier version stored a document that this one cannot read
			}
			if d, changed := d.WithCanonicalIDs(); changed {
				b.Queue(`UPDATE `+table+` SET raw = $2 WHERE id = $1`, r.ID, d.JSON())
			}
		}
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() }); err != nil {
			return fmt.Errorf("write %s: %w", table, err)
		}
		last = page[len(page)-1].ID
	}
}

// SpelledActors returns the canonical ids of actors that a user's database may hold under another
// spelling. The key true has the actors that the user may follow, the key false the others. These
// actors must become acquaintances before the ids in the database become canonical, because an
// older engine may have stored the acquaintance under the other spelling only. SpelledActors
// returns no actors for a version that has canonical ids already.
func (d *Databases) SpelledActors(ctx context.Context, conn *pgx.Conn, from Version) (map[bool][]vocab.ID, error) {
	if !d.lacks(from, User, writtenIDs) {
		return nil, nil
	}
	rows, err := conn.Query(ctx, `SELECT actor, follows FROM (`+KnownActors(from.Number)+`) AS k (actor, follows) WHERE `+unusual("actor"), "")
	if err != nil {
		return nil, fmt.Errorf("list actors: %w", err)
	}
	known := map[bool][]vocab.ID{}
	var written string
	var follows bool
	_, err = pgx.ForEachRow(rows, []any{&written, &follows}, func() error {
		if id, err := vocab.ParseID(written); err == nil {
			known[follows] = append(known[follows], id)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list actors: %w", err)
	}
	return known, nil
}
