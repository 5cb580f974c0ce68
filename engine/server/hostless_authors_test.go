package server_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// carol and dan are in a group without a host. mallory is not, but has seen carol's message, and
// sends the same bytes. mallory also invites bob to a group, and claims in another message that it
// is the group of carol and dan. Then bob's device joins by dan's Welcome. The message is carol's.
func TestAnInvitationTakesNoMessageFromItsAuthor(t *testing.T) {
	t.Parallel()
	const mallory, dan = "https://mallory.example/users/mallory", "https://friend.example/users/dan"
	for name, order := range map[string][]string{
		"all before the invitation":           {"original", "copy", "invitation", "claim"},
		"the copy after it":                   {"original", "invitation", "claim", "copy"},
		"both after it":                       {"invitation", "claim", "original", "copy"},
		"the copy first, and dan names carol": {"invitation", "claim", "copy", "original", "original", "dan"},
		"the claim names carol, too":          {"invitation", "claim of carol", "copy", "original", "dan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t)
			him, carol := string(k.local.ID(k.bob)), string(k.carol.ID)
			phone, laptop := k.bobsDevice(), k.bobsDevice()
			g, _ := groupOf(dan, laptop)
			forged, _ := groupOf(mallory, phone)
			message := g.Message()
			for _, step := range order {
				switch step {
				case "original":
					k.arrive(carol, "PrivateMessage", message, nil)
				case "copy":
					k.arrive(mallory, "PrivateMessage", message, nil)
				case "invitation":
					k.arrive(mallory, "Welcome", forged.Welcome(phone), nil)
				case "claim":
					k.arrive(mallory, "PrivateMessage", g.Message(), nil)
				case "claim of carol":
					k.arrive(mallory, "PrivateMessage", g.Message(), vocab.Doc{"to": []any{him, carol}})
				case "dan":
					k.arrive(dan, "PrivateMessage", g.Message(), vocab.Doc{"to": []any{him, carol}})
				}
			}
			k.arrive(dan, "Welcome", g.Welcome(laptop), nil)
			k.joins(him, dan, g)
			found := 0
			for _, m := range k.log(him) {
				if string(m.Content) != string(message) {
					continue
				}
				if found++; m.Sender != carol {
					t.Errorf("the message is %s's, want carol's", m.Sender)
				}
			}
			if found != 1 {
				t.Errorf("the message is in the log %d times, want once", found)
			}
			if n := k.count(`SELECT count(*) FROM mls_inbox WHERE conversation_id IS NULL AND kind <> 'welcome'`); n != 0 {
				t.Errorf("%d copies are left outside of the conversation", n)
			}
		})
	}
}

// joins confirms the Welcome that an actor has sent to the group.
func (k *talk) joins(as, inviter string, g *mlstest.Group) {
	k.Helper()
	var list struct {
		Items []struct {
			ID     uuid.UUID
			Sender string
		}
	}
	k.get("/api/welcomes", bearerToken(k.tokens[as])).want(k.T, 200).decode(k.T, &list)
	for _, w := range list.Items {
		if w.Sender == inviter {
			k.post(as, "/api/welcomes/"+w.ID.String()+"/confirm", map[string]any{"groupId": g.ID}).want(k.T, 204)
			return
		}
	}
	k.Fatalf("the Welcomes are %+v, want one of %s", list.Items, inviter)
}

type logged struct {
	Sender  string
	Content []byte
}

// log returns the log of the user's only conversation.
func (k *talk) log(as string) []logged {
	k.Helper()
	var all struct{ Items []struct{ ID uuid.UUID } }
	k.get("/api/conversations", bearerToken(k.tokens[as])).want(k.T, 200).decode(k.T, &all)
	if len(all.Items) != 1 {
		k.Fatalf("the conversations are %+v, want one", all.Items)
	}
	var log struct{ Items []logged }
	k.get("/api/conversations/"+all.Items[0].ID.String()+"/log", bearerToken(k.tokens[as])).want(k.T, 200).decode(k.T, &log)
	return log.Items
}

// count returns the number that a query of bob's database gives.
func (k *talk) count(query string) (n int) {
	k.Helper()
	if err := dbtest.SQL(k.T, k.store, k.bob).QueryRowContext(k.Context(), query).Scan(&n); err != nil {
		k.Fatal(err)
	}
	return n
}
