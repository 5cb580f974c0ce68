package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/outbox"
)

// wireFile holds, for each action of the vocabulary, the activity that it sends to another server.
var wireFile = filepath.Join("testdata", "actions_on_the_wire.json")

// kept lists the actions that send nothing to other servers. Some concern a user's own groups,
// marks and requests. Others concern conversations, whose host informs the members. Block is
// delivered only if the operator has configured that.
var kept = []string{"AcceptRequest", "AddMembers", "AddToGroup", "Block", "CreateConversation", "CreateGroup", "DeclineRequest", "DeleteGroup", "LeaveConversation", "MarkRead", "RemoveMember", "RemoveFromGroup", "Unblock"}

// wire plays actions between two users. It collects the activities that the receiving engine
// stores.
type wire struct {
	*testing.T
	users   [2]*enginetest.User
	numbers map[string]string // the keys are the parts of ids that are new in each run
	sent    map[string]any    // the activity of each action
}

var (
	madeParts = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	versions  = regexp.MustCompile(`lightweb/(devel|v[0-9][^" ]*)`)
	keys      = regexp.MustCompile(`-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----(\\n)?|z6Mk[1-9A-HJ-NP-Za-km-z]+`)
)

// does lets a user act. It collects the activity as the other user's engine has stored it.
func (w *wire) does(by int, action string, params map[string]any) enginetest.Dispatched {
	w.Helper()
	made := w.users[by].Do(w.T, action, params)
	other := w.users[1-by]
	var raw []string
	enginetest.Eventually(w.T, fmt.Sprint(other.Name, " has the activity of ", action), func() bool {
		raw = other.Column(w.T, `SELECT raw::text FROM activities WHERE uri = $1`, made.ActivityID)
		return len(raw) == 1
	})
	if _, there := w.sent[action]; !there {
		w.sent[action] = w.readable(raw[0])
	}
	return made
}

// readable returns an activity without the parts that differ in each run.
func (w *wire) readable(raw string) any {
	w.Helper()
	for n, u := range w.users {
		raw = strings.ReplaceAll(raw, u.Home.URL, fmt.Sprint("https://", n+1, ".example"))
		raw = strings.ReplaceAll(raw, strings.TrimPrefix(u.Home.URL, "http://"), fmt.Sprint(n+1, ".example"))
	}
	raw = times.ReplaceAllString(raw, "TIME")
	raw = keys.ReplaceAllString(raw, "KEY")
	raw = versions.ReplaceAllString(raw, "lightweb/VERSION")
	raw = madeParts.ReplaceAllStringFunc(raw, func(part string) string {
		if w.numbers[part] == "" {
			w.numbers[part] = fmt.Sprint("n", len(w.numbers)+1)
		}
		return w.numbers[part]
	})
	var d map[string]any
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		w.Fatal(err)
	}
	delete(d, "proof")
	delete(d, "@context")
	return d
}

// The activity of each action arrives at another engine exactly as wireFile has it, in JSON.
func actionsArriveAsWritten(t *testing.T, a, b *enginetest.Instance) {
	w := &wire{T: t, users: [2]*enginetest.User{a.CreateUser(t, "walt"), b.CreateUser(t, "wanda")}, numbers: map[string]string{}, sent: map[string]any{}}
	w.follow()
	w.write()
	w.befriend()
	for _, action := range outbox.Actions() {
		if _, sent := w.sent[action]; sent == slices.Contains(kept, action) {
			t.Errorf("%s: sent is %t", action, sent)
		}
	}
	var got bytes.Buffer
	e := json.NewEncoder(&got)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(w.sent); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(wireFile, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(wireFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("-want +got; 'go test ./engine -run TestFederation -update' writes it anew:\n%s", diff)
	}
}

// follow plays the actions that concern following. The second user decides on each Follow.
func (w *wire) follow() {
	walt, wanda := w.users[0], w.users[1]
	wanda.Configure(w.T, `{"follow_policy":"approval_required"}`)
	w.does(0, "Follow", map[string]any{"actorUri": wanda.ID})
	w.does(1, "RejectFollow", map[string]any{"actorUri": walt.ID})
	w.does(0, "Follow", map[string]any{"actorUri": wanda.ID})
	w.does(1, "AcceptFollow", map[string]any{"actorUri": walt.ID})
	w.does(0, "Unfollow", map[string]any{"actorUri": wanda.ID})
	w.does(0, "Follow", map[string]any{"actorUri": wanda.ID})
	w.does(1, "AcceptFollow", map[string]any{"actorUri": walt.ID})
	befriend(w.T, wanda, walt)
}

// write plays the actions that concern posts.
func (w *wire) write() {
	wanda := w.users[1]
	note := w.does(0, "CreateNote", map[string]any{"content": "a #cat", "summary": "animals", "language": "en", "visibility": "public"}).ObjectID
	w.does(0, "UpdateObject", map[string]any{"objectId": note, "content": "two #cats"})
	article := w.does(0, "CreateArticle", map[string]any{"title": "On cats", "content": "They sleep."}).ObjectID
	w.does(0, "CreateObject", map[string]any{"type": "Video", "title": "A cat", "content": "It sleeps.", "file": map[string]any{"url": "https://v.example/cat.mp4", "mediaType": "video/mp4"}})
	w.does(0, "SendMessage", map[string]any{"recipientUri": wanda.ID, "content": "between us"})
	w.does(1, "Reply", map[string]any{"objectId": note, "content": "nice"})
	for _, action := range []string{"Like", "Unlike", "Boost", "Unboost"} {
		w.does(1, action, map[string]any{"objectId": note})
	}
	for _, action := range []string{"Dislike", "UndoDislike"} {
		w.does(1, action, map[string]any{"objectId": article})
	}
	stream := w.does(0, "CreateStream", map[string]any{"name": "Cats"}).ObjectID
	w.does(0, "AddToStream", map[string]any{"streamId": stream, "objectId": note})
	w.does(0, "RemoveFromStream", map[string]any{"streamId": stream, "objectId": note})
	w.does(0, "DeleteStream", map[string]any{"streamId": stream})
	quoting := wanda.Do(w.T, "CreateNote", map[string]any{"content": "look", "visibility": "public", "quote": note}).ObjectID
	enginetest.Eventually(w.T, "wanda knows that the quote is approved", func() bool { // if the Delete came earlier, there would be nothing to store
		return len(wanda.Column(w.T, `SELECT uri FROM objects WHERE raw ->> 'quoteAuthorization' IS NOT NULL`)) == 1
	})
	w.does(0, "RevokeQuote", map[string]any{"objectId": quoting})
	w.does(0, "DeleteObject", map[string]any{"objectId": note})
	w.does(0, "UpdateProfile", map[string]any{"name": "Walt"})
}

// befriend plays the actions that concern friends.
func (w *wire) befriend() {
	walt, wanda := w.users[0], w.users[1]
	for _, answer := range []string{"RejectFriendRequest", "AcceptFriendRequest"} {
		offer := w.does(0, "SendFriendRequest", map[string]any{"actorUri": wanda.ID, "relationshipType": "friendOf"}).ActivityID
		w.does(1, answer, map[string]any{"offerId": offer})
	}
	w.does(1, "RemoveRelationship", map[string]any{"actorUri": walt.ID, "relationshipType": "friendOf"})
}
