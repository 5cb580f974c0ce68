package inbox_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// as returns the same conversation for another member, who sends Creates of its own.
func (h *hosted) as(by string) *hosted {
	h.Helper()
	h.Actor(by)
	other := *h
	other.by = by
	return &other
}

const toldMessages = `SELECT concat_ws(' ', regexp_replace(payload->>'actorUri', '.*/', ''), payload->>'trust') FROM event_outbox WHERE type = 'chatmessage.received' ORDER BY seq`

// Row 12 of docs/conversations.md, Cases and their tests. erin, a member, sends dave's ciphertext
// to the host in a Create of her own. The log has the ciphertext once, under the first name, and
// the next messages of both are put in order.
func TestRow12AHostLogsACiphertextUnderTheFirstName(t *testing.T) {
	for name, order := range map[string][2]string{"after dave's own": {"p:/dave", "p:/erin"}, "before dave's own": {"p:/erin", "p:/dave"}} {
		t.Run(name, func(t *testing.T) {
			h := newMixed(t)
			words, hers, his := h.group.Message(), h.group.Message(), h.group.Message()
			for _, by := range order {
				h.as(by).sends(mine, "PrivateMessage", words)
			}
			h.as("p:/erin").sends(mine, "PrivateMessage", hers)
			h.as("p:/dave").sends(mine, "PrivateMessage", his)
			h.want("the log", logged, lineOf("2 1 application "+order[0][3:], words), lineOf("3 1 application erin", hers), lineOf("4 1 application dave", his))
			h.want("told", toldMessages, order[0][3:]+" contact", "erin contact", "dave contact")
			h.want("members", `SELECT count(*)::text FROM conversation_members WHERE left_seq IS NULL`, "4")
			h.want("nothing is kept beside the log", keptMessages)
		})
	}
}

// Row 12 of docs/conversations.md, Cases and their tests. mallory, a member, sends erin's
// ciphertext to another member in a Create of its own, before and after the host's word. The copy
// has erin's messages as the host tells of them, even if the user blocks mallory.
func TestRow12ACopyHasTheSenderThatTheHostTells(t *testing.T) {
	for name, isBlocked := range map[string]bool{"a member": false, "a blocked member": true} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			erin, mallory := h.as("p:/erin"), h.as("q:/mallory")
			roster := func(s *said) {
				members := []any{vocab.Doc{"id": h.Long(h.by), "role": "admin"}}
				for _, id := range []string{"us:/alice", erin.by, mallory.by} {
					members = append(members, vocab.Doc{"id": h.Long(id), "role": "member"})
				}
				s.activity["lwMetadata"] = vocab.Doc{"status": "active", "members": members}
			}
			h.begun(roster)
			h.rows(`UPDATE conversations SET confirmed = true RETURNING ''`) // a device joins
			told := []string{"mallory contact", "erin contact", "erin contact"}
			early, own := "mallory f", "application 1 mallory f f"
			if isBlocked {
				h.block(mallory.by)
				told, early, own = told[1:], "erin f", "application 1 mallory f t"
			}
			put := func(content []byte) {
				t.Helper()
				if err := h.put("PrivateMessage", content, 1, roster, func(s *said) { s.object["attributedTo"] = h.Long(erin.by) }); err != nil {
					t.Fatal(err)
				}
			}
			first, second := h.group.Message(), h.group.Message()
			mallory.sends(mine, "PrivateMessage", first)
			erin.sends(mine, "PrivateMessage", first)
			h.want("before the host's word", `SELECT regexp_replace(sender_uri, '.*/', '') || ' ' || left(blocked::text, 1) FROM mls_inbox WHERE kind = 'application'`, early)
			put(first)
			put(second)
			mallory.sends(mine, "PrivateMessage", second)
			h.want("messages", keptMessages, "welcome 0 dave f f", "application 2 1 erin t f", "application 3 1 erin t f")
			h.want("Creates of mallory's", `SELECT object_uri FROM mls_inbox WHERE activity LIKE '%mallory/activities%' OR object_uri LIKE '%mallory%'`)
			h.want("told", toldMessages, told...)
			mallory.sends(mine, "PrivateMessage", h.group.Message())
			h.want("mallory's own", `SELECT concat_ws(' ', kind, seq, epoch, regexp_replace(sender_uri, '.*/', ''), receipt IS NOT NULL, blocked) FROM mls_inbox WHERE seq IS NULL AND kind <> 'welcome'`, own)
		})
	}
}

// Row 12 of docs/conversations.md, Cases and their tests, in a group without a host. mallory sends
// what erin wrote before erin's own Create comes. If mallory is no member, or the user blocks it,
// erin's Create takes the place of mallory's. Of two other members the first counts.
func TestRow12AGroupWithoutAHostBelievesItsMembers(t *testing.T) {
	for name, c := range map[string]struct {
		isMember, isBlocked bool   // whether mallory is
		first               string // the name of the message that mallory sends first
		told                []string
	}{
		"a member":         {isMember: true, first: "mallory", told: []string{"mallory contact", "erin contact"}},
		"a blocked member": {isMember: true, isBlocked: true, first: "erin", told: []string{"erin contact", "erin contact"}},
		"no member":        {first: "erin", told: []string{"mallory stranger", "erin contact", "erin contact"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			strangers(t, h.Scene, registry.AllowStrangers)
			erin, mallory := h.as("p:/erin"), h.as("q:/mallory")
			if c.isBlocked {
				h.block(mallory.by)
			}
			h.grow()
			h.sends(mine, "Welcome", h.group.Welcome(h.device))
			to := []any{h.Long("us:/alice"), h.Long(erin.by)}
			if c.isMember {
				to = append(to, h.Long(mallory.by))
			}
			h.sends(mine, "PrivateMessage", h.group.Message(), "activity.to", to)
			h.rows(`UPDATE conversations SET confirmed = true RETURNING ''`)  // a device joins
			h.rows(`DELETE FROM event_outbox WHERE type <> 'x' RETURNING ''`) // of dave's
			first, second, commit := h.group.Message(), h.group.Message(), h.group.PrivateCommit()
			mallory.sends(mine, "PrivateMessage", first)
			erin.sends(mine, "PrivateMessage", first)
			erin.sends(mine, "PrivateMessage", second)
			mallory.sends(mine, "PrivateMessage", second)
			h.want("messages", `SELECT concat_ws(' ', kind, seq, epoch, regexp_replace(sender_uri, '.*/', ''), regexp_replace(activity::json ->> 'actor', '.*/', ''), blocked) FROM mls_inbox WHERE seq > 1 ORDER BY seq`,
				"application 2 1 "+c.first+" "+c.first+" f", "application 3 1 erin erin f")
			h.want("told", toldMessages, c.told...)
			mallory.sends(mine, "PrivateMessage", commit)
			erin.sends(mine, "PrivateMessage", commit)
			h.want("the state", stateOfJoined, "active 0 2 4 4 f")
		})
	}
}
