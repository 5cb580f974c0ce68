package engine_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// shownThread is the thread of an object as a client sees it.
type shownThread struct {
	Ancestors, Replies []shownObject
	Item               shownObject
	Actors             map[string]struct{ Handle string }
	Truncated          bool
}

type shownObject struct {
	URI, AuthorURI, InReplyTo string
	Held, Liked               bool
	Replies, Likes            int
}

// threadOf returns the thread of an object as a client of u sees it. It also returns the ids of
// the object's ancestors, the object and its replies.
func threadOf(t *testing.T, u *enginetest.User, object, query string) (thread shownThread, ids string) {
	t.Helper()
	answer := u.Ask(t, http.MethodGet, "/api/objects/thread?uri="+url.QueryEscape(object)+query, nil)
	if answer.Status != http.StatusOK {
		return thread, string(answer.Body)
	}
	answer.Decode(t, &thread)
	return thread, listThread(thread)
}

func listThread(thread shownThread) string {
	var ids []string
	for _, o := range slices.Concat(thread.Ancestors, []shownObject{thread.Item}, thread.Replies) {
		ids = append(ids, o.URI)
	}
	return strings.Join(ids, " ")
}

// Three users on two engines reply to each other. Both sides have the whole thread. A user who
// lacks a part of it gets the part from its server.
func threadIsWholeOnBothSides(t *testing.T, a, b *enginetest.Instance) {
	ann, ben, cleo := a.CreateUser(t, "ann"), b.CreateUser(t, "ben"), b.CreateUser(t, "cleo")
	for follower, followed := range map[*enginetest.User]*enginetest.User{ben: ann, cleo: ann, ann: ben} {
		befriend(t, follower, followed)
	}
	befriend(t, ben, cleo)
	reply := func(u *enginetest.User, to, text string) string {
		t.Helper()
		enginetest.Eventually(t, u.Handle+" holds what is answered", func() bool {
			thread, _ := threadOf(t, u, to, "")
			return thread.Item.Held
		})
		return enginetest.ObjectOf(t, u, u.Do(t, "Reply", map[string]any{"objectId": to, "content": text}).ActivityID)
	}
	_, root := ann.Post(t, map[string]any{"content": "a question"})
	first := reply(ben, root, "an answer")
	second := reply(ann, first, "thanks")
	third := reply(cleo, root, "another answer")
	ben.Do(t, "Like", map[string]any{"objectId": second})
	want := strings.Join([]string{root, first, third, second}, " ")
	for _, u := range []*enginetest.User{ann, ben} {
		enginetest.Eventually(t, u.Handle+" has the whole thread", func() bool { _, ids := threadOf(t, u, root, ""); return ids == want })
	}
	enginetest.Eventually(t, "the like is counted", func() bool {
		thread, ids := threadOf(t, ann, second, "")
		return ids == strings.Join([]string{root, first, second}, " ") && thread.Item.Likes == 1 && !thread.Item.Liked && thread.Item.InReplyTo == first && thread.Actors[ben.ID].Handle == ben.Handle
	})
	if thread, _ := threadOf(t, ben, second, ""); !thread.Item.Liked || !thread.Item.Held {
		t.Errorf("ben is shown %+v", thread)
	}
	dora := b.CreateUser(t, "dora")
	if thread, ids := threadOf(t, dora, second, ""); ids != second || thread.Item.Held || thread.Item.AuthorURI != ann.ID {
		t.Errorf("dora, who holds nothing, is shown %s", ids)
	}
	for _, u := range []*enginetest.User{dora, a.CreateUser(t, "emil")} { // neither user has any part of the thread
		if _, ids := threadOf(t, u, root, "&backfill=true"); ids != want {
			t.Errorf("%s, who wants it filled in, is shown %s, want %s", u.Handle, ids, want)
		}
	}
	ann.Do(t, "Block", map[string]any{"actorUri": cleo.ID})
	if _, ids := threadOf(t, ann, root, ""); ids != strings.Join([]string{root, first, second}, " ") {
		t.Errorf("without cleo, ann is shown %s", ids)
	}
}
