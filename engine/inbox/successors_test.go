package inbox_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

const continuations = `SELECT concat_ws(' ', closed_at IS NOT NULL, coalesce(regexp_replace(successor_uri, '.*conversations/', ''), '-')) FROM conversations WHERE host_uri LIKE '%/erin'`

// withErin stores a conversation of erin's with alice and with the actors in the parameter more.
// dave's conversation will continue it.
func withErin(t *testing.T, h *hosted, more ...string) (uri string) {
	t.Helper()
	host := h.Long("p:/erin")
	h.Actor("p:/erin")
	id := uuid.NewString()
	uri = host + "/conversations/" + id
	db := h.DB(t, h.Alice)
	for _, q := range []string{
		`INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at) VALUES ('` + id + `', '` + uri + `', 'encrypted', '` + host + `', 'urn:uuid:` + id + `', now())`,
		`INSERT INTO mls_joined (id, generation, epoch, last_seq, whole_seq, roster_seq, status, former_groups, updated_at) VALUES ('` + id + `', 0, 1, 1, 1, 1, 'active', '{}', now())`,
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	for _, actor := range append([]string{"p:/erin", "us:/alice"}, more...) {
		if _, err := db.Exec(`INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq) VALUES ($1, $2, 'member', 0)`, id, h.Long(actor)); err != nil {
			t.Fatal(err)
		}
	}
	return uri
}

// names adds three members and the URI of the predecessor conversation to the host's Welcome.
func names(h *hosted, predecessor string) func(*said) {
	return func(s *said) {
		d := s.activity.Sub("lwMetadata")
		d["predecessor"], d["members"] = predecessor, append(d["members"].([]any), vocab.Doc{"id": h.Long("p:/frank"), "role": "member"})
	}
}

// A member's new conversation becomes the successor of the conversation that it names, once the
// named one is closed here. The Welcome and the close may arrive in either order. The conversation
// of a stranger, or of a member who left, does not become a successor.
func TestAMembersConversationContinuesTheOneThatWasClosed(t *testing.T) {
	for name, c := range map[string]struct {
		member, left, closedBefore bool
		names, invited             bool
	}{
		"closed before":   {member: true, closedBefore: true, names: true},
		"invited before":  {member: true, closedBefore: true, names: true, invited: true},
		"closed later":    {member: true, names: true},
		"by a stranger":   {closedBefore: true},
		"later, stranger": {},
		"by who has left": {member: true, left: true, closedBefore: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			var more []string
			if c.member {
				more = append(more, "p:/dave")
			}
			before := withErin(t, h, more...)
			if c.invited {
				h.rows(`UPDATE conversations SET confirmed = false WHERE host_uri LIKE '%/erin' RETURNING uri`)
			}
			if c.left {
				h.rows(`UPDATE conversation_members SET left_seq = 1 WHERE actor_uri LIKE '%/dave' RETURNING role`)
			}
			gone := func() {
				t.Helper()
				d := vocab.Doc{"@context": vocab.ActivityContext(), "id": h.Long("p:/erin#delete"), "type": "Delete", "actor": h.Long("p:/erin"), "object": h.Long("p:/erin"), "to": []any{vocab.Public}}
				if err := h.Pass("p:/erin", "us:/alice/inbox", d.JSON()); err != nil {
					t.Fatal(err)
				}
			}
			if c.closedBefore {
				gone()
				h.want("after the end", continuations, "t -")
			}
			h.begun(names(h, before))
			if !c.closedBefore {
				h.want("before the end", continuations, "f -")
				gone()
			}
			want, told := "t -", 0
			if c.names {
				want, told = "t "+h.uri[len(h.uri)-36:], 1
			}
			h.want("in the end", continuations, want)
			trust := map[bool]string{false: "stranger", true: "contact"}[!c.invited]
			if got := h.rows(`SELECT payload ->> 'trust' FROM event_outbox WHERE type = 'conversation.continued'`); len(got) != told || told > 0 && got[0] != trust {
				t.Errorf("events of %q tell of the successor, want %d of a %s", got, told, trust)
			}
			if got := len(h.rows(`SELECT kind FROM conversation_entries WHERE kind = 'successor'`)); got != told {
				t.Errorf("%d entries tell of the successor, want %d", got, told)
			}
			other := newHostedIn(t, h.Scene) // another conversation of the same host; the first successor stays
			other.begun(names(other, before))
			h.want("after a second one", continuations, want)
		})
	}
}

// A Welcome is refused if its predecessor is not the URI of a conversation.
func TestAPredecessorHasTheURIOfAConversation(t *testing.T) {
	h := newHosted(t)
	_, h.group = h.group.Commit(h.host, mlstest.Change{Add: []*mlstest.Device{h.device}})
	h.seq++
	err := h.sendWelcome(h.device, names(h, "https://p.example/notes/1"))
	if of := fault.Of(err); of == nil || of.Kind != fault.Invalid || of.Code != "bad_predecessor" {
		t.Errorf("it is answered %v", err)
	}
	h.want("nothing is joined", stateOfJoined)
}
