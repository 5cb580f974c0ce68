package db_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

// before returns migrations. The parameter changes has the name of a change for each set of
// migrations, and before returns those that are older.
func before(t *testing.T, changes map[string]string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	for set, change := range changes {
		names, err := fs.Glob(migrations.FS, set+"/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(name, change+".down.sql") {
				break
			}
			b, err := migrations.FS.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[path.Clean(name)] = &fstest.MapFile{Data: b}
		}
	}
	return all
}

// openBefore opens a cluster with the migrations that before() returns, as an earlier engine did.
// It also returns the configuration with which this engine opens the cluster.
func openBefore(t *testing.T, changes map[string]string) (old *db.Cluster, now db.Config) {
	t.Helper()
	now = destroyed(t, dbtest.Config(t))
	cfg := now
	cfg.Template, cfg.InstanceTemplate = "", ""
	old = open(t, cfg.WithMigrations(before(t, changes)))
	templates := func() []string {
		return held(t, "postgres", `SELECT datname FROM pg_database WHERE datname LIKE '`+cfg.Name+`-template-%'`)
	}
	if n := len(templates()); n != 1 {
		t.Fatalf("%d templates of before, want 1", n)
	}
	t.Cleanup(func() {
		for _, name := range templates() {
			run(t, "postgres", `DROP DATABASE "`+strings.Trim(name, `()"`)+`"`)
		}
	})
	return old, now
}

// userBefore makes alice in a cluster of openBefore. It activates her by a statement of its own,
// because that of this engine sets columns that an earlier instance database lacks.
func userBefore(t *testing.T, old *db.Cluster, instance string) vocab.Username {
	t.Helper()
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Instance.Users.Reserve(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	if err := old.CreateUserDatabase(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	run(t, instance, `UPDATE users SET state = 'active'`)
	return alice
}

// oldJob stores a job with the number {n} about the note {o}, with one delivery.
const oldJob = `INSERT INTO delivery_jobs (id, activity_uri, object_uri, type, body, created_at, dedupe_hash)
		VALUES ('00000000-0000-0000-0000-00000000000{n}', 'https://us.example/a/{n}', 'https://us.example/{o}', '{type}', 'words of {n}', timestamptz '2026-01-01' + interval '{n} day', '{n}');
	INSERT INTO deliveries (job_id, inbox, host, targets, next_at, status, last_error, last_answer, attempts)
		VALUES ('00000000-0000-0000-0000-00000000000{n}', 'https://p.example/inbox', 'p.example', '{}', now(), '{status}', 'no', 'you said: words of {n}', 1)`

func oldJobs(jobs ...[4]string) (rows []string) {
	for _, j := range jobs {
		rows = append(rows, strings.NewReplacer("{n}", j[0], "{o}", j[1], "{type}", j[2], "{status}", j[3]).Replace(oldJob))
	}
	return rows
}

// upgrades lists the changes that a migration makes to rows of earlier engines.
var upgrades = []struct {
	name, query string
	ofInstance  bool
	rows, want  []string
}{
	{name: "records of actions keep ids and settings, and no words", query: `SELECT action, params FROM audit ORDER BY id`,
		rows: []string{`INSERT INTO audit (at, action, outcome, params) VALUES (now(), 'Reply', 'ok', '{"objectId":"https://p.example/1","content":"secret","summary":"too"}'),
			(now(), 'SendMessage', 'ok', '{"content":"secret"}'), (now(), 'Follow', 'ok', '{"actorUri":"https://p.example/u"}'), (now(), 'Logout', 'ok', '{}')`},
		want: []string{`(Reply,"{""objectId"": ""https://p.example/1""}")`, `(SendMessage,{})`, `(Follow,"{""actorUri"": ""https://p.example/u""}")`, `(Logout,{})`}},
	{name: "a delivery of before may have been tried", query: `SELECT tried FROM deliveries WHERE inbox = 'https://p.example/tried'`,
		rows: append(oldJobs([4]string{"1", "0", "Follow", "pending"}), `UPDATE deliveries SET inbox = 'https://p.example/tried' WHERE job_id = '00000000-0000-0000-0000-000000000001'`),
		want: []string{"(t)"}},
	{name: "a Create of a post that was edited holds the words of now, and no proof of those before", query: `SELECT uri, raw FROM activities ORDER BY uri`,
		rows: []string{`INSERT INTO objects (id, uri, published, raw, updated_at, deleted_at) VALUES
				(gen_random_uuid(), 'https://us.example/edited', now(), '{"content":"new"}', now(), NULL),
				(gen_random_uuid(), 'https://us.example/same', now(), '{"content":"same"}', NULL, NULL)`,
			`INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw) VALUES
				(gen_random_uuid(), '1', 'outbound', 'Create', 'u', 'https://us.example/edited', now(), '{"object":{"content":"old"},"proof":{}}'),
				(gen_random_uuid(), '2', 'outbound', 'Create', 'u', 'https://us.example/same', now(), '{"object":{"content":"same"},"proof":{}}'),
				(gen_random_uuid(), '3', 'outbound', 'Like', 'u', 'https://us.example/edited', now(), '{"object":"https://us.example/edited"}')`},
		want: []string{`(1,"{""object"": {""content"": ""new""}}")`, `(2,"{""proof"": {}, ""object"": {""content"": ""same""}}")`, `(3,"{""object"": ""https://us.example/edited""}")`}},
	{name: "words that were taken back are not sent again, and not kept", query: `SELECT convert_from(j.body, 'UTF8'), d.status, convert_from(d.last_answer, 'UTF8')
			FROM delivery_jobs j JOIN deliveries d ON d.job_id = j.id WHERE j.object_uri IN ('https://us.example/gone', 'https://us.example/there', 'https://us.example/owed') ORDER BY j.created_at`,
		rows: oldJobs([4]string{"2", "gone", "Create", "failed"}, [4]string{"3", "gone", "Delete", "delivered"}, [4]string{"4", "there", "Create", "failed"},
			[4]string{"5", "owed", "Create", "parked"}, [4]string{"6", "owed", "Update", "pending"}),
		want: []string{`("",skipped,)`, `("words of 3",delivered,"you said: words of 3")`, `("words of 4",failed,"you said: words of 4")`,
			`("words of 5",parked,"you said: words of 5")`, `("words of 6",pending,"you said: words of 6")`}},
	{name: "a report counts for the name of its host", query: `SELECT host, domain FROM reports ORDER BY id`, ofInstance: true,
		rows: []string{`INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at) SELECT sha256(convert_to(host, 'UTF8')), '', '', host, '{}', '{}', '', now()
			FROM unnest('{m.example,m.example:8443,127.0.0.1:80,[::1]:80}'::text[]) AS host`},
		want: []string{"(m.example,m.example)", "(m.example:8443,m.example)", "(127.0.0.1:80,127.0.0.1:80)", "([::1]:80,[::1]:80)"}},
}

func TestRowsFromBeforeAreUpgraded(t *testing.T) {
	t.Parallel()
	old, now := openBefore(t, map[string]string{"user": "audit_without_words", "instance": "reporters"})
	databases := map[bool]string{true: now.Name, false: databaseOf(t, old, userBefore(t, old, now.Name))} // true is the key of the instance's database, false that of alice's
	for _, tt := range upgrades {
		run(t, databases[tt.ofInstance], strings.Join(tt.rows, ";"))
	}
	old.Close()
	c := open(t, now)
	if r := migrateUsers(t, c, db.Migration{}); r.Migrated != 1 || len(r.Failures) > 0 {
		t.Fatalf("%+v", r)
	}
	for _, tt := range upgrades {
		if d := cmp.Diff(tt.want, held(t, databases[tt.ofInstance], tt.query)); d != "" {
			t.Errorf("%s:\n%s", tt.name, d)
		}
	}
}
