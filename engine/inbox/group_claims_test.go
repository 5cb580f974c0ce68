package inbox_test

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// speaker stands for alice's server. It has only the methods that a Welcome needs.
type speaker struct {
	conversation.Actors
	id vocab.ID
}

func (s speaker) ID(vocab.Username) vocab.ID { return s.id }

// join lets alice's device confirm the Welcome of the host. If the conversation has no host, the
// parameter group is the id of its MLS group.
func (h *hosted) join(group string) error {
	h.Helper()
	r := conversation.NewRegistry(conversation.Deps{Store: h.Store, Actors: speaker{id: h.ID("us:/alice")}, Log: slog.New(slog.DiscardHandler), Now: h.Now})
	all := h.rows(`SELECT id::text FROM mls_welcomes WHERE sender_uri = '` + h.Long(h.by) + `'`)
	if len(all) != 1 {
		h.Fatalf("%d Welcomes of %s wait", len(all), h.by)
	}
	return r.ConfirmWelcome(h.Context(), h.Alice, uuid.MustParse(all[0]), group)
}

const claims = `SELECT coalesce(nullif(regexp_replace(c.host_uri, '.*/', ''), ''), '-') || ' ' || array_to_string(ARRAY(SELECT kind FROM mls_inbox WHERE conversation_id = c.id ORDER BY arrival), ' ')
	FROM conversations c ORDER BY c.created_at, c.id`

// rivals returns two conversations with the same MLS group id: mallory's, and dave's honest one.
func rivals(t *testing.T) (squatter, honest *hosted) {
	t.Helper()
	honest = newHosted(t)
	squatter = newHostedBy(t, honest.Scene, "q:/mallory")
	strangers(t, honest.Scene, registry.AllowStrangers)
	squatter.group.ID = honest.group.ID
	return squatter, honest
}

// mallory's invitation claims the id of the group of dave's conversation. dave's conversation
// still gets its messages.
func TestAnInvitationClaimsNoGroup(t *testing.T) {
	for name, invite := range map[string]func(*hosted){
		"to a hosted conversation": func(s *hosted) { s.begun() },
		"to one without a host": func(s *hosted) {
			s.grow()
			s.sends(mine, "Welcome", s.group.Welcome(s.device))
			s.sends(mine, "PrivateMessage", s.group.Message())
		},
	} {
		t.Run(name, func(t *testing.T) {
			squatter, honest := rivals(t)
			invite(squatter)
			honest.begun()
			if err := honest.put("PrivateMessage", honest.group.Message(), 1); err != nil {
				t.Fatal(err)
			}
			honest.want("the honest conversation", `SELECT concat_ws(' ', c.group_id, j.last_seq, j.whole_seq) FROM mls_joined j JOIN conversations c USING (id) WHERE c.uri = '`+honest.uri+`'`, honest.group.ID+" 2 2")
			if err := honest.join(""); err != nil {
				t.Fatal(err)
			}
			words := honest.group.Message()
			honest.sends(mine, "PrivateMessage", words) // dave's own server delivers the message before the host does
			if err := honest.put("PrivateMessage", words, 1); err != nil {
				t.Fatal(err)
			}
			honest.want("its messages", `SELECT concat_ws(' ', i.kind, i.seq) FROM mls_inbox i JOIN conversations c ON c.id = i.conversation_id WHERE c.uri = '`+honest.uri+`' ORDER BY arrival`,
				"welcome", "application 2", "application 3")
			if err := squatter.join(""); fault.Of(err) == nil || fault.Of(err).Code != "group_taken" {
				t.Errorf("a second group of that id is joined: %v", err)
			}
		})
	}
}

// Members can join a group without a host, even if a hosted conversation claims the group's id.
func TestAnInvitationKeepsNoGroupFromItsMembers(t *testing.T) {
	squatter, honest := rivals(t)
	squatter.begun()
	honest.grow()
	honest.sends(mine, "PrivateMessage", honest.group.PrivateCommit()) // the commit arrives before the Welcome that begins its group
	honest.sends(mine, "Welcome", honest.group.Welcome(honest.device))
	honest.sends(mine, "PrivateMessage", honest.group.Message())
	honest.want("conversations", claims, "mallory welcome", "- commit application")
	if err := honest.join(honest.group.ID); err != nil {
		t.Fatal(err)
	}
	honest.sends(mine, "PrivateMessage", honest.group.PrivateCommit())
	honest.want("conversations once a device has joined", claims, "mallory welcome", "- commit application commit")
}

// A conversation can begin its next group even if an invitation already claims that group's id.
// Members may know the id in advance.
func TestAnInvitationHoldsUpNoReset(t *testing.T) {
	squatter, honest := rivals(t)
	honest.begun()
	if err := honest.join(""); err != nil {
		t.Fatal(err)
	}
	squatter.group.ID = "urn:uuid:" + uuid.NewString()
	squatter.begun()
	honest.group.ID, honest.reset = squatter.group.ID, 1
	if err := honest.put("PrivateMessage", honest.group.Message(), 1); err != nil {
		t.Fatal(err)
	}
	honest.want("the group", `SELECT group_id FROM conversations WHERE uri = '`+honest.uri+`'`, squatter.group.ID)
}

// A user can be in only one group with a given id. If a device has joined a group, an invitation
// to another group with the same id is refused. Devices refuse it too (RFC 9420 §12.4.3.1).
func TestAGroupThatADeviceHasJoinedIsTaken(t *testing.T) {
	squatter, honest := rivals(t)
	honest.begun()
	if err := honest.join(""); err != nil {
		t.Fatal(err)
	}
	squatter.begun()
	honest.want("conversations", claims, "dave welcome")
}
