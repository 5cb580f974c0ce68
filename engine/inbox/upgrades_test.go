package inbox_test

import (
	"testing"

	"github.com/google/uuid"
)

// Both sides upgraded to an encrypted conversation. The Welcome to the other side's conversation
// decides which of the two stays. A repeat of the Welcome, under any id, changes nothing. Messages
// of the closed conversation are still accepted.
func TestTheOtherSidesUpgradeIsMetOnce(t *testing.T) {
	for name, c := range map[string]struct {
		own  string // the URI of the conversation that alice began
		want []string
	}{
		"the other one goes on": {"zzz:", []string{"dave f f t 0", "alice t t f 2"}},
		"alice's goes on":       {"aaa:", []string{"dave t t f 2", "alice f f t 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			me, id, db := h.Long("us:/alice"), uuid.NewString(), h.DB(t, h.Alice)
			for _, q := range []string{
				`INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at, partner_uri) VALUES ('` + id + `', '` + c.own + id + `', 'encrypted', '` + me + `', 'urn:uuid:` + id + `', now(), '` + h.Long("p:/dave") + `')`,
				`INSERT INTO mls_conversations (id, epoch, status, group_info, updated_at) VALUES ('` + id + `', 1, 'active', 'x', now())`,
				`INSERT INTO relationships (id, actor_uri, type, relation, status, activity_uri, direction, created_at, updated_at) VALUES (gen_random_uuid(), '` + h.Long("p:/dave") + `', 'friend', 'friendOf', 'accepted', 'x:1', 'inbound', now(), now())`,
			} {
				if _, err := db.Exec(q); err != nil {
					t.Fatal(err)
				}
			}
			isPair := func(s *said) { s.activity.Sub("lwMetadata")["pair"] = true }
			query := `SELECT concat_ws(' ', CASE WHEN host_uri LIKE '%/dave' THEN 'dave' ELSE 'alice' END, closed_at IS NOT NULL, successor_uri IS NOT NULL, predecessor_uri IS NOT NULL, entries) FROM conversations ORDER BY host_uri LIKE '%/dave' DESC`
			h.begun(isPair)
			h.want("after the Welcome", query, c.want...)
			if err := h.sendWelcome(h.device, isPair); err != nil {
				t.Fatal(err)
			}
			if err := h.put("PrivateMessage", h.group.Message(), 1); err != nil {
				t.Fatal(err)
			}
			if err := h.sendWelcome(h.device, isPair); err != nil {
				t.Fatal(err)
			}
			h.want("after it came again", query, c.want...)
			h.want("messages", keptMessages, "welcome 0 dave f f", "application 2 1 dave t f")
		})
	}
}
