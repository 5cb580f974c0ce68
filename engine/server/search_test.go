package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

func TestASearchFindsWhatTheUserHas(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, first := f.post(f.alice, "needle one", start, vocab.Public)
	_, second := f.post(f.alice, "needle two", start.Add(time.Second), vocab.Public)
	f.post(f.bob, "needle of somebody else", start, vocab.Public)
	type page struct {
		Items []struct {
			URI    string
			Object struct{ Source struct{ Content string } }
		}
		Actors   map[string]struct{ Handle string }
		People   []struct{ Handle string }
		Complete bool
		Next     string
	}
	read := bearerToken(f.token(f.alice, "read"))
	var one, two page
	f.get("/api/search?q=needle&limit=1", read).want(t, 200).decode(t, &one)
	if len(one.Items) != 1 || one.Items[0].URI != string(second) || one.Next == "" || !one.Complete || one.People == nil || len(one.Actors) != 1 {
		t.Errorf("the first page is %+v", one)
	}
	r := f.get("/api/search?q=needle&limit=1&cursor="+one.Next, read).want(t, 200)
	if r.decode(t, &two); len(two.Items) != 1 || two.Items[0].URI != string(first) || two.Next != "" {
		t.Errorf("the second page is %+v", two)
	}
	for _, wrong := range []string{"", "?q=", "?q=-needle", "?q=needle&limit=51", "?q=needle&cursor=x", "?q=needle&x=1"} {
		f.get("/api/search"+wrong, read).want(t, 400)
	}
	f.get("/api/search?q=needle", bearerToken(f.token(f.alice, "write"))).want(t, 403)
	f.get("/api/search?q=needle").want(t, 401)
	llm := bearerToken(f.token(f.bob, "llm"))
	var bobs page
	if f.get("/api/search?q=needle", llm).want(t, 200).decode(t, &bobs); len(bobs.Items) != 1 {
		t.Errorf("bob finds %+v", bobs)
	}
	for f.get("/api/search?q=needle", llm).StatusCode == http.StatusOK {
		continue // repeats until the quota of bob's programs is used up
	}
	if r := f.get("/api/search?q=needle", llm).want(t, 429); r.Header.Get("Retry-After") == "" {
		t.Error("a program is not told when to come again")
	}
}
