package dump_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/dump"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// copied is the part of a backup that describes one database.
type copied struct {
	shape dump.Shape
	rows  map[string][]byte
}

// backup is a backup of a whole instance.
type backup struct {
	instance copied
	users    map[vocab.Username]copied
	known    map[vocab.Username]map[string][]byte
}

func take(t *testing.T, c *db.Cluster) backup {
	t.Helper()
	b := backup{users: map[vocab.Username]copied{}, known: map[vocab.Username]map[string][]byte{}}
	var users []instance.User
	err := dump.New(c).SnapshotInstance(t.Context(), func(ctx context.Context, s *dump.Snapshot) error {
		var err error
		if users, err = s.Users(ctx); err != nil {
			return err
		}
		b.instance, err = copyAll(ctx, s, func(x dump.Table) bool { return x.Owner == "" || x.Name == "users" })
		for _, u := range users {
			b.known[u.Name] = map[string][]byte{}
			for _, x := range s.Shape.Tables {
				var out bytes.Buffer
				if x.Owner == "" || x.Name == "users" {
					continue
				}
				if _, err := s.Copy(ctx, x, u.Name, &out); err != nil {
					return err
				}
				b.known[u.Name][x.Name] = out.Bytes()
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		err := dump.New(c).SnapshotUser(t.Context(), u, func(ctx context.Context, s *dump.Snapshot) error {
			var err error
			b.users[u.Name], err = copyAll(ctx, s, func(dump.Table) bool { return true })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func copyAll(ctx context.Context, s *dump.Snapshot, which func(dump.Table) bool) (copied, error) {
	d := copied{s.Shape, map[string][]byte{}}
	for _, x := range s.Shape.Tables {
		if !which(x) {
			continue
		}
		var out bytes.Buffer
		if _, err := s.Copy(ctx, x, vocab.Username{}, &out); err != nil {
			return d, err
		}
		d.rows[x.Name] = out.Bytes()
	}
	return d, nil
}

// restoring runs work() with a restoration, and closes the restoration.
func restoring(t *testing.T, c *db.Cluster, work func(r *dump.Restoration)) {
	t.Helper()
	r, err := dump.New(c).BeginRestoration(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	work(r)
}

func fill(ctx context.Context, r *dump.Restoration, u vocab.Username, d copied) error {
	if err := r.Begin(ctx, u, d.shape); err != nil {
		return err
	}
	for _, x := range d.shape.Tables {
		if _, err := r.Copy(ctx, u, x.Name, bytes.NewReader(d.rows[x.Name])); err != nil {
			return err
		}
	}
	return nil
}

// build fills the instance database, and the databases of the users in the parameter users.
func build(t *testing.T, r *dump.Restoration, b backup, users ...vocab.Username) (fenced int64) {
	t.Helper()
	err := fill(t.Context(), r, vocab.Username{}, b.instance)
	for _, u := range users {
		err = errors.Join(err, fill(t.Context(), r, u, b.users[u]))
		for _, x := range b.instance.shape.Tables {
			if rows, ok := b.known[u][x.Name]; ok {
				_, failed := r.CopyKnown(t.Context(), x.Name, bytes.NewReader(rows))
				err = errors.Join(err, failed)
			}
		}
	}
	fenced, failed := r.Finish(t.Context())
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return fenced
}

// restore restores all of the backup b into c.
func restore(t *testing.T, c *db.Cluster, b backup, users ...vocab.Username) (fenced int64) {
	t.Helper()
	restoring(t, c, func(r *dump.Restoration) {
		fenced = build(t, r, b, users...)
		if _, err := r.Commit(t.Context(), vocab.Username{}, false); err != nil {
			t.Fatal(err)
		}
	})
	return fenced
}

// everything adds rows to every table of u's database and of the instance database. The values in
// the rows are hard to copy.
func everything(t *testing.T, c *db.Cluster, u vocab.Username, name string) {
	t.Helper()
	const hard = `E'back\\slash \\N \\. tab\t line\nfeed\rquote''"; \u202e ünïcödé 🦝 \x7f'`
	for _, q := range []string{
		`INSERT INTO actors VALUES ('https://a.example/1', 'Person', ` + hard + `, 'i', '', NULL, '', to_jsonb(` + hard + `::text), 'infinity', '0044-03-15 BC')`,
		`INSERT INTO objects SELECT gen_random_uuid(), 'https://a.example/o/' || n, now(), jsonb_build_object('content', ` + hard + `, 'n', 1e300, 'big', repeat('x', n)), now(), NULL, NULL FROM generate_series(1, 3000) n`,
		`INSERT INTO activities VALUES (gen_random_uuid(), ` + hard + `, 'inbound', 'Create', 'a', NULL, '2026-03-01 12:00:00.123456+05:30', '{"a":null}')`,
		`INSERT INTO seen SELECT sha256(n::text::bytea) FROM generate_series(1, 500) n`,
		`INSERT INTO tombstones VALUES ('\x00ff5c5c4e0a')`,
		`INSERT INTO relationships VALUES (gen_random_uuid(), 'a', 'friend', ` + hard + `, 'pending', 'f')`,
		`INSERT INTO feed VALUES (gen_random_uuid(), 'a', 'b', now())`,
		`INSERT INTO reactions VALUES ('o', 'a', 'review', 'Like', 'l')`,
		`WITH g AS (INSERT INTO groups VALUES (gen_random_uuid(), 'g', 'https://g', now(), 'https://a') RETURNING id) INSERT INTO group_members SELECT id, ` + hard + `, now(), 'https://a' FROM g`,
		`INSERT INTO unnamed_recipients VALUES ('https://o', 'https://g', ARRAY[` + hard + `])`,
		`INSERT INTO delivery_jobs (id, activity_uri, type, body, created_at, dedupe_hash) VALUES ('00000000-0000-7000-8000-000000000001', 'a', 'Create', '\x00', now(), '\x01')`,
		`INSERT INTO deliveries (job_id, inbox, host, targets, status, attempts, next_at, lease_owner, last_answer, last_headers) VALUES
			('00000000-0000-7000-8000-000000000001', 'remote', 'a.example', ARRAY['', NULL, '{",', ` + hard + `], 'pending', 0, now() + interval '1 hour', 'a process', '\x00ff0a', 'Server: ' || ` + hard + `),
			('00000000-0000-7000-8000-000000000001', 'local', '', '{}', 'pending', 0, now() + interval '1 hour', 'a process', '', NULL),
			('00000000-0000-7000-8000-000000000001', 'sent', 'a.example', '{}', 'delivered', 1, now(), NULL, NULL, NULL)`,
		`INSERT INTO event_outbox (type, source, payload, created_at) SELECT 'create.received', 'ap', '{}', now() FROM generate_series(1, 42)`,
		`INSERT INTO audit (at, action, params, outcome) VALUES (now(), 'CreateNote', '{}', 'ok')`,
		`INSERT INTO idempotency_keys VALUES ('key', '\x01', '{}', now())`,
		`INSERT INTO poison VALUES ('p', '\x0001ff', ` + hard + `)`,
		`INSERT INTO blocks VALUES ('\x01', 'outbound', ` + hard + `, 'b', now())`,
		`INSERT INTO ended_activities VALUES ('\x01', now())`,
		`INSERT INTO moves VALUES ('\x01', '\x02', now())`,
		`INSERT INTO requests VALUES ('r', ` + hard + `, 'h', now())`,
		`INSERT INTO correspondents VALUES (` + hard + `, now())`,
		`INSERT INTO feed_marks VALUES ('main', now(), gen_random_uuid())`,
		`INSERT INTO search_index VALUES ('https://o', gen_random_uuid(), '1', now(), $$'a':1 'b':2$$)`,
		`INSERT INTO search_progress VALUES (true, gen_random_uuid(), gen_random_uuid())`,
		`INSERT INTO conversations VALUES ('00000000-0000-7000-8000-000000000002', 'https://c', 'encrypted', ` + hard + `, 'urn:uuid:1', NULL, 0, now())`,
		`INSERT INTO objects (id, uri, published, raw) VALUES (gen_random_uuid(), 'https://o/letter', now(), '{}')`,
		`INSERT INTO conversation_entries VALUES ('00000000-0000-7000-8000-000000000002', 1, 0, 'note', 'https://o/letter', true, now())`,
		`INSERT INTO conversation_members VALUES ('00000000-0000-7000-8000-000000000002', ` + hard + `, 'admin', 0)`,
		`INSERT INTO mls_conversations VALUES ('00000000-0000-7000-8000-000000000002', 0, 0, 7, 1, 'closed', '\x00ff', ARRAY[` + hard + `], NULL, now())`,
		`INSERT INTO mls_log VALUES ('00000000-0000-7000-8000-000000000002', 1, 0, 6, 'commit', 'a', '\x00ff0a', '\x01', now())`,
		`INSERT INTO mls_early VALUES (DEFAULT, '00000000-0000-7000-8000-000000000002', 0, 8, ` + hard + `, '\x00ff0a', '\x01', now())`,
		`INSERT INTO mls_welcomes VALUES (gen_random_uuid(), '00000000-0000-7000-8000-000000000002', ` + hard + `, '\x01', '\x00ff0a', 'available', NULL, now())`,
		`INSERT INTO mls_joined VALUES ('00000000-0000-7000-8000-000000000002', 0, 7, 2, 1, 1, 'frozen', NULL, ARRAY[` + hard + `], now())`,
		`INSERT INTO mls_inbox (group_id, generation, epoch, kind, sender_uri, object_uri, content, content_hash, blocked, activity, content_at, received_at)
			VALUES (` + hard + `, 0, 7, 'opaque', 'a', 'o', '\x00ff0a', '\x01', true, ` + hard + `, -1, now())`,
		`INSERT INTO mls_held VALUES ('00000000-0000-7000-8000-000000000002', '\x01', 0, 'https://a', '\x00ff0a', ARRAY[` + hard + `], ARRAY[` + hard + `], now())`,
		`INSERT INTO mls_key_packages VALUES (gen_random_uuid(), '\x00ff', ` + hard + `, 1, '\x00ff', true, now(), 'available', NULL, NULL, false, now())`,
		`INSERT INTO pins VALUES (` + hard + `, 'o', 'a', now())`,
		`WITH s AS (INSERT INTO streams VALUES (gen_random_uuid(), 's', ARRAY[` + hard + `], 'https://s', 'a', now()) RETURNING id)
			INSERT INTO stream_objects SELECT id, 'o', gen_random_uuid(), 'a', now() FROM s`,
		`INSERT INTO attempts VALUES (gen_random_uuid(), now(), 3)`,
		`INSERT INTO event_window VALUES (true, 42, 42, 7)`,
		`INSERT INTO event_groups VALUES ('llm', 7, now())`,
		`INSERT INTO votes VALUES ('q', ` + hard + `, 1, now())`,
		`INSERT INTO archived_posts VALUES ('o', gen_random_uuid(), 'a', ` + hard + `, now(), '{}', '{}', '{}')`,
	} {
		run(t, databaseOf(t, c, u), q)
	}
	for _, q := range []string{
		`INSERT INTO acquaintances VALUES ('https://a.example/1', '` + u.String() + `', true), (` + hard + `, '` + u.String() + `', false)`,
		`INSERT INTO tokens VALUES (gen_random_uuid(), sha256('` + u.String() + `'), '` + u.String() + `', ` + hard + `, '{read,write}', now(), NULL, NULL)`,
		`INSERT INTO tokens (id, digest, username, scopes, password) VALUES (gen_random_uuid(), sha256('password of ` + u.String() + `'), '` + u.String() + `', '{read,write}', ` + hard + `)`,
		`INSERT INTO actors VALUES ('https://` + u.String() + `.example', 'a.example', NULL, '{}', now()) ON CONFLICT DO NOTHING`,
		`INSERT INTO actor_keys VALUES ('https://` + u.String() + `.example#k', 'https://` + u.String() + `.example')`,
		`INSERT INTO wishes VALUES ('` + u.String() + `', 'follow', ` + hard + `, 'a.example', 0, now())`,
		`INSERT INTO hosts VALUES ('` + u.String() + `.example', 'cavage')`,
		`INSERT INTO intake (uri_digest, actor_digest, raw, recipients, named) VALUES (sha256('` + u.String() + `'), '\x00', ` + hard + `, '{alice,bob}', '{bob}')`,
		`INSERT INTO intake_waiting SELECT '` + u.String() + `', max(seq) FROM intake`,
		`INSERT INTO ignored VALUES (sha256('` + u.String() + `'), 'nobody', ` + hard + `, now())`,
		`INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at, domain)
			VALUES (sha256('` + u.String() + `'), 'f', 'a', 'h', '{o}', '{alice}', ` + hard + `, now(), 'h')`,
	} {
		run(t, name, q)
	}
}

// contents returns the sorted rows of each table of a database, as the PostgreSQL server prints
// them.
func contents(t *testing.T, database string) map[string]string {
	t.Helper()
	conn := session(t, database)
	if _, err := conn.Exec(t.Context(), `SET datestyle = 'ISO'`); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('schema_migrations', 'serving')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range tables {
		var text string
		if err := conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(x::text, E'\n' ORDER BY x::text), '') FROM `+name+` x`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		all[name] = text
	}
	if err := conn.Close(t.Context()); err != nil { // PostgreSQL renames only a database that has no connections
		t.Fatal(err)
	}
	return all
}

func TestEveryTableComesBackAsItWas(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	alice, bob := dbtest.User(t, c, "alice"), dbtest.User(t, c, "bob")
	everything(t, c, alice, cfg.Name)
	everything(t, c, bob, cfg.Name)
	run(t, databaseOf(t, c, bob), `ALTER DATABASE "`+databaseOf(t, c, bob)+`" SET datestyle = 'German'`) // a PostgreSQL server may have any settings
	if err := c.Instance.Users.SetState(t.Context(), bob, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Instance.SetOrigin(t.Context(), "", "https://example.org"); err != nil {
		t.Fatal(err)
	}
	b := take(t, c)
	for name, rows := range b.users[alice].rows {
		if len(rows) == 0 {
			t.Errorf("table %s has no row: this test must put one there", name)
		}
	}

	to, toCfg := named(t)
	run(t, toCfg.Name, `INSERT INTO hosts VALUES ('of.the.new.instance', 'cavage')`)
	if fenced := restore(t, to, b, alice, bob); fenced != 2 {
		t.Errorf("%d deliveries were fenced, want one of each user", fenced)
	}
	for _, u := range []vocab.Username{alice, bob} {
		want, got := contents(t, databaseOf(t, c, u)), contents(t, databaseOf(t, to, u))
		delete(want, "deliveries")
		delete(got, "deliveries")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the database of %s: %.2000s", u, d)
		}
	}
	want, got := contents(t, cfg.Name), contents(t, toCfg.Name)
	for name := range want {
		want[name] = strings.ReplaceAll(want[name], cfg.Name+"_", toCfg.Name+"_")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the instance database: %.2000s", d)
	}
	if row, err := to.Instance.Users.Find(t.Context(), bob); err != nil || row.State != instance.UserSuspended || row.Database != toCfg.Name+"_bob" {
		t.Errorf("bob is %+v, %v", row, err)
	}

	if n := number(t, toCfg.Name, `SELECT nextval('intake_seq_seq')`); n < 1_000_000_000 || n >= 1<<40 {
		t.Errorf("the next activity that is resubmitted has number %d, want a new one below those of arrivals", n)
	}

	// The restore sends none of the deliveries in the backup. No event number is assigned
	// twice.
	database := databaseOf(t, to, alice)
	for query, want := range map[string]int64{
		`SELECT count(*) FROM deliveries WHERE inbox = 'remote' AND status = 'skipped' AND lease_owner IS NULL AND tried AND last_error LIKE '%2026-03-01T12:00:00Z'`:  1,
		`SELECT count(*) FROM deliveries WHERE inbox = 'local' AND status = 'pending' AND lease_owner IS NULL AND next_at <= now()`:                                    1,
		`SELECT count(*) FROM deliveries WHERE inbox = 'sent' AND status = 'delivered' AND last_error IS NULL`:                                                         1,
		`INSERT INTO event_outbox (type, source, payload, created_at) VALUES ('t', 's', '{}', now()) RETURNING (seq > 1000000000 AND seq < 9007199254740992)::integer`: 1,
	} {
		if got := number(t, database, query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	usable(t, to, alice, true, dbtest.Schema())
}

func TestABackupOfAnOlderSchemaIsMigrated(t *testing.T) {
	t.Parallel()
	old, oldCfg := named(t)
	alice := dbtest.User(t, old, "alice")
	everything(t, old, alice, oldCfg.Name)
	b := take(t, old)
	to, _, _ := upgraded(t)
	restore(t, to, b, alice)
	usable(t, to, alice, true, dbtest.Schema()+1)
	if got := number(t, databaseOf(t, to, alice), `SELECT count(*) FROM feed WHERE extra IS NULL`); got != 1 {
		t.Errorf("%d rows in feed have the column of the next release, want 1", got)
	}

	// The schema of this backup is newer than that of the server. The server refuses the
	// backup.
	newer := take(t, to)
	restoring(t, old, func(r *dump.Restoration) {
		if err := r.Begin(t.Context(), alice, newer.users[alice].shape); fault.KindOf(err) != fault.Config {
			t.Errorf("a newer schema: %v, want Config", err)
		}
	})
}

func TestOneUserIsRestoredBesideTheOthers(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	alice, bob := dbtest.User(t, c, "alice"), dbtest.User(t, c, "bob")
	everything(t, c, alice, cfg.Name)
	everything(t, c, bob, cfg.Name)
	b := take(t, c)
	run(t, cfg.Name, `DELETE FROM tokens`)
	run(t, cfg.Name, `DELETE FROM acquaintances WHERE NOT follows`)
	run(t, cfg.Name, `UPDATE acquaintances SET follows = false`)
	run(t, databaseOf(t, c, alice), `DELETE FROM feed`)
	others, before := contents(t, databaseOf(t, c, bob)), contents(t, databaseOf(t, c, alice))

	var aside string
	restoring(t, c, func(r *dump.Restoration) {
		build(t, r, b, alice)
		if _, err := r.Commit(t.Context(), alice, false); fault.KindOf(err) != fault.Conflict {
			t.Fatalf("over a database that is there: %v, want Conflict", err)
		}
		if d := cmp.Diff(before, contents(t, databaseOf(t, c, alice))); d != "" {
			t.Errorf("what was refused changed the database: %.1000s", d)
		}
		holding := dbtest.Database(t, databaseOf(t, c, alice))
		if err := holding.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Commit(t.Context(), alice, true); fault.KindOf(err) != fault.Busy {
			t.Fatalf("while somebody uses the database: %v, want Busy", err)
		}
		holding.SetMaxIdleConns(0) // closes the open connections
		var err error
		aside, err = r.Commit(t.Context(), alice, true)
		if err != nil || !strings.HasPrefix(aside, cfg.Name+"_alice-replaced-") {
			t.Fatalf("replaced %q, %v", aside, err)
		}
	})
	t.Cleanup(func() { run(t, "postgres", `DROP DATABASE "`+aside+`"`) })
	if got := number(t, databaseOf(t, c, alice), `SELECT count(*) FROM feed`); got != 1 {
		t.Errorf("alice has %d rows in feed, want the one of the backup", got)
	}
	if d := cmp.Diff(before, contents(t, aside)); d != "" {
		t.Errorf("the database that was put aside: %.1000s", d)
	}
	if d := cmp.Diff(others, contents(t, databaseOf(t, c, bob))); d != "" {
		t.Errorf("bob's database changed: %.1000s", d)
	}
	// Before the restore, the instance already had tokens and acquaintances of the user. It
	// keeps those tokens, and all acquaintances of the user.
	if got := number(t, cfg.Name, `SELECT count(*) FROM tokens`); got != 0 {
		t.Errorf("%d revoked tokens came back", got)
	}
	if got := number(t, cfg.Name, `SELECT count(*) * 10 + count(*) FILTER (WHERE follows) FROM acquaintances WHERE username = 'alice'`); got != 21 {
		t.Errorf("alice's acquaintances are %d, want two, one of them followed", got)
	}
	if got := number(t, cfg.Name, `SELECT count(*) * 10 + count(*) FILTER (WHERE follows) FROM acquaintances WHERE username = 'bob'`); got != 10 {
		t.Errorf("bob's acquaintances are %d, want the one that was left", got)
	}
}

func TestAUserUnknownToTheInstanceIsRestored(t *testing.T) {
	t.Parallel()
	from, fromCfg := named(t)
	alice := dbtest.User(t, from, "alice")
	everything(t, from, alice, fromCfg.Name)
	b := take(t, from)
	c, cfg := named(t)
	bob := dbtest.User(t, c, "bob")
	restoring(t, c, func(r *dump.Restoration) {
		build(t, r, b, alice)
		if _, err := r.Commit(t.Context(), alice, false); err != nil {
			t.Fatal(err)
		}
	})
	usable(t, c, alice, true, dbtest.Schema())
	usable(t, c, bob, true, dbtest.Schema())
	for query, want := range map[string]int64{
		`SELECT count(*) FROM tokens WHERE username = 'alice'`:        2, // one of the two is the token made by the password
		`SELECT count(*) FROM acquaintances WHERE username = 'alice'`: 2,
		`SELECT count(*) FROM intake`:                                 0,
		`SELECT count(*) FROM actors`:                                 0,
	} {
		if got := number(t, cfg.Name, query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

func TestWhatIsInTheWayIsSaid(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	alice, gone, half, lost, nobody := dbtest.User(t, c, "alice"), dbtest.User(t, c, "gone"), name(t, "half"), dbtest.User(t, c, "lost"), name(t, "nobody")
	if err := c.Instance.Users.SetState(t.Context(), gone, instance.UserDeleted); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Instance.Users.Reserve(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	run(t, "postgres", `DROP DATABASE "`+databaseOf(t, c, lost)+`"`)
	run(t, "postgres", `CREATE DATABASE "`+cfg.Name+`_nobody"`)
	t.Cleanup(func() { run(t, "postgres", `DROP DATABASE "`+cfg.Name+`_nobody"`) })
	for _, tt := range []struct {
		user    vocab.Username
		replace bool
		want    fault.Kind
	}{
		{vocab.Username{}, false, fault.Conflict},
		{alice, false, fault.Conflict},
		{alice, true, 0},
		{gone, true, fault.Conflict},
		{half, true, fault.Conflict},
		{lost, false, 0},
		{name(t, "new"), false, 0},
		{nobody, false, fault.Conflict},
		{nobody, true, 0},
	} {
		if err := dump.New(c).Obstacle(t.Context(), tt.user, []vocab.Username{tt.user}, tt.replace); fault.KindOf(err) != tt.want || (err == nil) != (tt.want == 0) {
			t.Errorf("%q, replace %t: %v, want kind %d", tt.user, tt.replace, err, tt.want)
		}
	}
}

func TestRowsThatDoNotFitChangeNothing(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	alice := dbtest.User(t, c, "alice")
	good := take(t, c)
	before := contents(t, databaseOf(t, c, alice))
	broken := errors.New("the disk is broken")
	for _, tt := range []struct {
		name string
		do   func(r *dump.Restoration) error
		want fault.Kind
	}{
		{"rows of another shape", func(r *dump.Restoration) error {
			_, err := r.Copy(t.Context(), alice, "feed", strings.NewReader("one\ttwo\n"))
			return err
		}, fault.Invalid},
		{"rows that break a rule", func(r *dump.Restoration) error {
			_, err := r.Copy(t.Context(), alice, "group_members", strings.NewReader("00000000-0000-7000-8000-000000000001\ta\t2026-01-01\tb\n"))
			return err
		}, fault.Invalid},
		{"a table that is not there", func(r *dump.Restoration) error {
			_, err := r.Copy(t.Context(), alice, `feed" (id) FROM PROGRAM 'true'--`, strings.NewReader(""))
			return err
		}, fault.Invalid},
		{"somebody else's rows", func(r *dump.Restoration) error {
			_, err := r.Copy(t.Context(), name(t, "bob"), "feed", strings.NewReader(""))
			return err
		}, fault.Invalid},
		{"an archive that cannot be read on", func(r *dump.Restoration) error {
			_, err := r.Copy(t.Context(), alice, "feed", io.MultiReader(strings.NewReader("x"), failing{broken}))
			if !errors.Is(err, broken) {
				return fmt.Errorf("%w, want it to say why reading failed", err)
			}
			return nil
		}, 0},
		{"a shape that is not the schema's", func(r *dump.Restoration) error {
			shape := good.users[alice].shape
			shape.Tables = append(slices.Clone(shape.Tables), dump.Table{Name: "more", Columns: []string{"a"}})
			return r.Begin(t.Context(), name(t, "bob"), shape)
		}, fault.Invalid},
		{"a sequence that no schema has", func(r *dump.Restoration) error {
			shape := good.users[alice].shape
			shape.Sequences = []dump.Sequence{{Name: "x'; DROP TABLE feed", Last: 1}}
			return r.Begin(t.Context(), name(t, "bob"), shape)
		}, fault.Invalid},
		{"no schema", func(r *dump.Restoration) error { return r.Begin(t.Context(), name(t, "bob"), dump.Shape{}) }, fault.Config},
	} {
		restoring(t, c, func(r *dump.Restoration) {
			err := errors.Join(r.Begin(t.Context(), vocab.Username{}, good.instance.shape), r.Begin(t.Context(), alice, good.users[alice].shape))
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.do(r); fault.KindOf(err) != tt.want || (err == nil) != (tt.want == 0) {
				t.Errorf("%s: %v, want kind %d", tt.name, err, tt.want)
			}
		})
	}
	if d := cmp.Diff(before, contents(t, databaseOf(t, c, alice))); d != "" {
		t.Errorf("the database changed: %.1000s", d)
	}
	if got := number(t, "postgres", `SELECT count(*) FROM pg_database WHERE starts_with(datname, '`+cfg.Name+`') AND datname LIKE '%-restoring'`); got != 0 {
		t.Errorf("%d databases were left", got)
	}
}

// failing is a reader that always returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestOneProcessRestoresAtATime(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	run(t, "postgres", `CREATE DATABASE "`+cfg.Name+`_alice-restoring"`)
	restoring(t, c, func(*dump.Restoration) { // BeginRestoration drops what a killed restoration left
		if got := number(t, "postgres", `SELECT count(*) FROM pg_database WHERE datname = '`+cfg.Name+`_alice-restoring'`); got != 0 {
			t.Error("what a killed restoration left is still there")
		}
		if _, err := dump.New(c).BeginRestoration(t.Context(), now); fault.KindOf(err) != fault.Busy || !strings.Contains(err.Error(), "process") {
			t.Errorf("a second restoration: %v, want Busy and where the first one runs", err)
		}
	})
	restoring(t, c, func(*dump.Restoration) {})
}

// An actor that was blocked after the backup was made stays blocked after the restore. The actor
// does not follow the user, and reads and receives nothing.
func TestBlocksAfterTheBackupOutliveIt(t *testing.T) {
	t.Parallel()
	const mallory, eve, carol = vocab.ID("https://a.example/mallory"), vocab.ID("https://a.example/eve"), vocab.ID("https://a.example/carol")
	c, cfg := named(t)
	alice := dbtest.User(t, c, "alice")
	write := func(work func(context.Context, *user.Tx) error) {
		t.Helper()
		serving, err := db.Open(t.Context(), cfg, quiet) // this engine ends before the restore
		if err != nil {
			t.Fatal(err)
		}
		defer serving.Close()
		if err := serving.Write(t.Context(), alice, work); err != nil {
			t.Fatal(err)
		}
	}
	group := user.Group{ID: uuid.New(), Name: "friends", URI: "https://here.example/users/alice/groups/1", Activity: "https://here.example/1"}
	write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Groups.Add(ctx, group, now); err != nil {
			return err
		}
		for _, a := range []vocab.ID{mallory, eve, carol} {
			for _, kind := range []string{user.Follower, user.Following} {
				if err := tx.Relationships.Set(ctx, user.Relationship{Actor: a, Type: kind, Status: user.Accepted, Activity: a + "/follow"}, now); err != nil {
					return err
				}
			}
			if err := tx.Groups.AddMember(ctx, group.ID, a, "https://here.example/2", now); err != nil {
				return err
			}
			local := user.Inbox{URL: a + "/inbox", Targets: []vocab.ID{a}} // a restore does not skip deliveries to local inboxes
			err := tx.Deliveries.Enqueue(ctx, user.Job{ID: uuid.New(), Activity: "https://here.example/create" + a, Type: "Create", Body: []byte("{}"),
				Audience: []vocab.ID{"https://here.example/users/alice/followers"}}, []user.Inbox{local}, now)
			if err != nil {
				return err
			}
			if err := tx.Feed.Add(ctx, user.FeedEntry{ID: uuid.New(), Activity: a + "/1", Actor: a, Published: now}); err != nil {
				return err
			}
		}
		return nil
	})
	b := take(t, c)
	write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Blocks.Add(ctx, user.Block{Actor: mallory, Direction: user.Outbound, Activity: "https://here.example/3"}, now); err != nil {
			return err
		}
		return tx.Blocks.Add(ctx, user.Block{Actor: eve, Direction: user.Inbound, Activity: "https://a.example/3"}, now)
	})
	restoring(t, c, func(r *dump.Restoration) {
		build(t, r, b, alice)
		aside, err := r.Commit(t.Context(), alice, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { run(t, "postgres", `DROP DATABASE "`+aside+`"`) })
		if r.Blocks() != 2 {
			t.Errorf("%d blocks were taken over, want 2", r.Blocks())
		}
	})
	for query, want := range map[string]int{
		`SELECT count(*) FROM blocks WHERE actor_uri = '` + string(mallory) + `' AND direction = 'outbound' AND activity_uri = 'https://here.example/3'`: 1,
		`SELECT count(*) FROM blocks WHERE actor_uri = '` + string(eve) + `' AND direction = 'inbound'`:                                                  1,
		`SELECT count(*) FROM relationships WHERE actor_uri <> '` + string(carol) + `'`:                                                                  0,
		`SELECT count(*) FROM relationships WHERE actor_uri = '` + string(carol) + `'`:                                                                   2,
		`SELECT count(*) FROM group_members WHERE actor_uri <> '` + string(carol) + `'`:                                                                  0,
		`SELECT count(*) FROM group_members WHERE actor_uri = '` + string(carol) + `'`:                                                                   1,
		`SELECT count(*) FROM deliveries WHERE status = 'pending' AND '` + string(mallory) + `' = ANY(targets)`:                                          0,
		`SELECT count(*) FROM deliveries WHERE status = 'pending' AND '` + string(carol) + `' = ANY(targets)`:                                            1,
		`SELECT count(*) FROM feed WHERE actor_uri = '` + string(mallory) + `'`:                                                                          0,
	} {
		if got := number(t, cfg.Name+"_alice", query); got != int64(want) {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}
