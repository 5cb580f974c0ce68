package user_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// holding has a statement for each column that makes the user hold an actor. The statement adds a
// row that holds the actor $a in that column.
var holding = map[string]string{
	"relationships.actor_uri":  `INSERT INTO relationships VALUES (gen_random_uuid(), $a, 'friend', 'x', 'pending', 'f')`,
	"actors.uri":               `INSERT INTO actors VALUES ($a, 'Person', 'x', 'i', '', NULL, '', '{}', now(), now())`,
	"activities.actor_uri":     `INSERT INTO activities VALUES (gen_random_uuid(), $a || '/act', 'inbound', 'Create', $a, NULL, now(), '{}')`,
	"group_members.actor_uri":  `WITH g AS (INSERT INTO groups VALUES (gen_random_uuid(), 'g', 'https://g', now(), 'https://a') RETURNING id) INSERT INTO group_members SELECT id, $a, now(), 'https://a' FROM g`,
	"reactions.actor_uri":      `INSERT INTO reactions VALUES ('o', $a, 'review', 'Like', 'l')`,
	"votes.actor_uri":          `INSERT INTO votes VALUES ('q', $a, 1, now())`,
	"pins.actor_uri":           `INSERT INTO pins VALUES ($a, 'o', 'a', now())`,
	"feed.actor_uri":           `INSERT INTO feed VALUES (gen_random_uuid(), 'x', $a, now())`,
	"requests.actor_uri":       `INSERT INTO requests VALUES ('r', $a, 'h', now())`,
	"correspondents.actor_uri": `INSERT INTO correspondents VALUES ($a, now())`,
	"conversation_members.actor_uri": `WITH c AS (INSERT INTO conversations (id, uri, mode, host_uri, created_at) VALUES (gen_random_uuid(), 'https://c', 'federated', 'https://h', now()) RETURNING id)
		INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq) SELECT id, $a, 'member', 0 FROM c`,
	"mls_inbox.sender_uri": `INSERT INTO mls_inbox (group_id, generation, epoch, kind, sender_uri, object_uri, content, content_hash, blocked, activity, content_at, received_at)
		VALUES ('', 0, 0, 'opaque', $a, 'o', '', '', false, '', -1, now())`,
	"mls_welcomes.sender_uri": `INSERT INTO mls_welcomes VALUES (gen_random_uuid(), NULL, 'r', '\x01', '', 'available', NULL, now(), $a, 'o')`,
	"mls_held.recipients": `WITH c AS (INSERT INTO conversations (id, uri, mode, host_uri, created_at) VALUES (gen_random_uuid(), 'https://d', 'federated', 'https://h', now()) RETURNING id)
		INSERT INTO mls_held SELECT id, '', 0, 'https://x', '', ARRAY[$a], ARRAY['https://i'], now() FROM c`,
	"blocks.actor_uri":          `INSERT INTO blocks VALUES ('\x01', 'outbound', $a, 'b', now())`,
	"unnamed_recipients.actors": `INSERT INTO unnamed_recipients VALUES ('https://o', 'https://g', ARRAY[$a])`,
	"objects.raw":               `INSERT INTO objects (id, uri, raw, published) VALUES (gen_random_uuid(), $a || '/o', jsonb_build_object('attributedTo', $a), now())`,
	"objects.raw, embedded":     `INSERT INTO objects (id, uri, raw, published) VALUES (gen_random_uuid(), $a || '/o', jsonb_build_object('attributedTo', jsonb_build_array(jsonb_build_object('id', $a))), now())`,
}

// A row that holds an actor keeps the actor's acquaintance in two cases: when idle acquaintances
// are pruned, and when acquaintances are made again. The row also keeps the copy of the actor.
func TestAnythingOfAnActorKeepsTheAcquaintanceAndTheCopy(t *testing.T) {
	t.Parallel()
	for _, column := range schema.HeldColumns() {
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
	made, err := c.MakeAcquaintances(t.Context(), dbtest.Acquainting{}, func(vocab.Username) vocab.ID { return aliceID })
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
	if did := h.prune(false); did.Actors != 2 { // idle, and the actor of column actors.uri: its only row is the copy itself
		t.Errorf("prune removes %d copies of actors, want 2", did.Actors)
	}
	for column := range holding {
		if isCopied := slices.Contains(h.left(), "actor "+string(actorOf(column))); isCopied != (column != "actors.uri") {
			t.Errorf("by %s the copy of the actor is kept: %t", column, isCopied)
		}
	}
}
