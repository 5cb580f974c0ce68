package engine_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// Row 25: two friends on two servers talk in ciphertext. The other one loses all key packages, and
// then the friendship ends. No Note goes out, whichever way it is tried.
func TestRow25APeerThatLosesItsKeyPackagesGetsNoNote(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	alice, bob := &upgrader{talker: newTalker(a, t, "alice"), home: a}, &upgrader{talker: newTalker(b, t, "bob"), home: b}
	alice.other, bob.other = bob, alice
	makeFriends(t, alice.user, bob.user)
	alice.begin(t)
	alice.upgrade(t)
	his := bob.at(t, alice.uri)
	his.join(t)
	id := strings.TrimPrefix(alice.path, "/api/conversations/")
	notes := func() int { return len(bob.user.Column(t, `SELECT uri FROM objects WHERE raw->>'type' = 'Note'`)) }
	before := notes()
	if before != 1 {
		t.Fatalf("bob has %d Notes, want the one that came before the upgrade", before)
	}
	nothingInTheOpen := func() {
		t.Helper()
		for _, try := range []struct {
			action string
			params map[string]any
			code   string
		}{
			{"SendMessage", map[string]any{"conversationId": id, "content": "in the open"}, "mls_ciphertext_required"},
			{"SendMessage", map[string]any{"conversationId": id, "content": base64.StdEncoding.EncodeToString([]byte("in the open"))}, "mls_ciphertext_required"},
			{"SendMessage", map[string]any{"recipientUri": bob.user.ID, "content": "in the open"}, "conversation_encrypted"},
			{"CreateNote", map[string]any{"content": "in the open", "visibility": "direct", "to": []string{bob.user.ID}}, "conversation_encrypted"},
		} {
			if got := alice.user.Try(t, try.action, try.params); !isRefused(got, http.StatusUnprocessableEntity, try.code) {
				t.Errorf("%s of %v is answered %d %s, want %s", try.action, try.params, got.Status, got.Body, try.code)
			}
		}
	}

	var own struct{ Items []struct{ ID string } }
	bob.want(t, http.StatusOK, bob.user.Ask(t, http.MethodGet, "/api/keypackages", nil)).Decode(t, &own)
	for _, k := range own.Items {
		bob.want(t, http.StatusNoContent, bob.user.Ask(t, http.MethodDelete, "/api/keypackages/"+k.ID, nil))
	}
	if got := alice.user.Ask(t, http.MethodPost, "/api/keypackages/claim", map[string]any{"actor": bob.user.ID}); !isRefused(got, http.StatusNotFound, "no_key_package") {
		t.Errorf("a claim of bob's packages is answered %d %s", got.Status, got.Body)
	}
	nothingInTheOpen()
	said := alice.send(t, alice.group) // the group needs no key packages
	his.hears(t, said.Seq, said.Seq, "application")

	alice.user.Do(t, "RemoveRelationship", map[string]any{"actorUri": bob.user.ID, "relationshipType": "friendOf"})
	enginetest.Eventually(t, "both sides are closed", func() bool { return alice.history(t).Status == "closed" && his.history(t).Status == "closed" })
	nothingInTheOpen()
	expectClosed(t, alice.group, alice.talker, his)
	if n := notes(); n != before {
		t.Errorf("bob has %d Notes, want %d", n, before)
	}
	if sent := alice.user.Column(t, `SELECT uri FROM activities WHERE raw::text LIKE '%in the open%'`); len(sent) > 0 {
		t.Errorf("alice has sent %q", sent)
	}
}

// expectClosed checks that neither side sends ciphertext any more.
func expectClosed(t *testing.T, g *mlstest.Group, sides ...*talker) {
	t.Helper()
	for _, w := range sides {
		if got := w.user.Ask(t, http.MethodPost, w.path+"/messages", map[string]any{"message": g.Message()}); !isRefused(got, http.StatusConflict, "conversation_closed") {
			t.Errorf("%s sends, and is answered %d %s", w.user.Name, got.Status, got.Body)
		}
	}
}
