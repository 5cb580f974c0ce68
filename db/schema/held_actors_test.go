package schema_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/schema"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// namesNoHeldActor lists columns of users' databases that may contain ids or documents and still
// do not make the user hold an actor. The keys are the reasons.
var namesNoHeldActor = map[string][]string{
	"no actor": {"actors.type", "actors.preferred_username", "actors.inbox", "actors.outbox", "actors.shared_inbox", "actors.public_key_pem",
		"activities.direction", "activities.type", "feed.activity_uri", "reactions.object_uri", "reactions.kind", "reactions.type", "reactions.activity_uri",
		"relationships.type", "relationships.relation", "relationships.status", "relationships.activity_uri",
		"relationships.direction", "relationships.host", "group_members.activity_uri",
		"groups.name", "groups.uri", "groups.activity_uri", "blocks.direction", "blocks.activity_uri", "pins.object_uri", "pins.activity_uri",
		"feed_marks.feed", "shown_forms.reader", "search_index.uri", "search_index.revision", "streams.name", "streams.tags", "streams.uri", "streams.activity_uri", "stream_objects.object_uri", "stream_objects.activity_uri",
		"votes.question_uri", "requests.activity_uri", "requests.host", "unnamed_recipients.object_uri", "unnamed_recipients.group_uri",
		"objects.uri", "activities.uri", "delivery_jobs.activity_uri", "delivery_jobs.object_uri", "delivery_jobs.type",
		"delivery_jobs.signer", "deliveries.inbox", "deliveries.host", "deliveries.status", "deliveries.lease_owner", "deliveries.last_error",
		"deliveries.last_location", "deliveries.remote_id", "event_outbox.type", "event_outbox.source", "event_groups.name", "idempotency_keys.key",
		"audit.action", "audit.outcome", "audit.activity_uri", "poison.uri", "poison.reason",
		"conversations.uri", "conversations.mode", "conversations.group_id", "conversation_members.role", "mls_conversations.status", "mls_conversations.former_groups",
		"mls_conversations.reset_group_id", "mls_conversations.last_hash", "mls_log.kind", "mls_log.content_hash", "mls_early.content_hash", "mls_welcomes.key_package_ref", "mls_welcomes.state",
		"mls_key_packages.ref", "mls_key_packages.device_id", "mls_key_packages.state", "mls_welcomes.object_uri", "mls_joined.status", "mls_joined.reset_group_id",
		"mls_joined.former_groups", "mls_inbox.group_id", "mls_inbox.kind", "mls_inbox.object_uri", "mls_inbox.content_hash", "mls_inbox.receipt",
		"mls_held.content_hash", "mls_held.activity_uri", "mls_held.inboxes", "conversations.predecessor_uri", "conversations.successor_uri", "conversation_entries.kind", "conversation_entries.object_uri"},
	"is a member of the conversation, and counts as one":                                               {"conversations.host_uri", "mls_log.sender_uri", "mls_early.sender_uri", "mls_welcomes.recipient_uri", "conversations.partner_uri"},
	"messages of MLS, whose members count":                                                             {"mls_conversations.group_info", "mls_log.content", "mls_early.content", "mls_welcomes.content", "mls_key_packages.content", "mls_inbox.content"},
	"remembered as long as the key package is valid":                                                   {"mls_key_packages.claimed_by"},
	"in the same row as the column that counts":                                                        {"actors.raw", "actors.written", "reactions.emoji", "activities.raw", "objects.readable", "blocks.digest", "mls_inbox.activity", "mls_held.body"},
	"the copy of an actor that the user did something about is kept by pruneActors, and counts itself": {"activities.object_uri"},
	"of the user's own activities, whose addressing keeps the copies of actors": {"delivery_jobs.audience", "delivery_jobs.body", "delivery_jobs.reached",
		"delivery_jobs.dedupe_hash", "deliveries.targets", "deliveries.followers_digest", "deliveries.last_answer", "deliveries.last_headers"},
	"what the user wrote under another account, as an import brought it": {"archived_posts.object_uri", "archived_posts.activity_uri", "archived_posts.actor_uri",
		"archived_posts.activity", "archived_posts.object", "archived_posts.readable"},
	"of an activity or object that counts itself, and goes with it": {"shown_forms.form"},
	"nothing is held any more":                                      {"seen.digest", "tombstones.digest", "ended_activities.digest"},
	"remembered for 30 days, about a follow":                        {"moves.digest", "moves.target_digest"},
	"becomes an acquaintance when it is retried":                    {"poison.actor_uri", "poison.raw", "poison.forwarders"},
	"records for the user's programs and the user":                  {"event_outbox.payload", "audit.params", "idempotency_keys.answer", "idempotency_keys.digest"},
}

// Every column that may contain an id or a document is in one of two lists: the columns that make
// the user hold an actor, and the columns that do not.
func TestEveryColumnIsKnownToHoldSomethingOfActorsOrNot(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	rows, err := dbtest.SQL(t, c, dbtest.User(t, c, "alice")).QueryContext(t.Context(), `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name <> 'schema_migrations' AND data_type IN ('text', 'ARRAY', 'jsonb', 'bytea', 'character varying')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var columns []string
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, column)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	decided := map[string]int{"objects.raw": 1} // authors in it make the user hold an actor; heldColumns does not list it
	for _, list := range append(slices.Collect(maps.Values(namesNoHeldActor)), schema.HeldColumns()) {
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
	if left := schema.UnspelledColumns(); len(left) > 0 {
		t.Errorf("%q name actors and are not brought to canonical ids", left)
	}
}
