package engine_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnAudiences(t *testing.T) {
	t.Parallel()
	newSiege(t).play(audienceAttacks)
}

// befriend makes a new actor on q that accepts follows, and lets the users follow it.
func (s *siege) befriend(path string, users ...*enginetest.User) *peertest.Actor {
	s.Helper()
	a := s.q.Actor(path)
	for n, u := range users {
		follow := u.Do(s, "Follow", map[string]any{"actorUri": string(a.ID)}).ActivityID
		s.accepted(s.post(a, u.ID+"/inbox", vocab.Doc{"id": s.id(a, fmt.Sprint("accept-", n)), "type": "Accept", "actor": string(a.ID), "object": follow}))
	}
	return a
}

// says sends an activity of an actor about the actor's note to an inbox.
func (s *siege) says(a *peertest.Actor, inbox, kind, note, words string, more vocab.Doc) {
	s.Helper()
	o := vocab.Doc{"id": s.id(a, note), "type": "Note", "attributedTo": string(a.ID), "content": words, "published": "2026-01-01T10:00:00Z"}
	d := vocab.Doc{"id": s.id(a, fmt.Sprint(kind, time.Now().UnixNano())), "type": kind, "actor": string(a.ID), "object": o}
	if kind == "Update" {
		o["updated"] = time.Now().UTC().Format(time.RFC3339Nano)
	}
	for name, v := range more {
		o[name] = v
		if name == "to" || name == "cc" {
			d[name] = v
		}
	}
	s.accepted(s.post(a, inbox, d))
}

// words returns the content of a note that a user's database holds.
func words(s *siege, u *enginetest.User, note string) []string {
	s.Helper()
	return u.Column(s, `SELECT raw ->> 'content' FROM objects WHERE uri = $1`, note)
}

// fed reports whether an activity about a note is in a user's feed.
func fed(s *siege, u *enginetest.User, note string) bool {
	s.Helper()
	return len(u.Column(s, `SELECT f.activity_uri FROM feed f JOIN activities a ON a.uri = f.activity_uri WHERE a.object_uri = $1`, note)) > 0
}

// sentTo reports whether the engine sent a request that contains text to a peer.
func sentTo(p *peertest.Peer, text string) bool {
	return slices.ContainsFunc(p.Posted(), func(p peertest.Posted) bool { return bytes.Contains(p.Content, []byte(text)) })
}

// joins lets bob follow alice.
func (s *siege) joins() {
	s.Helper()
	s.bob.Do(s, "Follow", map[string]any{"actorUri": s.alice.ID})
	enginetest.Eventually(s, "bob follows alice", func() bool {
		return len(s.bob.Column(s, `SELECT 1 FROM relationships WHERE type = 'following' AND status = 'accepted' AND actor_uri = $1`, s.alice.ID)) == 1
	})
}

var audienceAttacks = []attack{see01, see02, see03, see04, see05, see06, see07}

var see01 = attack{id: "SEE-01", sends: "a letter to alice and bob, edited to be for alice alone, posted to the shared inbox", happens: "bob keeps the words that he was sent; an edit for both reaches both", changes: true, asks: 8, play: func(s *siege) {
	a := s.befriend("/users/see-01", s.alice, s.bob)
	note, shared := s.id(a, "letter"), s.home.URL+"/inbox"
	for _, edit := range []struct {
		kind, words string
		to          []any
		bob         string // the content of the note that bob has after the edit
	}{
		{"Create", "for both", []any{s.alice.ID, s.bob.ID}, "for both"},
		{"Update", "for alice alone", []any{s.alice.ID}, "for both"},
		{"Update", "for both again", []any{s.alice.ID, s.bob.ID}, "for both again"},
	} {
		s.says(a, shared, edit.kind, "letter", edit.words, vocab.Doc{"to": edit.to})
		s.settle()
		if alice, bob := words(s, s.alice, note), words(s, s.bob, note); !slices.Equal(alice, []string{edit.words}) || !slices.Equal(bob, []string{edit.bob}) {
			s.Errorf("after %q alice holds %q and bob %q, want %q", edit.words, alice, bob, edit.bob)
		}
		if tables := s.holding("lightweb_bob", "for alice alone"); len(tables) > 0 {
			s.Errorf("after %q bob's tables %q hold what is for alice alone", edit.words, tables)
		}
	}
	if tables := s.holding("lightweb_alice", "for both again"); !slices.Contains(tables, "objects") || !slices.Contains(tables, "activities") {
		s.Errorf("of what alice holds only %q are found", tables)
	}
}}

// holding returns the tables of a database that have the words in any column, as text or in bytes.
func (s *siege) holding(database, words string) (tables []string) {
	s.Helper()
	const find = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
		AND query_to_xml(format('SELECT 1 FROM %I t WHERE strpos(t::text, %L) + strpos(t::text, %L) > 0 LIMIT 1', table_name, $1::text, encode(convert_to($1, 'UTF8'), 'hex')), false, true, '')::text LIKE '%<row%' ORDER BY 1`
	found, err := s.home.SQL(s, database).QueryContext(s.Context(), find, words)
	if err != nil {
		s.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var table string
		if err := found.Scan(&table); err != nil {
			s.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := found.Err(); err != nil {
		s.Fatal(err)
	}
	return tables
}

var see02 = attack{id: "SEE-02", sends: "a stranger's public note that mentions alice and names her followers", happens: "alice sees it; it is forwarded to nobody and in no follower's feed, here or elsewhere. An answer to a post of hers is forwarded, and stands in the thread alone", changes: true, asks: 8, play: func(s *siege) {
	s.joins()
	create, post := s.alice.Post(s, map[string]any{"content": "what do you think?", "visibility": "public"})
	s.bob.Await(s, "main", "alice's post", func(i enginetest.Item) bool { return i.ActivityURI == create })
	to := vocab.Doc{"to": []any{string(vocab.Public)}, "cc": []any{s.alice.ID, s.alice.ID + "/followers"}, "tag": []any{vocab.Doc{"type": "Mention", "href": s.alice.ID}}}
	for _, inbox := range []string{s.alice.ID + "/inbox", s.home.URL + "/inbox"} {
		name := fmt.Sprint("mention-", len(inbox))
		s.says(s.mallory, inbox, "Create", name, "look at me", to)
		s.settle()
		note := s.id(s.mallory, name)
		if len(words(s, s.alice, note)) != 1 || len(words(s, s.bob, note)) != 0 || sentTo(s.q, note) {
			s.Errorf("of a mention alice holds %q, bob %q, and it was forwarded: %t", words(s, s.alice, note), words(s, s.bob, note), sentTo(s.q, note))
		}
	}
	to["inReplyTo"] = post
	s.says(s.mallory, s.alice.ID+"/inbox", "Create", "answer", "this", to)
	s.settle()
	answer := s.id(s.mallory, "answer")
	if len(words(s, s.bob, answer)) != 1 || fed(s, s.bob, answer) || !sentTo(s.q, answer) {
		s.Errorf("of an answer bob holds %q, in his feed: %t; forwarded to carol: %t", words(s, s.bob, answer), fed(s, s.bob, answer), sentTo(s.q, answer))
	}
}}

var see03 = attack{id: "SEE-03", sends: "boosts, likes and replies that embed somebody else's note with other words", happens: "202; a reader is shown the note as its author's server last said it, and the altered words nowhere", asks: 4, changes: true, play: func(s *siege) {
	carols := s.writeAs(s.carol, "true", "carol's own words")
	altered := func(id string, by string) vocab.Doc {
		return vocab.Doc{"id": id, "type": "Note", "attributedTo": by, "content": "<p>altered words</p>", "name": "altered name", "summary": "altered summary", "contentMap": vocab.Doc{"en": "altered words"}}
	}
	boost := s.like(s.mallory, "boost")
	boost["type"], boost["object"], boost["to"] = "Announce", altered(carols, string(s.carol.ID)), []any{s.alice.ID, string(vocab.Public)}
	like := s.like(s.mallory, "like")
	like["object"], like["target"] = altered(s.note, s.alice.ID), altered(carols, string(s.carol.ID))
	reply := s.create(s.mallory, "reply")
	note := reply["object"].(vocab.Doc)
	note["inReplyTo"], note["quote"] = altered(s.note, s.alice.ID), altered(carols, string(s.carol.ID))
	note["attachment"] = []any{altered(carols, string(s.carol.ID)), vocab.Doc{"type": "Note", "content": "altered words", "attributedTo": string(s.carol.ID)}}
	note["replies"] = vocab.Doc{"type": "Collection", "items": []any{altered(carols, string(s.carol.ID))}}
	honest := s.like(s.carol, "honest")
	for _, a := range []vocab.Doc{boost, like, reply} {
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", a))
	}
	s.accepted(s.post(s.carol, s.alice.ID+"/inbox", honest))
	s.settle()
	shown := s.everything()
	for _, want := range []string{"carol's own words", "believe me", honest.Text("id"), boost.Text("id"), like.Text("id")} {
		if !strings.Contains(shown, want) {
			s.Errorf("a reader is not shown %s", want)
		}
	}
	if at := strings.Index(shown, "altered"); at >= 0 {
		s.Errorf("a reader is shown …%s", shown[max(0, at-500):min(len(shown), at+100)])
	}
}}

var see04 = attack{id: "SEE-04", sends: "an Update of a note, then its Delete, and reads of every place where its old words can stand", happens: "the words that it had before are in no feed, activity, notification, reply, collection or event that is read", asks: 12, changes: true, play: func(s *siege) {
	stays, carols := s.writeAs(s.carol, "stays", "words that stay"), s.writeAs(s.carol, "changes", "first words")
	reply := s.create(s.mallory, "reply")
	reply["object"].(vocab.Doc)["inReplyTo"] = vocab.Doc{"id": carols, "type": "Note", "attributedTo": string(s.carol.ID), "content": "first words"}
	s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", reply))
	_, own := s.alice.Post(s, map[string]any{"content": "first words of alice's", "visibility": "public"})
	s.settle()
	if shown := s.repeatedly(); !strings.Contains(shown, "first words") || !strings.Contains(shown, "words that stay") {
		s.Errorf("the notes are not shown before: %s", shown)
	}
	for _, step := range []struct {
		change    func()
		old, want []string
	}{
		{func() {
			s.changeAs(s.carol, "Update", carols, "second words")
			s.alice.Do(s, "UpdateObject", map[string]any{"objectId": own, "content": "second words of alice's"})
		}, []string{"first words"}, []string{"words that stay", "second words", "second words of alice's"}},
		{func() {
			s.changeAs(s.carol, "Delete", carols, "")
			s.alice.Do(s, "DeleteObject", map[string]any{"objectId": own})
		}, []string{"first words", "second words"}, []string{"words that stay", stays}},
	} {
		step.change()
		s.settle()
		shown := s.repeatedly() + string(s.get(nil, own).Body) + string(s.get(nil, s.activityOf(own)).Body)
		for _, old := range step.old {
			if at := strings.Index(shown, old); at >= 0 {
				s.Errorf("a reader is shown …%s", shown[max(0, at-500):min(len(shown), at+100)])
			}
		}
		for _, want := range step.want {
			if !strings.Contains(shown, want) {
				s.Errorf("a reader is not shown %s", want)
			}
		}
	}
}}

// writeAs lets an actor's server serve a public note of the actor, and sends the note to alice. It
// returns the note's id.
func (s *siege) writeAs(a *peertest.Actor, name, words string) string {
	s.Helper()
	create := s.create(a, name)
	note := create["object"].(vocab.Doc)
	note["content"] = words
	id := note.Text("id")
	s.q.Serve(strings.TrimPrefix(id, s.q.Origin), note.JSON())
	s.accepted(s.post(a, s.alice.ID+"/inbox", create))
	return id
}

// changeAs sends an Update or a Delete of an actor's note to alice.
func (s *siege) changeAs(a *peertest.Actor, kind, note, words string) {
	s.Helper()
	change := vocab.Doc{"id": note + "/" + kind, "type": kind, "actor": string(a.ID), "to": []any{s.alice.ID, string(vocab.Public)}, "object": note}
	if kind == "Update" {
		change["object"] = vocab.Doc{"id": note, "type": "Note", "attributedTo": string(a.ID), "content": words, "to": change["to"], "updated": time.Now().UTC().Format(time.RFC3339Nano)}
	}
	s.accepted(s.post(a, s.alice.ID+"/inbox", change))
}

// everything returns all that can be read of the activities that alice received and sent. Her
// clients read feeds, requests, collections, objects, threads and search results. Everybody reads
// her pages. Consumers read the stream of events.
func (s *siege) everything() string {
	s.Helper()
	var all strings.Builder
	all.WriteString(s.feeds())
	for _, name := range []string{"inbox", "outbox"} {
		all.WriteString(s.pages("/users/alice/"+name+"?page=true", func(page vocab.Doc) string { return strings.TrimPrefix(page.Text("next"), s.home.URL) }))
	}
	for _, payload := range s.alice.Column(s, `SELECT payload::text FROM event_outbox`) {
		all.WriteString(payload)
	}
	for _, id := range s.alice.Column(s, `SELECT uri FROM objects`) {
		for _, path := range []string{"/api/objects?uri=", "/api/objects/thread?uri="} {
			all.Write(s.alice.Ask(s, http.MethodGet, path+url.QueryEscape(id), nil).Body)
		}
		if strings.HasPrefix(id, s.home.URL) {
			all.Write(enginetest.Fetch(s, strings.Replace(id, "/users/alice/objects/", "/@alice/", 1)).Body)
		}
	}
	all.WriteString(s.pages("/api/search?limit=50&q=words", func(page vocab.Doc) string {
		if page.Text("next") == "" {
			return ""
		}
		return "/api/search?limit=50&q=words&cursor=" + url.QueryEscape(page.Text("next"))
	}))
	for _, page := range []string{"/@alice", "/@alice/feed.atom"} {
		a := enginetest.Fetch(s, s.home.URL+page)
		s.answered(a, http.StatusOK)
		all.Write(a.Body)
	}
	told := s.home.Run(s, "stream", "tail", "alice", "--follow=false", "--last", "1000", "--json")
	if told.Code != 0 || !strings.Contains(told.Stdout, "create.received") {
		s.Fatalf("the stream of events in Redis was read with %d: %s", told.Code, told.Stderr)
	}
	all.WriteString(told.Stdout)
	return all.String()
}

// repeatedly returns what everything returns, after two more readings of the feeds. So the feeds
// come from the cache at last, if there is one, and the next change finds them there.
func (s *siege) repeatedly() string {
	s.Helper()
	const hits = `lightweb_cache_reads_total{layer="documents",result="hit"}`
	before := s.home.Metric(s, hits)
	shown := s.feeds() + s.feeds() + s.everything()
	if strings.Contains(s.home.Metrics(s), hits) && s.home.Metric(s, hits) == before {
		s.Error("no feed came from the cache")
	}
	return shown
}

// feeds returns alice's feeds, with each of their entries.
func (s *siege) feeds() string {
	s.Helper()
	var all strings.Builder
	for _, name := range []string{"main", "notifications", "requests"} {
		all.WriteString(s.pages("/api/feed?limit=100&feed="+name, func(page vocab.Doc) string {
			for _, item := range page.Subs("items") {
				all.Write(s.alice.Ask(s, http.MethodGet, "/api/feed/"+item.Text("id"), nil).Body)
			}
			if page.Text("next") == "" {
				return ""
			}
			return "/api/feed?limit=100&feed=" + name + "&cursor=" + url.QueryEscape(page.Text("next"))
		}))
	}
	return all.String()
}

// pages returns the pages at path and after it as one text. next() returns the path of the page
// after a page.
func (s *siege) pages(path string, next func(page vocab.Doc) string) string {
	s.Helper()
	var all strings.Builder
	for path != "" {
		a := s.alice.Ask(s, http.MethodGet, path, nil)
		page, err := vocab.ParseDoc(a.Body)
		if a.Status != http.StatusOK || err != nil {
			s.Fatalf("%s was answered %d: %v", path, a.Status, err)
		}
		all.Write(a.Body)
		path = next(page)
	}
	return all.String()
}

var see05 = attack{id: "SEE-05", sends: "a reply to a post of alice's, for her followers and not for everybody, by somebody that she does not follow", happens: "it is forwarded and stands in the thread, here and elsewhere (ActivityPub 7.1.2); the same words about nothing of hers are a letter of a stranger, and are not", changes: true, asks: 8, play: func(s *siege) {
	s.joins()
	create, post := s.alice.Post(s, map[string]any{"content": "and you?", "visibility": "public"})
	s.bob.Await(s, "main", "alice's post", func(i enginetest.Item) bool { return i.ActivityURI == create })
	to := vocab.Doc{"to": []any{s.alice.ID, s.alice.ID + "/followers"}}
	s.says(s.mallory, s.alice.ID+"/inbox", "Create", "letter", "buy this", to)
	to["inReplyTo"] = post
	s.says(s.mallory, s.alice.ID+"/inbox", "Create", "answer", "me, too", to)
	s.settle()
	letter, answer := s.id(s.mallory, "letter"), s.id(s.mallory, "answer")
	if fed(s, s.alice, letter) || len(words(s, s.bob, letter)) != 0 || sentTo(s.q, letter) {
		s.Errorf("of a letter bob holds %q, in alice's feed: %t; forwarded: %t", words(s, s.bob, letter), fed(s, s.alice, letter), sentTo(s.q, letter))
	}
	if len(words(s, s.alice, answer)) != 1 || len(words(s, s.bob, answer)) != 1 || fed(s, s.bob, answer) || !sentTo(s.q, answer) {
		s.Errorf("of an answer alice holds %q, bob %q, in his feed: %t; forwarded to carol: %t", words(s, s.alice, answer), words(s, s.bob, answer), fed(s, s.bob, answer), sentTo(s.q, answer))
	}
}}

var see06 = attack{id: "SEE-06", sends: "a block, a removal from followers or a group, or an addition to the group, while a post waits for a server that does not answer", happens: "who is blocked or out when the post is stored gets nothing of it, now or later; the others do, and so does an actor who is added before the members of the group are read. A letter that names an actor who is blocked by then is refused with 409", changes: true, asks: 40, play: func(s *siege) {
	named, meanwhile := s.follower("named"), make(chan struct{})
	friend, blocked, rejected, removed := s.follower("friend"), s.follower("blocked"), s.follower("rejected"), s.q.Actor("/users/see-06-removed")
	added := s.q.Actor("/users/see-06-added")
	group := enginetest.ObjectOf(s, s.alice, s.alice.Do(s, "CreateGroup", map[string]any{"name": "see-06"}).ActivityID)
	for _, member := range []*peertest.Actor{friend, removed} {
		s.alice.Do(s, "AddToGroup", map[string]any{"name": "see-06", "actorUri": string(member.ID)})
	}
	answers := make(chan enginetest.Answer, 2)
	for _, post := range []struct {
		late   string
		params map[string]any
	}{
		{"late-1", map[string]any{"content": "the meeting is at six", "to": []any{s.alice.ID + "/followers", group}}},
		{"late-2", map[string]any{"content": "the letter is in the safe", "visibility": "direct", "to": []any{string(named.ID)}}},
	} {
		late, asked := s.stalls(post.late, meanwhile)
		post.params["to"] = append(post.params["to"].([]any), string(late.ID))
		go func() { answers <- s.alice.Try(s, "CreateNote", post.params) }()
		enginetest.Eventually(s, "the engine asks for "+post.late, asked.Load)
	}
	for _, a := range []*peertest.Actor{blocked, named} {
		s.alice.Do(s, "Block", map[string]any{"actorUri": string(a.ID)})
	}
	s.alice.Do(s, "RejectFollow", map[string]any{"actorUri": string(rejected.ID)})
	s.alice.Do(s, "RemoveFromGroup", map[string]any{"name": "see-06", "actorUri": string(removed.ID)})
	s.alice.Do(s, "AddToGroup", map[string]any{"name": "see-06", "actorUri": string(added.ID)})
	close(meanwhile)
	statuses := []int{(<-answers).Status, (<-answers).Status}
	slices.Sort(statuses)
	if !slices.Equal(statuses, []int{http.StatusCreated, http.StatusConflict}) {
		s.Errorf("the post and the letter were answered %v", statuses)
	}
	s.settle()
	if sentTo(s.q, "the letter is in the safe") || !s.got(friend, "the meeting is at six") || !s.got(added, "the meeting is at six") {
		s.Error("the letter was sent, or the post was not sent to those who are still followers or members by now")
	}
	for _, a := range []*peertest.Actor{blocked, rejected, removed, named} {
		if s.got(a, "the meeting is at six") {
			s.Errorf("%s got the post", a.ID)
		}
	}
}}

// stalls returns a follower of alice that has sent an Update of itself. When the engine asks its
// server, the server sets asked, waits until the channel until is closed, and answers 503.
func (s *siege) stalls(name string, until <-chan struct{}) (a *peertest.Actor, asked *atomic.Bool) {
	s.Helper()
	a, asked = s.follower(name), &atomic.Bool{}
	path := strings.TrimPrefix(string(a.ID), s.q.Origin)
	s.q.Answer(path, http.StatusServiceUnavailable)
	s.accepted(s.post(a, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(a, "update"), "type": "Update", "actor": string(a.ID), "object": a.Doc, "to": []any{string(vocab.Public)}}))
	s.q.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(true)
		select {
		case <-until:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	return a, asked
}

// follower returns a new actor on q that follows alice.
func (s *siege) follower(name string) *peertest.Actor {
	s.Helper()
	a := s.q.Actor("/users/" + strings.ToLower(s.row.id) + "-" + name)
	s.accepted(s.post(a, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(a, "follow"), "type": "Follow", "actor": string(a.ID), "object": s.alice.ID}))
	return a
}

// got reports whether the engine sent a request that contains text to an actor's inbox.
func (s *siege) got(a *peertest.Actor, text string) bool {
	s.Helper()
	return slices.ContainsFunc(s.q.Posted(), func(p peertest.Posted) bool {
		return s.q.Origin+p.URL.Path == a.Doc.Text("inbox") && bytes.Contains(p.Content, []byte(text))
	})
}
