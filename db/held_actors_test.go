package db_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// holding is, for each column that names actors, a row that names $a.
var holding = map[string]string{
	"relationships.actor_uri":   `INSERT INTO relationships VALUES (gen_random_uuid(), $a, 'friend', 'x', 'pending', 'f')`,
	"actors.uri":                `INSERT INTO actors VALUES ($a, 'Person', 'x', 'i', '', NULL, '', '{}', now(), now())`,
	"activities.actor_uri":      `INSERT INTO activities VALUES (gen_random_uuid(), $a || '/act', 'inbound', 'Create', $a, NULL, now(), '{}')`,
	"group_members.actor_uri":   `WITH g AS (INSERT INTO groups VALUES (gen_random_uuid(), 'g', 'https://g', now(), 'https://a') RETURNING id) INSERT INTO group_members SELECT id, $a, now(), 'https://a' FROM g`,
	"reactions.actor_uri":       `INSERT INTO reactions VALUES ('o', $a, 'review', 'Like', 'l')`,
	"votes.actor_uri":           `INSERT INTO votes VALUES ('q', $a, 1, now())`,
	"pins.actor_uri":            `INSERT INTO pins VALUES ($a, 'o', 'a', now())`,
	"feed.actor_uri":            `INSERT INTO feed VALUES (gen_random_uuid(), 'x', $a, now())`,
	"requests.actor_uri":        `INSERT INTO requests VALUES ('r', $a, 'h', now())`,
	"correspondents.actor_uri":  `INSERT INTO correspondents VALUES ($a, now())`,
	"blocks.actor_uri":          `INSERT INTO blocks VALUES ('\x01', 'outbound', $a, 'b', now())`,
	"unnamed_recipients.actors": `INSERT INTO unnamed_recipients VALUES ('https://o', 'https://g', ARRAY[$a])`,
	"objects.raw":               `INSERT INTO objects (id, uri, raw, published) VALUES (gen_random_uuid(), $a || '/o', jsonb_build_object('attributedTo', $a), now())`,
	"objects.raw, embedded":     `INSERT INTO objects (id, uri, raw, published) VALUES (gen_random_uuid(), $a || '/o', jsonb_build_object('attributedTo', jsonb_build_array(jsonb_build_object('id', $a))), now())`,
}

// Whatever is in a user's database of an actor keeps the acquaintance at night and when acquaintances are made again, and
// keeps the copy of the actor.
func TestAnythingOfAnActorKeepsTheAcquaintanceAndTheCopy(t *testing.T) {
	t.Parallel()
	for _, column := range db.HeldColumns() {
		if holding[column] == "" {
			t.Errorf("%s: this test must put a row there", column)
		}
	}
	c := open(t, destroyed(t, dbtest.Config(t)))
	u := dbtest.User(t, c, "alice")
	database := databaseOf(t, c, u)
	actorOf := func(column string) vocab.ID {
		return vocab.ID("https://peer.example/" + strings.NewReplacer(", ", "-").Replace(column))
	}
	idle := actorOf("nothing")
	for column, query := range holding {
		acquaint(t, c, u, actorOf(column))
		run(t, database, strings.ReplaceAll(query, "$a", "'"+string(actorOf(column))+"'::text"))
	}
	acquaint(t, c, u, idle)
	night(t, c, u, now, 0)
	night(t, c, u, now.Add(24*time.Hour), 1)

	acquaint(t, c, u, idle)
	made, err := c.MakeAcquaintances(t.Context(), db.Acquainting{ID: func(vocab.Username) vocab.ID { return aliceID }})
	if err != nil || len(made.Users) != 1 || made.Users[0].Known != len(holding) || made.Users[0].Superfluous != 1 {
		t.Errorf("MakeAcquaintances = %+v, %v, want all %d actors known and 1 superfluous", made, err, len(holding))
	}
	for column := range holding {
		if !isAcquainted(t, c, u, actorOf(column)) {
			t.Errorf("the acquaintance by %s is gone", column)
		}
	}

	h := &history{t, c, u}
	for column := range maps.Keys(holding) {
		h.knows(actorOf(column), old)
	}
	h.knows(idle, old)
	if did := h.prune(false); did.Actors != 2 { // one of them the row of actors.uri, which is the copy itself
		t.Errorf("prune removes %d copies of actors, want 2", did.Actors)
	}
	for column := range holding {
		if isCopied := slices.Contains(h.left(), "actor "+string(actorOf(column))); isCopied != (column != "actors.uri") {
			t.Errorf("by %s the copy of the actor is kept: %t", column, isCopied)
		}
	}
}

// namesNoHeldActor are the columns of users' databases that may hold ids or documents, and by which the user holds nothing of
// an actor, by the reason.
var namesNoHeldActor = map[string][]string{
	"no actor": {"actors.type", "actors.preferred_username", "actors.inbox", "actors.outbox", "actors.shared_inbox", "actors.public_key_pem",
		"activities.direction", "activities.type", "feed.activity_uri", "reactions.object_uri", "reactions.kind", "reactions.type", "reactions.activity_uri",
		"relationships.type", "relationships.relation", "relationships.status", "relationships.activity_uri", "group_members.activity_uri",
		"groups.name", "groups.uri", "groups.activity_uri", "blocks.direction", "blocks.activity_uri", "pins.object_uri", "pins.activity_uri",
		"votes.question_uri", "requests.activity_uri", "requests.host", "unnamed_recipients.object_uri", "unnamed_recipients.group_uri",
		"objects.uri", "activities.uri", "delivery_jobs.activity_uri", "delivery_jobs.object_uri", "delivery_jobs.type",
		"delivery_jobs.signer", "deliveries.inbox", "deliveries.host", "deliveries.status", "deliveries.lease_owner", "deliveries.last_error",
		"deliveries.last_location", "deliveries.remote_id", "event_outbox.type", "event_outbox.source", "idempotency_keys.key",
		"audit.action", "audit.outcome", "audit.activity_uri", "poison.uri", "poison.reason"},
	"in the same row as the column that counts":                                                        {"actors.raw", "actors.written", "activities.raw", "objects.readable", "blocks.digest"},
	"the copy of an actor that the user did something about is kept by pruneActors, and counts itself": {"activities.object_uri"},
	"of the user's own activities, whose addressing keeps the copies of actors": {"delivery_jobs.audience", "delivery_jobs.body", "delivery_jobs.reached",
		"delivery_jobs.dedupe_hash", "deliveries.targets", "deliveries.followers_digest", "deliveries.last_answer", "deliveries.last_headers"},
	"nothing is held any more":                     {"seen.digest", "tombstones.digest"},
	"remembered for 30 days, about a follow":       {"moves.digest", "moves.target_digest"},
	"becomes an acquaintance when it is retried":   {"poison.actor_uri", "poison.raw", "poison.forwarders"},
	"records for the user's programs and the user": {"event_outbox.payload", "audit.params", "idempotency_keys.answer", "idempotency_keys.digest"},
}

// A column that may hold an id or a document, and is in neither list, is one of which nobody has decided whether the user
// holds something of an actor by it.
func TestEveryColumnIsKnownToHoldSomethingOfActorsOrNot(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	rows, err := session(t, databaseOf(t, c, u)).Query(t.Context(), `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name <> 'schema_migrations' AND data_type IN ('text', 'ARRAY', 'jsonb', 'bytea', 'character varying')`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	decided := map[string]int{"objects.raw": 1} // authors
	for _, list := range append(slices.Collect(maps.Values(namesNoHeldActor)), db.HeldColumns()) {
		for _, column := range list {
			decided[column]++
		}
	}
	for _, column := range columns {
		if n := decided[column]; n != 1 {
			t.Errorf("%s is decided %d times: add it to heldColumns, or here to the exceptions with a reason", column, n)
		}
		delete(decided, column)
	}
	for column := range decided {
		t.Errorf("%s is decided, and there is no such column", column)
	}
	if left := db.UnspelledColumns(); len(left) > 0 {
		t.Errorf("%q name actors and are not brought to canonical ids", left)
	}
}
