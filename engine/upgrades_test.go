package engine_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// upgrader is one of the two members of a conversation.
type upgrader struct {
	*talker
	home  *enginetest.Instance
	other *upgrader
	group *mlstest.Group
	uri   string
}

// begin opens a conversation that is not encrypted. It registers a group for the conversation's
// upgrade.
func (u *upgrader) begin(t *testing.T) {
	t.Helper()
	var c struct{ ID, URI string }
	u.user.Do(t, "CreateNote", map[string]any{"content": "hello", "visibility": "direct", "to": []string{u.other.user.ID}})
	u.want(t, http.StatusOK, u.user.Ask(t, http.MethodPost, "/api/conversations", map[string]any{"with": u.other.user.ID})).Decode(t, &c)
	u.claim(t, u.other.talker)
	u.group = mlstest.NewGroup(u.device)
	u.want(t, http.StatusCreated, u.user.Ask(t, http.MethodPost, "/api/conversations", map[string]any{"upgrades": c.ID, "groupInfo": u.group.Info(u.device)}))
	u.path, u.uri = "/api/conversations/"+c.ID, c.URI
}

// upgrade makes the first commit, which adds the other member, and sends a message.
func (u *upgrader) upgrade(t *testing.T) {
	t.Helper()
	u.group, _ = u.commit(t, u.group, mlstest.Change{Add: []*mlstest.Device{u.other.device}})
	u.send(t, u.group)
}

// makeFriends makes two users friends.
func makeFriends(t *testing.T, a, b *enginetest.User) {
	t.Helper()
	a.Do(t, "SendFriendRequest", map[string]any{"actorUri": b.ID, "relationshipType": "friendOf"})
	enginetest.Eventually(t, "the request came", func() bool { return waiting(t, b)["friendOf"] != "" })
	b.Do(t, "AcceptFriendRequest", map[string]any{"actorUri": a.ID})
	enginetest.Eventually(t, "both are friends", func() bool {
		return standing(t, a, b.ID)[0] == "accepted" && standing(t, b, a.ID)[0] == "accepted"
	})
}

// at waits for the user's copy of a conversation. It returns a talker for the copy.
func (u *upgrader) at(t *testing.T, uri string) *talker {
	t.Helper()
	w := *u.talker
	enginetest.Eventually(t, u.user.Name+" has a copy of "+uri, func() bool {
		var all struct{ Items []struct{ ID, URI string } }
		w.want(t, http.StatusOK, u.user.Ask(t, http.MethodGet, "/api/conversations", nil)).Decode(t, &all)
		for _, c := range all.Items {
			if c.URI == uri {
				w.path = "/api/conversations/" + c.ID
				return true
			}
		}
		return false
	})
	return &w
}

// Two friends upgrade their conversation at the same moment, each while the other's server is
// away. Both continue in one conversation, whichever server returns first. The messages of the
// other conversation can still be read.
func TestTwoUpgradesAtOnceBecomeOneConversation(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	for _, swapped := range []bool{false, true} {
		name := uuid.NewString()[:8]
		alice, bob := &upgrader{talker: newTalker(a, t, "a"+name), home: a}, &upgrader{talker: newTalker(b, t, "b"+name), home: b}
		alice.other, bob.other = bob, alice
		makeFriends(t, alice.user, bob.user)
		alice.begin(t)
		bob.begin(t)
		first, second := alice, bob
		if swapped {
			first, second = bob, alice
		}
		second.home.Stop(t)
		first.upgrade(t)
		first.home.Stop(t)
		second.home.Start(t)
		second.upgrade(t)
		first.home.Start(t)
		for _, side := range []*upgrader{first, second} {
			side.home.Run(t, "deliver", "retry", "--all", "--quiet")
		}
		wins, loses := alice, bob
		if bob.uri < alice.uri {
			wins, loses = bob, alice
		}
		for _, side := range []*upgrader{alice, bob} {
			lost, won := side.at(t, loses.uri), side.at(t, wins.uri)
			enginetest.Eventually(t, side.user.Name+" sees which conversation goes on", func() bool {
				return lost.history(t).Status == "closed" && won.history(t).Status == "active"
			})
			if l, w := lost.history(t), won.history(t); l.Successor != wins.uri || l.ClosedAt == "" || w.Successor != "" || w.Predecessor != loses.uri {
				t.Errorf("%s sees that after %+v comes %+v", side.user.Name, l, w)
			}
			if got := side.user.Ask(t, http.MethodPost, lost.path+"/messages", map[string]any{"message": loses.group.Message()}); !isRefused(got, http.StatusConflict, "conversation_closed") {
				t.Errorf("%s sends to the other one, and is answered %d %s", side.user.Name, got.Status, got.Body)
			}
		}
		lost := wins.at(t, loses.uri)
		lost.join(t)
		lost.hears(t, 2, 2, "application")
		loses.at(t, loses.uri).hears(t, 1, 2, "commit", "application")
		won := loses.at(t, wins.uri)
		won.join(t)
		won.hears(t, 2, 2, "application")
		won.send(t, wins.group)
		wins.at(t, wins.uri).hears(t, 1, 3, "commit", "application", "application")
	}
}
