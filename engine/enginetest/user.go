package enginetest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/keytest"
	"github.com/lightweb/lightweb/engine/server/apitest"
)

// User is a local user of an instance, together with a token.
type User struct {
	Home   *Instance
	Name   string
	ID     string `json:"actor"`
	Handle string
	Token  string
}

// CreateUser makes a user by the command line. A serving engine is not notified.
func (i *Instance) CreateUser(t testing.TB, name string) *User {
	t.Helper()
	keytest.Lend(t, filepath.Join(i.DataDir, "users", name, "keys"))
	made := i.Run(t, "user", "create", name, "--token", "--json")
	if made.Code != 0 {
		t.Fatalf("create user %s: exit code %d\n%s", name, made.Code, made.Stderr)
	}
	u := &User{Home: i, Name: name}
	made.Decode(t, u)
	return u
}

// Configure writes the user's configuration file, as JSON. A serving engine applies it within a
// second.
func (u *User) Configure(t testing.TB, config string) {
	t.Helper()
	path := filepath.Join(u.Home.DataDir, "users", u.Name, "config.json")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Answer is the response to an HTTP request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode decodes the body as JSON.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("the answer %d %q is not the JSON expected: %v", a.Status, a.Body, err)
	}
}

// client makes the requests to engines and peers, never through a proxy.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}

// ask makes a request. If no response arrives, the status of the Answer is 0.
func ask(t testing.TB, method, url string, body []byte, header http.Header) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	return Send(t, r)
}

// Send sends a request, such as a signed one of a peer's actor. If no response arrives, the status
// of the Answer is 0.
func Send(t testing.TB, r *http.Request) Answer {
	t.Helper()
	r.RequestURI = "" // httptest.NewRequest sets it as a server does; a client refuses to send it
	resp, err := client.Do(r.WithContext(t.Context()))
	if err != nil {
		t.Logf("%s %s: %v", r.Method, r.URL, err)
		return Answer{}
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		t.Logf("%s %s: %v", r.Method, r.URL, err)
		return Answer{}
	}
	return a
}

// Fetch gets a document without signing the request, as some servers do.
func Fetch(t testing.TB, url string) Answer {
	t.Helper()
	return ask(t, http.MethodGet, url, nil, http.Header{"Accept": {"application/activity+json"}})
}

// Ask makes a request to the client API with the user's token. A body that is not nil is sent
// as JSON.
func (u *User) Ask(t testing.TB, method, path string, body any) Answer {
	t.Helper()
	return u.AskOnce(t, method, path, "", body)
}

// AskOnce does the same as Ask, and sends the parameter key as the Idempotency-Key unless key is
// empty.
func (u *User) AskOnce(t testing.TB, method, path, key string, body any) Answer {
	t.Helper()
	h := http.Header{"Authorization": {"Bearer " + u.Token}}
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
		h.Set("Content-Type", "application/json")
	}
	return u.askDescribed(t, method, path, content, h)
}

// askDescribed makes a request to the client API, and checks that the response matches the
// description of that API.
func (u *User) askDescribed(t testing.TB, method, path string, content []byte, h http.Header) Answer {
	t.Helper()
	a := ask(t, method, u.Home.URL+path, content, h)
	if a.Status == 0 {
		return a
	}
	route, _, _ := strings.Cut(path, "?")
	u.Home.Describe(t).Check(t, apitest.Exchange{Method: method, Path: route, Status: a.Status, Header: a.Header, Body: a.Body})
	return a
}

// Upload uploads a file to the client API with the user's token. The request declares the media
// type of the file.
func (u *User) Upload(t testing.TB, path, mediaType string, content []byte) Answer {
	t.Helper()
	return u.askDescribed(t, http.MethodPut, path, content, http.Header{"Authorization": {"Bearer " + u.Token}, "Content-Type": {mediaType}})
}

// Dispatched is the response to an action that was accepted.
type Dispatched struct {
	Success       bool
	ActivityID    string `json:"activityId"`
	ObjectID      string `json:"objectId"`
	FederationJob *struct {
		JobID      string `json:"jobId"`
		Recipients int
	} `json:"federationJob"` // nil when nothing is delivered to another server
}

// Try dispatches an action and returns the response, even if its status is an error.
func (u *User) Try(t testing.TB, action string, params map[string]any) Answer {
	t.Helper()
	return u.Ask(t, http.MethodPost, "/api/activity", map[string]any{"action": action, "params": params})
}

// Do dispatches an action, and fails the test unless it is accepted.
func (u *User) Do(t testing.TB, action string, params map[string]any) Dispatched {
	t.Helper()
	a := u.Try(t, action, params)
	var d Dispatched
	if a.Status == http.StatusCreated {
		a.Decode(t, &d)
	}
	if a.Status != http.StatusCreated || !d.Success || d.ActivityID == "" {
		t.Fatalf("%s of %s was answered %d %s, want 201 and an activity", action, u.Name, a.Status, a.Body)
	}
	return d
}

// Post dispatches a CreateNote and returns the ids of the Create and of the note.
func (u *User) Post(t testing.TB, params map[string]any) (create, note string) {
	t.Helper()
	create = u.Do(t, "CreateNote", params).ActivityID
	return create, ObjectOf(t, u, create)
}

// ObjectOf returns the id of the object of an activity. The user's database must store the
// activity.
func ObjectOf(t testing.TB, u *User, activity string) string {
	t.Helper()
	about := u.Column(t, `SELECT object_uri FROM activities WHERE uri = $1`, activity)
	if len(about) != 1 || about[0] == "" {
		t.Fatalf("the activity %s is about %q, want one object", activity, about)
	}
	return about[0]
}

// Item is an item of a feed.
type Item struct {
	ID          string
	ActivityURI string
	Type        string
	ActorURI    string
	Visibility  string
}

// Feed returns the first page of a feed of the user.
func (u *User) Feed(t testing.TB, name string) []Item {
	t.Helper()
	a := u.Ask(t, http.MethodGet, "/api/feed?feed="+url.QueryEscape(name), nil)
	if a.Status != http.StatusOK {
		t.Fatalf("the feed %s of %s was answered %d %s", name, u.Name, a.Status, a.Body)
	}
	var page struct{ Items []Item }
	a.Decode(t, &page)
	return page.Items
}

// Await waits until a feed has an item for which matches() returns true. It returns that item.
func (u *User) Await(t testing.TB, feed, what string, matches func(Item) bool) (found Item) {
	t.Helper()
	Eventually(t, strings.Join([]string{"the feed", feed, "of", u.Name, "shows", what}, " "), func() bool {
		for _, item := range u.Feed(t, feed) {
			if matches(item) {
				found = item
				return true
			}
		}
		return false
	})
	return found
}
