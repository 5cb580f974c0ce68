package engine_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/server/apitest"
)

// The test calls every operation of the client API with valid and with invalid requests. The
// helpers of these tests compare every answer with the description of the API.
func clientAPIIsAsDescribed(t *testing.T, a, b *enginetest.Instance) {
	author, reader := a.CreateUser(t, "dora"), b.CreateUser(t, "dirk")
	befriend(t, reader, author)
	author.Configure(t, `{"profile":{"name":"Dora"},"moderation":{"muted_actors":["https://peer.example/users/x"],"muted_domains":["spam.example"],"muted_keywords":["spoiler"]}}`)
	made := author.Do(t, "CreateNote", map[string]any{"content": "hello", "visibility": "public"})
	delivered(t, author, made.ActivityID, false)
	stream := author.Do(t, "CreateStream", map[string]any{"name": "Cats"}).ObjectID
	author.Do(t, "AddToStream", map[string]any{"streamId": stream, "objectId": made.ObjectID})
	author.Do(t, "CreateGroup", map[string]any{"name": "friends"})
	reader.Await(t, "main", "the post", func(i enginetest.Item) bool { return i.ActivityURI == made.ActivityID })
	reader.Do(t, "Reply", map[string]any{"objectId": made.ObjectID, "content": "hello to you"})
	answer := author.Await(t, "notifications", "the answer", func(i enginetest.Item) bool { return i.Type == "Create" })
	about := url.QueryEscape(made.ObjectID)
	asked := map[string]bool{}
	ask := func(method, path string, body any, want int) {
		t.Helper()
		got := author.Ask(t, method, path, body)
		if got.Status != want {
			t.Errorf("%s %s is answered %d, want %d: %.500s", method, path, got.Status, want, got.Body)
		}
		route, _, _ := strings.Cut(path, "?")
		asked[a.Describe(t).Operation(apitest.Exchange{Method: method, Path: route})] = true
	}
	for path, wrong := range map[string]string{
		"/api/feed?feed=main":                         "/api/feed?feed=none",
		"/api/feed?feed=notifications":                "/api/feed?cursor=x",
		"/api/feed/" + answer.ID:                      "/api/feed/019c8052-5f00-7000-8000-000000000001",
		"/api/deliveries":                             "/api/deliveries?limit=0",
		"/api/deliveries/" + made.FederationJob.JobID: "/api/deliveries/019c8052-5f00-7000-8000-000000000001",
		"/api/me":                                        "/api/me?x=1",
		"/api/actors?uri=" + reader.ID:                   "/api/actors",
		"/api/objects?uri=" + about:                      "/api/objects?uri=x",
		"/api/objects/thread?backfill=true&uri=" + about: "/api/objects/thread?backfill=maybe&uri=" + about,
		"/api/relationships":                             "/api/relationships?type=none",
		"/api/relationships?type=mute":                   "/api/relationships?type=mute&limit=1",
		"/api/groups":                                    "/api/groups?x=1",
		"/api/streams":                                   "/api/streams?x=1",
		"/api/audit":                                     "/api/audit?cursor=x",
		"/api/actions":                                   "/api/actions?x=1",
		"/api/openapi.json":                              "/api/openapi.json?x=1",
		"/api/search?q=hello":                            "/api/search?q=",
	} {
		ask(http.MethodGet, path, nil, http.StatusOK)
		refused := author.Ask(t, http.MethodGet, wrong, nil)
		if refused.Status != http.StatusBadRequest && refused.Status != http.StatusNotFound {
			t.Errorf("%s is answered %d: %.500s", wrong, refused.Status, refused.Body)
		}
	}
	ask(http.MethodPost, "/api/activity", map[string]any{"action": "Like", "params": map[string]any{"objectId": made.ObjectID}}, http.StatusCreated)
	ask(http.MethodPost, "/api/activity", map[string]any{"action": "Explode", "params": map[string]any{}}, http.StatusUnprocessableEntity)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/me/icon", "/api/me/image"} {
		if got := author.Upload(t, path, "image/png", picture.Bytes()); got.Status != http.StatusOK {
			t.Errorf("%s is answered %d", path, got.Status)
		}
		ask(http.MethodPut, path, "no picture", http.StatusUnsupportedMediaType)
		ask(http.MethodDelete, path, nil, http.StatusOK)
	}
	ask(http.MethodPost, "/api/session", map[string]any{}, http.StatusCreated)
	ask(http.MethodDelete, "/api/session", nil, http.StatusForbidden)
	ask(http.MethodGet, "/api/session/oidc", nil, http.StatusNotFound)
	ask(http.MethodGet, "/api/session/oidc/callback", nil, http.StatusNotFound)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("right words"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := a.Run(t, "user", "passwd", "dora", "--password-file", file); got.Code != 0 {
		t.Fatalf("user passwd ended with %d: %s", got.Code, got.Stderr)
	}
	change := map[string]any{"current": "right words", "new": "other words"}
	ask(http.MethodPost, "/api/me/password", change, http.StatusNoContent)
	ask(http.MethodPost, "/api/me/password", change, http.StatusForbidden)
	ask(http.MethodGet, "/api/events?x=1", nil, http.StatusBadRequest)
	askConversations(t, author, ask)
	for _, op := range a.Describe(t).Operations() {
		if !asked[op] && op != "get /ws" {
			t.Errorf("nobody asked for %s", op)
		}
	}
}

// askConversations calls the operations of encrypted conversations, with valid and with invalid
// requests.
func askConversations(t *testing.T, u *enginetest.User, ask func(method, path string, body any, want int)) {
	t.Helper()
	device := mlstest.NewDevice(u.ID, time.Now())
	group := mlstest.NewGroup(device)
	ask(http.MethodPost, "/api/conversations", map[string]any{"groupInfo": group.Info(device)}, http.StatusCreated)
	ask(http.MethodGet, "/api/conversations", nil, http.StatusOK)
	var list struct{ Items []struct{ ID string } }
	u.Ask(t, http.MethodGet, "/api/conversations", nil).Decode(t, &list)
	if len(list.Items) != 1 {
		t.Fatalf("%s has %d conversations, want 1", u.Name, len(list.Items))
	}
	path := "/api/conversations/" + list.Items[0].ID
	ask(http.MethodGet, path, nil, http.StatusOK)
	ask(http.MethodPost, path+"/messages", map[string]any{"message": group.Message()}, http.StatusCreated)
	ask(http.MethodGet, path+"/log", nil, http.StatusOK)
	ask(http.MethodGet, path+"/group-info", nil, http.StatusOK)
	ask(http.MethodPut, path+"/read", map[string]any{"seq": 1}, http.StatusNoContent)
	commit, next := group.Commit(device, mlstest.Change{})
	ask(http.MethodPost, path+"/commits", map[string]any{"commit": commit, "groupInfo": next.Info(device)}, http.StatusBadRequest) // without an idempotency key
	ask(http.MethodPost, path+"/external-commit", map[string]any{}, http.StatusBadRequest)
	ask(http.MethodPost, path+"/reset", map[string]any{}, http.StatusAccepted)
	ask(http.MethodPost, "/api/keypackages", map[string]any{"keyPackages": []any{}}, http.StatusUnprocessableEntity)
	ask(http.MethodGet, "/api/keypackages", nil, http.StatusOK)
	ask(http.MethodGet, "/api/keypackages/stats", nil, http.StatusOK)
	ask(http.MethodPost, "/api/mls/recovery-reports", map[string]any{"conversationId": list.Items[0].ID, "reason": "bad_commit", "epoch": 0}, http.StatusNoContent)
	none := uuid.NewString()
	ask(http.MethodDelete, "/api/keypackages/"+none, nil, http.StatusNotFound)
	ask(http.MethodPost, "/api/keypackages/claim", map[string]any{"actor": "not an id"}, http.StatusUnprocessableEntity)
	ask(http.MethodGet, "/api/mls/messages", nil, http.StatusOK)
	ask(http.MethodGet, "/api/welcomes", nil, http.StatusOK)
	ask(http.MethodPost, "/api/welcomes/"+none+"/confirm", nil, http.StatusNotFound)
}
