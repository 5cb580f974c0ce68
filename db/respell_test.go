package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// spelledRows are the statements that fill every table of a user's database with rows of an engine
// older than canonical ids. They run once for each spelling. {i} is the spelling, {n} is the
// number of the spelling, from 0, and {m} is the number of its actor. The row with the highest {n}
// is the newest.
var spelledRows = []string{
	`INSERT INTO actors (uri, type, inbox, shared_inbox, raw, fetched_at) VALUES ('{i}', 'Person', '{i}/inbox', '{i}/shared', '{"id":"{i}","n":{n}}', timestamptz '2026-01-01' + interval '{n} day')`,
	`INSERT INTO relationships (id, actor_uri, type, status, activity_uri, created_at, updated_at) VALUES (gen_random_uuid(), '{i}', 'follower',
		(ARRAY['pending', 'accepted', 'rejected', 'pending'])[{n} + 1], '{i}/follow', timestamptz '2026-01-01' + interval '{n} day', timestamptz '2026-02-01' + interval '{n} day')`,
	`INSERT INTO group_members (group_id, actor_uri, activity_uri, added_at) SELECT id, '{i}', 'https://us.example/{n}', timestamptz '2026-01-01' + interval '{n} day' FROM groups`,
	`INSERT INTO reactions (object_uri, actor_uri, kind, type, activity_uri, created_at) VALUES ('https://us.example/1', '{i}', 'review', (ARRAY['Like', 'Dislike', 'Like', 'Dislike'])[{n} + 1], '{i}/like', timestamptz '2026-01-01' + interval '{n} day')`,
	`INSERT INTO reactions (object_uri, actor_uri, kind, type, activity_uri, created_at) VALUES ('{i}/1', 'https://us.example/alice', 'announce', 'Announce', 'https://us.example/a/{n}', timestamptz '2026-01-01' + interval '{n} day')`,
	`INSERT INTO pins (actor_uri, object_uri, activity_uri, pinned_at) VALUES ('{i}', '{i}/1', '{i}/pin', now())`,
	`INSERT INTO votes (question_uri, actor_uri, option, voted_at) VALUES ('https://us.example/poll', '{i}', {n} / 2, now())`,
	`INSERT INTO feed (id, activity_uri, actor_uri, published) VALUES (gen_random_uuid(), '{i}/1/create', '{i}', now()), (gen_random_uuid(), 'https://q.example/{n}/{m}', '{i}', now())`,
	`INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw) VALUES (gen_random_uuid(), '{i}/1/create', 'inbound', 'Create', '{i}', '{i}/1', now(),
		'{"id":"{i}/1/create","actor":"{i}","object":"{i}/1","to":["{i}","as:Public"]}')`,
	`INSERT INTO objects (id, uri, published, raw) VALUES (gen_random_uuid(), '{i}/1', timestamptz '2026-01-01' + interval '{n} day', '{"id":"{i}/1","attributedTo":"{i}","content":"{n}","tag":[{"type":"Mention","href":"{i}"}]}')`,
	`INSERT INTO objects (id, uri, published, raw, deleted_at) VALUES (gen_random_uuid(), '{i}/2', timestamptz '2026-01-01', '{"id":"{i}/2"}', CASE {n} WHEN 0 THEN now() END)`,
	`INSERT INTO delivery_jobs (id, activity_uri, object_uri, type, body, created_at, audience, dedupe_hash) VALUES ('00000000-0000-0000-0000-0000000000{m}{n}', 'https://us.example/post', '{i}', 'Follow', '{i}', now(), '{"{i}",https://a.example/u}', '{i}')`,
	`INSERT INTO deliveries (job_id, inbox, host, targets, next_at) VALUES ('00000000-0000-0000-0000-0000000000{m}{n}', '{i}/inbox', 'm.example', '{"{i}",https://a.example/u}', now())`,
	`UPDATE unnamed_recipients SET actors = actors || '{i}'::text`,
	`INSERT INTO poison (uri, raw, reason) VALUES ('{i}/poison', 'x', 'x')`,
}

// spellings has a list for each of two actors: the spellings of the actor's id that an earlier
// engine could have stored.
var spellings = [][]string{
	{"https://M.example/u", "https://m.example/u", "https://m.example:443/u", "HTTPS://m.example/u"},
	{"https://b\u00fccher.example/u", "https://xn--bcher-kva.example/u"},
}

// spell fills a spelling and its two numbers into the query q.
func spell(q, id string, m, n int) string {
	return strings.NewReplacer("{i}", id, "{n}", fmt.Sprint(n), "{m}", fmt.Sprint(m)).Replace(q)
}

// spelled returns a cluster that this engine opened. Its one user, alice, has rows that an engine
// older than canonical ids stored.
func spelled(t *testing.T) (c *db.Cluster, alice vocab.Username, instance, user string) {
	t.Helper()
	old, now := openBefore(t, map[string]string{"user": "written_ids", "instance": "canonical_ids"})
	alice = userBefore(t, old, now.Name)
	instance, user = now.Name, databaseOf(t, old, alice)
	rows := []string{`INSERT INTO groups (id, name, uri, activity_uri) VALUES (gen_random_uuid(), 'g', 'https://us.example/g', 'https://us.example/a')`,
		`INSERT INTO unnamed_recipients VALUES ('https://us.example/1', 'https://us.example/g', '{}')`,
		`INSERT INTO relationships (id, actor_uri, type, status, activity_uri) VALUES (gen_random_uuid(), 'HTTPS://Late.example/u', 'following', 'accepted', 'https://us.example/f')`,
		// Alice blocked EVIL.example's u. The same actor, under other spellings of its id,
		// still follows alice, and alice follows it.
		`INSERT INTO blocks VALUES (sha256('https://evil.example/u'), 'outbound', 'https://EVIL.example/u', 'https://us.example/b', now())`,
		`INSERT INTO relationships (id, actor_uri, type, status, activity_uri) VALUES (gen_random_uuid(), 'https://evil.example:443/u', 'follower', 'accepted', 'https://evil.example/f'),
			(gen_random_uuid(), 'https://evil.example/u', 'following', 'accepted', 'https://us.example/f2')`,
		`INSERT INTO group_members (group_id, actor_uri, activity_uri) SELECT id, 'https://EVIL.example/u', 'https://us.example/g2' FROM groups`}
	var known []string
	for m, ids := range spellings {
		for n, id := range ids {
			for _, q := range spelledRows {
				rows = append(rows, spell(q, id, m, n))
			}
			known = append(known, spell(`INSERT INTO acquaintances VALUES ('{i}', 'alice', {n} = 3)`, id, m, n),
				spell(`INSERT INTO actors (uri, host, handle, raw, fetched_at) VALUES ('{i}', 'm.example', 'u@{m}', '{"id":"{i}","n":{n}}', timestamptz '2026-01-01' + interval '{n} day')`, id, m, n),
				spell(`INSERT INTO actor_keys VALUES ('{i}#key', '{i}')`, id, m, n))
		}
	}
	run(t, user, strings.Join(rows, ";"))
	run(t, instance, strings.Join(known, ";"))
	old.Close()
	return open(t, now), alice, instance, user
}

// respelled lists the rows that alice's database has after the migration.
var respelled = []struct {
	name, query string
	want        []string
}{
	{"the newest copy of an actor", `SELECT uri, inbox, shared_inbox, raw ->> 'n', written FROM actors ORDER BY 1`,
		[]string{"(https://m.example/u,https://m.example/u/inbox,https://m.example/u/shared,3,HTTPS://m.example/u)",
			"(https://xn--bcher-kva.example/u,https://xn--bcher-kva.example/u/inbox,https://xn--bcher-kva.example/u/shared,1,)"}},
	{"one relationship: accepted, the oldest, by the newest Follow", `SELECT actor_uri, type, status, activity_uri, created_at::date, updated_at::date FROM relationships ORDER BY 1`,
		[]string{"(https://late.example/u,following,accepted,https://us.example/f," + "{today},{today})",
			"(https://m.example/u,follower,accepted,https://m.example/u/follow,2026-01-01,2026-02-04)",
			"(https://xn--bcher-kva.example/u,follower,accepted,https://xn--bcher-kva.example/u/follow,2026-01-01,2026-02-02)"}},
	{"one member, by the first Add", `SELECT actor_uri, activity_uri, added_at::date FROM group_members ORDER BY 1`,
		[]string{"(https://m.example/u,https://us.example/0,2026-01-01)", "(https://xn--bcher-kva.example/u,https://us.example/0,2026-01-01)"}},
	{"the newest reaction", `SELECT object_uri, actor_uri, type, activity_uri FROM reactions ORDER BY 1, 2`,
		[]string{"(https://m.example/u/1,https://us.example/alice,Announce,https://us.example/a/3)",
			"(https://us.example/1,https://m.example/u,Dislike,https://m.example/u/like)",
			"(https://us.example/1,https://xn--bcher-kva.example/u,Dislike,https://xn--bcher-kva.example/u/like)",
			"(https://xn--bcher-kva.example/u/1,https://us.example/alice,Announce,https://us.example/a/1)"}},
	{"pins", `SELECT actor_uri, object_uri, activity_uri FROM pins ORDER BY 1`,
		[]string{"(https://m.example/u,https://m.example/u/1,https://m.example/u/pin)",
			"(https://xn--bcher-kva.example/u,https://xn--bcher-kva.example/u/1,https://xn--bcher-kva.example/u/pin)"}},
	{"votes", `SELECT actor_uri, option FROM votes ORDER BY 1, 2`,
		[]string{"(https://m.example/u,0)", "(https://m.example/u,1)", "(https://xn--bcher-kva.example/u,0)"}},
	{"every post in the feed, once", `SELECT actor_uri, count(*), count(*) FILTER (WHERE activity_uri = actor_uri || '/1/create') FROM feed GROUP BY 1 ORDER BY 1`,
		[]string{"(https://m.example/u,5,1)", "(https://xn--bcher-kva.example/u,3,1)"}},
	{"activities", `SELECT uri, actor_uri, object_uri, raw ->> 'actor', raw ->> 'object', raw -> 'to' FROM activities ORDER BY 1`,
		[]string{`(https://m.example/u/1/create,https://m.example/u,https://m.example/u/1,https://m.example/u,https://m.example/u/1,"[""https://m.example/u"", ""as:Public""]")`,
			`(https://xn--bcher-kva.example/u/1/create,https://xn--bcher-kva.example/u,https://xn--bcher-kva.example/u/1,https://xn--bcher-kva.example/u,https://xn--bcher-kva.example/u/1,"[""https://xn--bcher-kva.example/u"", ""as:Public""]")`}},
	{"the newest words, and what is deleted is", `SELECT uri, raw ->> 'attributedTo', raw ->> 'content', raw -> 'tag' -> 0 ->> 'href', deleted_at IS NOT NULL FROM objects ORDER BY 1`,
		[]string{"(https://m.example/u/1,https://m.example/u,3,https://m.example/u,f)", "(https://m.example/u/2,,,,t)",
			"(https://xn--bcher-kva.example/u/1,https://xn--bcher-kva.example/u,1,https://xn--bcher-kva.example/u,f)", "(https://xn--bcher-kva.example/u/2,,,,t)"}},
	{"blocks", `SELECT actor_uri FROM blocks`, []string{"(https://evil.example/u)"}},
	{"what is owed", `SELECT DISTINCT object_uri, ARRAY(SELECT unnest(audience) ORDER BY 1), ARRAY(SELECT unnest(targets) ORDER BY 1) FROM delivery_jobs j JOIN deliveries d ON d.job_id = j.id ORDER BY 1`,
		[]string{`(https://m.example/u,"{https://a.example/u,https://m.example/u}","{https://a.example/u,https://m.example/u}")`,
			`(https://xn--bcher-kva.example/u,"{https://a.example/u,https://xn--bcher-kva.example/u}","{https://a.example/u,https://xn--bcher-kva.example/u}")`}},
	{"the bytes that are sent stay", `SELECT count(DISTINCT body) FROM delivery_jobs`, []string{"(6)"}},
	{"recipients by a group", `SELECT actors FROM unnamed_recipients`, []string{`("{https://m.example/u,https://xn--bcher-kva.example/u}")`}},
	{"what was set aside", `SELECT uri FROM poison ORDER BY 1`, []string{"(https://m.example/u/poison)", "(https://xn--bcher-kva.example/u/poison)"}},
}

func TestIDsOfBeforeBecomeCanonical(t *testing.T) {
	t.Parallel()
	c, alice, instance, user := spelled(t)
	today := strings.Trim(held(t, user, `SELECT current_date`)[0], "()")
	check := func(when string) {
		t.Helper()
		for _, tt := range respelled {
			want := make([]string, len(tt.want))
			for i, w := range tt.want {
				want[i] = strings.ReplaceAll(w, "{today}", today)
			}
			if d := cmp.Diff(want, held(t, user, tt.query)); d != "" {
				t.Errorf("IDN-01 %s, %s:\n%s", when, tt.name, d)
			}
		}
	}
	for _, tt := range []struct {
		query string
		want  []string
	}{ // the instance's rows are rewritten before the users' rows, so that new activities find them
		{`SELECT actor_uri, follows FROM acquaintances ORDER BY 1`, []string{"(https://m.example/u,t)", "(https://xn--bcher-kva.example/u,f)"}},
		{`SELECT uri, raw ->> 'n', handle FROM actors ORDER BY 1`, []string{"(https://m.example/u,3,u@0)", "(https://xn--bcher-kva.example/u,1,u@1)"}},
		{`SELECT key_id, actor_uri FROM actor_keys ORDER BY 1`, []string{"(https://m.example/u#key,https://m.example/u)", "(https://xn--bcher-kva.example/u#key,https://xn--bcher-kva.example/u)"}},
	} {
		if d := cmp.Diff(tt.want, held(t, instance, tt.query)); d != "" {
			t.Errorf("IDN-01 the instance, %s:\n%s", tt.query, d)
		}
	}

	// The migration fails between two pages. Some tables are done, and alice's database cannot
	// be used.
	run(t, user, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the power is gone'; END $$;
		CREATE TRIGGER die BEFORE UPDATE ON feed FOR EACH STATEMENT EXECUTE FUNCTION die()`)
	r := migrateUsers(t, c, db.Migration{})
	if len(r.Failures) != 1 || r.Failures[0].Dirty || !strings.Contains(r.Failures[0].Error, "the power is gone") {
		t.Fatalf("failures %+v; want that of alice, whose database is only behind", r.Failures)
	}
	if n := number(t, user, `SELECT count(*) FROM relationships WHERE actor_uri = 'https://m.example/u'`); n != 1 {
		t.Errorf("%d relationships under the canonical id, want that page done", n)
	}
	usable(t, c, alice, false, int(number(t, user, `SELECT version FROM schema_migrations`)))
	run(t, user, `DROP TRIGGER die ON feed`)

	if r = migrateUsers(t, c, db.Migration{}); r.Migrated != 1 || len(r.Failures) > 0 {
		t.Fatalf("the run after that: %+v", r)
	}
	usable(t, c, alice, true, dbtest.Schema())
	check("after a run that died, and another")
	if d := cmp.Diff([]string{"(https://late.example/u,t)", "(https://m.example/u,t)", "(https://xn--bcher-kva.example/u,f)"},
		held(t, instance, `SELECT actor_uri, follows FROM acquaintances WHERE actor_uri NOT LIKE '%evil%' ORDER BY 1`)); d != "" {
		t.Error("IDN-01 acquaintances:\n", d)
	}

	all := `SELECT (SELECT array_agg(r ORDER BY r::text) FROM relationships r), (SELECT array_agg(a ORDER BY a::text) FROM actors a), (SELECT array_agg(o ORDER BY o::text) FROM objects o)`
	was := held(t, user, all)
	if err := c.RespellUser(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(was, held(t, user, all)); d != "" {
		t.Error("another run changed rows:\n", d)
	}
	check("after one more run")
}
