package engine_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnIdentities(t *testing.T) {
	t.Parallel()
	newSiege(t).play(identityAttacks)
}

var identityAttacks = []attack{idn01, idn02, idn03, idn04}

var idn01 = attack{id: "IDN-01", sends: "one actor under several spellings of its id (capitals in scheme and host, letters that a host name maps to others), which follows, is put into a group, writes and deletes itself; alice blocks one of them",
	happens: "one actor, one relationship, one member; after the Block nothing for followers or the group leaves to any spelling, and nothing by any takes effect; an honest actor beside it, who writes its id in such a way, is named in its own spelling",
	changes: true, asks: 40, play: func(s *siege) {
		m := newManyNames(s)
		m.names()
		for n := range m.spellings {
			s.accepted(m.post(n, "Follow", s.alice.ID))
			s.alice.Do(s, "AddToGroup", map[string]any{"name": "inner-circle", "actorUri": m.spellings[n]})
		}
		s.settle()
		m.stands(1)
		m.checkOneActor()
		m.gets(s.alice.ID+"/followers", true)
		m.gets(s.circle, true)

		s.alice.Do(s, "Block", map[string]any{"actorUri": m.spellings[2]})
		s.settle()
		for n := range m.spellings {
			s.accepted(m.post(n, "Follow", s.alice.ID))
			s.accepted(m.post(n, "Like", s.note))
			s.accepted(m.post(n, "Create", m.noteOf(n)))
			if a := s.alice.Try(s, "AddToGroup", map[string]any{"name": "inner-circle", "actorUri": m.spellings[n]}); a.Status != http.StatusConflict {
				s.Errorf("a blocked actor is put into a group as %s: %d %s", m.spellings[n], a.Status, a.Body)
			}
		}
		s.settle()
		m.stands(0)
		m.checkUnheard()
		m.checkOneActor()
		m.gets(s.alice.ID+"/followers", false)
		m.gets(s.circle, false)

		s.alice.Do(s, "Unblock", map[string]any{"actorUri": m.spellings[1]})
		s.accepted(m.post(3, "Follow", s.alice.ID))
		s.alice.Do(s, "RejectFollow", map[string]any{"actorUri": m.spellings[1]})
		s.settle()
		m.gets(s.alice.ID+"/followers", false)
		s.accepted(m.post(0, "Follow", s.alice.ID))
		s.alice.Do(s, "AddToGroup", map[string]any{"name": "inner-circle", "actorUri": m.spellings[1]})
		m.stands(1)
		m.peer.Answer("/users/mallory", http.StatusGone)
		s.accepted(m.post(2, "Delete", m.spellings[1]))
		s.settle()
		m.stands(0)
		m.gets(s.alice.ID+"/followers", false)
	}}

// manyNames is a server that has a name with many spellings. mallory uses many of them. dave is
// honest and always uses the same spelling, which is not canonical.
type manyNames struct {
	*siege
	peer          *peertest.Peer
	mallory, dave *peertest.Actor
	spellings     []string // spellings of mallory's id; the first is canonical
	written       string   // dave's id as his server writes it
	n             int
}

func newManyNames(s *siege) *manyNames {
	s.Helper()
	m := &manyNames{siege: s, peer: peertest.New(s, "127.0.0.1")}
	port := m.peer.Origin[strings.LastIndexByte(m.peer.Origin, ':'):]
	m.peer.Origin = "http://localhost" + port
	m.mallory = m.peer.Actor("/users/mallory")
	for _, origin := range []string{"http://localhost", "http://LocalHost", "HTTP://localhost", "http://\uff4cocalhost"} {
		m.spellings = append(m.spellings, origin+port+"/users/mallory")
	}
	m.peer.Origin = "http://LocalHost" + port
	m.dave = m.peer.Actor("/users/dave")
	m.written = m.dave.Doc.Text("id")
	before := len(m.peer.Posted())
	follow := m.does(m.dave, "Follow", s.alice.ID)
	s.accepted(s.post(m.dave, s.alice.ID+"/inbox", follow))
	s.alice.Do(s, "AddToGroup", map[string]any{"name": "inner-circle", "actorUri": m.written})
	s.settle()
	for _, p := range m.peer.Posted()[before:] {
		d, err := vocab.ParseDoc(p.Content)
		if err != nil {
			s.Fatal(err)
		}
		answered := d.Sub("object")
		if d.Text("type") != "Accept" || answered.Text("id") != follow.Text("id") || answered.Text("actor") != m.written || !slices.Equal(d["to"].([]any), []any{m.written}) {
			s.Errorf("%s was sent %s, want an Accept that names things as he does", m.written, p.Content)
		}
	}
	return m
}

// names lets alice act on dave and on his posts. It checks that dave's server always receives
// dave's id as dave's server spells it.
func (m *manyNames) names() {
	m.Helper()
	note := m.writes(m.dave, "note", m.alice.ID, everybody)
	m.accepted(m.siege.post(m.dave, m.alice.ID+"/inbox", but(m.does(m.dave, "Create", note), "to", []any{m.alice.ID, everybody})))
	canonical := strings.Replace(note.Text("id"), "LocalHost", "localhost", 1)
	for _, act := range []struct {
		action string
		params map[string]any
	}{
		{"Follow", map[string]any{"actorUri": m.spelledDave()}}, {"Unfollow", map[string]any{"actorUri": m.spelledDave()}},
		{"Like", map[string]any{"objectId": canonical}}, {"Unlike", map[string]any{"objectId": canonical}},
		{"Reply", map[string]any{"objectId": canonical, "content": "hello"}}, {"Boost", map[string]any{"objectId": canonical}},
	} {
		before := len(m.peer.Posted())
		m.alice.Do(m, act.action, act.params)
		m.settle()
		for _, p := range m.peer.Posted()[before:] {
			if !strings.Contains(string(p.Content), m.written) || strings.Contains(string(p.Content), "http://localhost") {
				m.Errorf("%s does not name things as dave writes them: %s", act.action, p.Content)
			}
		}
		if n := len(m.peer.Posted()) - before; n != 1 {
			m.Errorf("%s came to dave %d times", act.action, n)
		}
	}
}

// post sends an activity of mallory's under the spelling of her id with the given number.
func (m *manyNames) post(spelling int, kind string, object any) enginetest.Answer {
	m.Helper()
	m.n++
	id := m.spellings[spelling]
	d := vocab.Doc{"id": fmt.Sprintf("%s/%d", id, m.n), "type": kind, "actor": id, "object": object, "to": []any{m.alice.ID}}
	return m.send(peertest.Forgery{URL: m.alice.ID + "/inbox", Body: string(d.JSON()), Dialect: signature.RFC9421, Key: m.mallory.Keys.RSA}.Request(m))
}

// stands checks that the tables relationships and group_members each have n rows of mallory, under
// her canonical id, and one row of dave.
func (m *manyNames) stands(n int) {
	m.Helper()
	for _, table := range []string{"relationships", "group_members"} {
		all := m.alice.Column(m, `SELECT actor_uri FROM `+table+` WHERE actor_uri ILIKE 'http%/users/mallory' AND actor_uri NOT LIKE '%127.0.0.%'`)
		if len(all) != n || n > 0 && all[0] != m.spellings[0] {
			m.Errorf("mallory stands in %s as %q, want %d times under the canonical id", table, all, n)
		}
		if dave := m.alice.Column(m, `SELECT actor_uri FROM `+table+` WHERE actor_uri LIKE '%/users/dave'`); len(dave) != 1 {
			m.Errorf("dave stands in %s as %q, want him once", table, dave)
		}
	}
}

// noteOf returns a note of mallory's for alice under the spelling of mallory's id with the given
// number.
func (m *manyNames) noteOf(spelling int) vocab.Doc {
	id := m.spellings[spelling]
	return vocab.Doc{"id": fmt.Sprintf("%s/%d-note", id, m.n), "type": "Note", "attributedTo": id, "content": "after the Block", "to": []any{m.alice.ID}}
}

// checkUnheard checks that alice has no reaction, activity or object that mallory sent after the
// Block. The Follows that mallory sent before the Block stay.
func (m *manyNames) checkUnheard() {
	m.Helper()
	for _, query := range []string{
		`SELECT actor_uri FROM reactions WHERE actor_uri ILIKE 'http%/users/mallory' AND actor_uri NOT LIKE '%127.0.0.%'`,
		`SELECT uri FROM activities WHERE type IN ('Like', 'Create') AND actor_uri ILIKE 'http%/users/mallory' AND actor_uri NOT LIKE '%127.0.0.%'`,
		`SELECT uri FROM objects WHERE raw::text LIKE '%after the Block%'`,
	} {
		if left := m.alice.Column(m, query); len(left) > 0 {
			m.Errorf("%s finds %q", query, left)
		}
	}
}

// checkOneActor checks that the instance database and alice's database each have one row for
// mallory, under her canonical id.
func (m *manyNames) checkOneActor() {
	m.Helper()
	for _, database := range []string{"lightweb", "lightweb_alice"} {
		const all = `SELECT count(*) FROM actors WHERE uri ILIKE 'http%/users/mallory' AND uri NOT LIKE '%127.0.0.%'`
		if n := m.count(database, all); n != 1 || m.count(database, all+` AND uri = $1`, m.spellings[0]) != 1 {
			m.Errorf("%s has mallory %d times, want once under the canonical id", database, n)
		}
	}
}

// gets lets alice write to dave and to another recipient. It checks that dave receives the post
// once, and that the post has his id in his own spelling. mallory must receive the post once if
// want is true, and not at all otherwise. A post to the followers must bring a digest of the
// followers on their server. The digest must cover dave and, if want is true, mallory.
func (m *manyNames) gets(to string, want bool) {
	m.Helper()
	before := len(m.peer.Posted())
	m.alice.Do(m, "CreateNote", map[string]any{"content": "for my friends", "to": []any{to}, "cc": []any{m.spelledDave()}})
	m.settle()
	var got [2]int // mallory's and dave's
	digests := 0
	for _, p := range m.peer.Posted()[before:] {
		switch p.URL.Path {
		case "/users/mallory/inbox":
			got[0]++
		case "/users/dave/inbox":
			got[1]++
		}
		if !strings.Contains(string(p.Content), `"href":"`+m.written+`"`) {
			m.Errorf("dave is not named as he writes himself: %s", p.Content)
		}
		if m.saysOf(p, want) {
			digests++
		}
	}
	if to == m.alice.ID+"/followers" && digests == 0 {
		m.Error("no request tells their server which of its actors follow alice")
	}
	if mallory := map[bool]int{true: 1}[want]; got != [2]int{mallory, 1} {
		m.Errorf("what is for %s came to mallory and dave %d times; want [%d 1]", to, got, mallory)
	}
}

// spelledDave returns dave's id in a third spelling.
func (m *manyNames) spelledDave() string {
	return strings.Replace(m.written, "LocalHost", "LOCALHOST", 1)
}

// saysOf reports whether a request has a digest of the server's followers (FEP-8fcf), and checks
// the digest. The digest must cover dave and, if mallory follows, mallory, in the spelling of
// their server.
func (m *manyNames) saysOf(p peertest.Posted, follows bool) bool {
	m.Helper()
	field := p.Header.Get("Collection-Synchronization")
	if field == "" {
		return false
	}
	said, err := vocab.ParseSynchronization(field)
	if err != nil {
		m.Fatal(err)
	}
	var digest vocab.FollowersDigest
	digest.Add(m.written)
	if follows {
		digest.Add(m.spellings[0])
	}
	if said.Digest != digest {
		m.Errorf("the digest of the followers is %x, want %x", said.Digest, digest)
	}
	return true
}

var idn02 = attack{id: "IDN-02", sends: "mallory uses, undoes, deletes and writes under ids; then somebody else on that server uses them: in a Follow, a Like, and in notes for one and for two users, also while the engine restarts",
	happens: "what the other one does takes effect and is shown, as if mallory had never been: claims, undone ids, tombstones and activities are an actor's. Whose an object is says its server, asked once for each activity; nobody takes back by the same way what it shows as another's",
	changes: true, asks: 20, play: func(s *siege) {
		q := newSquat(s)
		q.follows()
		q.likes()
		q.writes()
		q.overwrites()
		q.restarts()
	}}

// squat is a scene on mallory's server. mallory uses ids of carol's before carol does. carol is
// honest. dave, on the same server, does nothing.
type squat struct {
	*siege
	carol, dave *peertest.Actor
}

func newSquat(s *siege) *squat {
	return &squat{siege: s, carol: s.p.Actor("/users/carol"), dave: s.p.Actor("/users/dave")}
}

// by returns an activity of an actor under any id, even an id of another actor.
func (q *squat) by(a *peertest.Actor, id, kind string, object any) vocab.Doc {
	return vocab.Doc{"id": id, "type": kind, "actor": string(a.ID), "object": object, "to": []any{q.alice.ID, everybody}}
}

// noteBy returns a note of an actor under any id, even an id of another actor.
func (q *squat) noteBy(a *peertest.Actor, id, content string) vocab.Doc {
	return vocab.Doc{"id": id, "type": "Note", "attributedTo": string(a.ID), "content": content, "to": []any{q.alice.ID, everybody}}
}

func (q *squat) sends(a *peertest.Actor, activity vocab.Doc) {
	q.Helper()
	q.accepted(q.post(a, q.alice.ID+"/inbox", activity))
}

// shown checks that a user's feed shows an activity once by the actor a, once by each actor in
// others, and by no other actor.
func (q *squat) shown(u *enginetest.User, feed string, a *peertest.Actor, activity string, others ...*peertest.Actor) {
	q.Helper()
	q.settle()
	var by []string
	for _, item := range u.Feed(q, feed) {
		if item.ActivityURI == activity {
			by = append(by, item.ActorURI)
		}
	}
	want := []string{string(a.ID)}
	for _, o := range others {
		want = append(want, string(o.ID))
	}
	slices.Sort(by)
	slices.Sort(want)
	if !slices.Equal(by, want) {
		q.Errorf("%s of %s shows %s by %q, want %q", feed, u.Name, activity, by, want)
	}
}

// follows sends carol's Follow after mallory has used its id for a Like.
func (q *squat) follows() {
	q.Helper()
	id := q.id(q.carol, "follow")
	q.sends(q.mallory, q.by(q.mallory, id, "Like", q.note))
	before := len(q.p.Posted())
	q.sends(q.carol, q.by(q.carol, id, "Follow", q.alice.ID))
	q.sends(q.dave, q.by(q.dave, q.id(q.dave, "follow"), "Follow", q.alice.ID))
	q.shown(q.alice, "notifications", q.carol, id, q.mallory)
	q.shown(q.alice, "notifications", q.dave, q.id(q.dave, "follow"))
	answered := map[string]int{}
	for _, p := range q.p.Posted()[before:] {
		d, err := vocab.ParseDoc(p.Content)
		if err != nil {
			q.Fatal(err)
		}
		answered[p.URL.Path+" "+d.Text("type")+" "+d.Sub("object").Text("id")]++
	}
	if len(answered) != 2 || answered["/users/carol/inbox Accept "+id] != 1 {
		q.Errorf("it was answered %v, want an Accept of each Follow", answered)
	}
}

// likes sends carol's Like after mallory has undone its id.
func (q *squat) likes() {
	q.Helper()
	id := q.id(q.carol, "like")
	q.sends(q.mallory, q.by(q.mallory, q.id(q.mallory, "undo"), "Undo", id))
	q.sends(q.carol, q.by(q.carol, id, "Like", q.note))
	q.sends(q.dave, q.by(q.dave, q.id(q.dave, "like"), "Like", q.note))
	q.shown(q.alice, "notifications", q.carol, id)
	q.shown(q.alice, "notifications", q.dave, q.id(q.dave, "like"))
	for _, a := range []*peertest.Actor{q.carol, q.dave} {
		if n := len(q.alice.Column(q, `SELECT activity_uri FROM reactions WHERE actor_uri = $1`, string(a.ID))); n != 1 {
			q.Errorf("%s likes %d notes, want 1", a.ID, n)
		}
	}
	// An Undo by carol herself takes effect: her reaction that arrives after it is ignored.
	q.sends(q.carol, q.by(q.carol, q.id(q.carol, "undo"), "Undo", q.id(q.carol, "like2")))
	q.sends(q.carol, q.by(q.carol, q.id(q.carol, "like2"), "Dislike", q.note))
	if kinds := q.alice.Column(q, `SELECT type FROM reactions WHERE actor_uri = $1`, string(q.carol.ID)); !slices.Equal(kinds, []string{"Like"}) {
		q.Errorf("carol's reactions are %q, want the Like alone", kinds)
	}
}

// writes sends carol's Create after mallory has used the Create's id for another note and has
// tried to delete carol's note.
func (q *squat) writes() {
	q.Helper()
	create, note := q.id(q.carol, "create"), q.id(q.carol, "note")
	q.sends(q.mallory, q.by(q.mallory, create, "Create", q.noteBy(q.mallory, q.id(q.mallory, "note"), "mallory's own")))
	q.sends(q.mallory, q.by(q.mallory, q.id(q.mallory, "delete"), "Delete", note))
	asked := len(q.p.Asked())
	q.sends(q.carol, q.by(q.carol, create, "Create", q.noteBy(q.carol, note, "carol's words")))
	q.shown(q.alice, "main", q.carol, create, q.mallory)
	q.holds(q.alice, note, q.carol, "carol's words")
	q.holds(q.alice, q.id(q.mallory, "note"), q.mallory, "mallory's own")
	if n := len(q.p.Asked()) - asked; n != 0 {
		q.Errorf("their server was asked %d times, and nobody needed to know", n)
	}
	q.sends(q.mallory, q.by(q.mallory, q.id(q.mallory, "undo2"), "Undo", create)) // an Undo by mallory must not touch carol's Create
	q.shown(q.alice, "main", q.carol, create, q.mallory)
}

// holds checks that a user has one object with the given id, author and content.
func (q *squat) holds(u *enginetest.User, id string, a *peertest.Actor, content string) {
	q.Helper()
	got := u.Column(q, `SELECT concat(raw ->> 'attributedTo', ' ', raw ->> 'content') FROM objects WHERE uri = $1`, id)
	if !slices.Equal(got, []string{string(a.ID) + " " + content}) {
		q.Errorf("%s has %q of %s, want %q by %s", u.Name, got, id, content, a.ID)
	}
}

// overwrites sends carol's note after mallory has written a note under its id. It does so in three
// ways: for one user, for two users, and with a later Delete.
func (q *squat) overwrites() {
	q.Helper()
	for _, way := range []string{"one", "both", "deleted"} {
		create, note := q.id(q.carol, way+"-create"), q.id(q.carol, way+"-note")
		users, inbox := []*enginetest.User{q.alice}, q.alice.ID+"/inbox"
		if way == "both" {
			users, inbox = append(users, q.bob), q.home.URL+"/inbox"
		}
		var to []any
		for _, u := range users {
			to = append(to, u.ID)
		}
		to = append(to, everybody)
		q.accepted(q.post(q.mallory, inbox, but(q.by(q.mallory, create, "Create", q.noteBy(q.mallory, note, "a lie")), "to", to)))
		q.settle()
		if way == "deleted" {
			q.sends(q.mallory, q.by(q.mallory, note+"-delete", "Delete", note))
		} else {
			q.holds(q.alice, note, q.mallory, "a lie")
		}
		q.brought(q.mallory, note) // carol's note does not exist yet, and the engine may remember that
		q.shows(q.p, q.noteBy(q.carol, note, "carol's words"))
		asked := len(q.p.Asked())
		q.accepted(q.post(q.carol, inbox, but(q.by(q.carol, create, "Create", q.noteBy(q.carol, note, "carol's words")), "to", to)))
		q.sends(q.dave, q.by(q.dave, q.id(q.dave, way+"-create"), "Create", q.noteBy(q.dave, q.id(q.dave, way+"-note"), "as ever")))
		for _, u := range users {
			q.shown(u, "main", q.carol, create)
			q.holds(u, note, q.carol, "carol's words")
		}
		q.shown(q.alice, "main", q.dave, q.id(q.dave, way+"-create"))
		q.askedOnce(asked, note)

		// mallory cannot take the note back when she sends her version once more.
		asked = len(q.p.Asked())
		again := q.id(q.mallory, way+"-again")
		q.sends(q.mallory, q.by(q.mallory, again, "Create", q.noteBy(q.mallory, note, "a lie")))
		q.settle()
		q.holds(q.alice, note, q.carol, "carol's words")
		q.askedOnce(asked, note)
		enginetest.Eventually(q, "mallory's is remembered as ignored", func() bool {
			return q.count("lightweb", `SELECT count(*) FROM ignored WHERE reason = 'contested' AND digest = sha256(convert_to($1, 'UTF8'))`, again) == 1
		})
	}
}

// askedOnce checks that the engine asked the server once for the given id, and otherwise only for
// actors.
func (q *squat) askedOnce(before int, id string) {
	q.Helper()
	known := []string{"/users/mallory", "/users/carol", "/users/dave"}
	asked := slices.DeleteFunc(q.p.Asked()[before:], func(path string) bool { return slices.Contains(known, path) })
	if want := strings.TrimPrefix(id, q.p.Origin); !slices.Equal(asked, []string{want}) {
		q.Errorf("their server was asked for %q, want %s once", asked, want)
	}
}

// restarts kills the engine while the engine asks for carol's note. carol's server is down.
func (q *squat) restarts() {
	q.Helper()
	create, note := q.id(q.carol, "late-create"), q.id(q.carol, "late-note")
	q.sends(q.mallory, q.by(q.mallory, create, "Create", q.noteBy(q.mallory, note, "a lie")))
	q.settle()
	path := strings.TrimPrefix(note, q.p.Origin)
	q.p.Answer(path, http.StatusServiceUnavailable)
	q.sends(q.carol, q.by(q.carol, create, "Create", q.noteBy(q.carol, note, "carol's words")))
	enginetest.Eventually(q, "their server is asked", func() bool { return slices.Contains(q.p.Asked(), path) })
	q.sends(q.dave, q.by(q.dave, q.id(q.dave, "late-create"), "Create", q.noteBy(q.dave, q.id(q.dave, "late-note"), "as ever")))
	enginetest.Eventually(q, "nobody waits for carol's", func() bool {
		return slices.ContainsFunc(q.alice.Feed(q, "main"), func(i enginetest.Item) bool { return i.ActivityURI == q.id(q.dave, "late-create") })
	})
	q.home.Kill()
	q.shows(q.p, q.noteBy(q.carol, note, "carol's words"))
	q.home.Start(q)
	q.shown(q.alice, "main", q.carol, create)
	q.holds(q.alice, note, q.carol, "carol's words")
}

var idn03 = attack{id: "IDN-03", sends: "somebody who has nothing to do with anybody here undoes and deletes 2,000 things that never came, naming alice and bob; carol, followed by alice, does so meanwhile with two of hers, which come later",
	happens: "the stranger's leave no row; carol's are remembered, and what comes of them later takes no effect", changes: true, asks: 5, play: func(s *siege) {
		stranger := s.p.Actor("/users/idn-03-nobody")
		s.accepted(s.post(stranger, s.home.URL+"/inbox", s.openly(s.does(stranger, "Undo", s.id(stranger, "thing")))))
		s.settle()
		like, create := s.like(s.carol, "like"), s.create(s.carol, "create")
		const remembered, buried = `SELECT count(*) FROM seen`, `SELECT count(*) FROM tombstones`
		known, graves, before := s.count("lightweb_alice", remembered), s.count("lightweb_alice", buried), s.state()
		s.at32(2000, func(n int) {
			switch n {
			case 700:
				s.accepted(s.post(s.carol, s.home.URL+"/inbox", s.openly(s.does(s.carol, "Undo", like["id"]))))
			case 1400:
				s.accepted(s.post(s.carol, s.home.URL+"/inbox", s.openly(s.does(s.carol, "Delete", create.Sub("object")["id"]))))
			}
			thing, kind := s.id(stranger, fmt.Sprint("thing-", n)), []string{"Undo", "Delete"}[n%2]
			d := vocab.Doc{"id": thing + "/gone", "type": kind, "actor": string(stranger.ID), "object": thing, "to": []any{s.alice.ID, s.bob.ID}}
			if n%4 == 0 {
				d["object"] = vocab.Doc{"id": thing, "type": "Like", "actor": string(stranger.ID), "object": s.note}
			}
			s.answered(s.post(stranger, s.home.URL+"/inbox", d), 202, 429)
		})
		s.settle()
		for made := range strings.Lines(difference(before, s.state())) {
			if !strings.HasPrefix(made, "lightweb: acquaintances ") && !strings.HasPrefix(made, "lightweb_alice: seen ") && !strings.HasPrefix(made, "lightweb_alice: tombstones ") {
				s.Errorf("it left traces: %s", made)
			}
		}
		// An Undo by id claims two ids, because it may be the Undo of an answer. A Delete claims
		// one, because it may be the Delete of an activity.
		if s.count("lightweb_alice", remembered) != known+3 || s.count("lightweb_alice", buried) != graves+1 {
			s.Errorf("alice's database remembers %d more ids and %d more tombstones, want those of carol's Undo and Delete", s.count("lightweb_alice", remembered)-known, s.count("lightweb_alice", buried)-graves)
		}
		if n := s.count("lightweb", `SELECT count(*) FROM acquaintances WHERE actor_uri = $1`, string(stranger.ID)); n != 0 {
			s.Errorf("%d users are said to know the stranger", n)
		}
		s.unchanged(func() {
			s.accepted(s.post(s.carol, s.alice.ID+"/inbox", like))
			s.accepted(s.post(s.carol, s.alice.ID+"/inbox", create))
			s.settle()
		})
	}}

var idn04 = attack{id: "IDN-04", sends: "notes whose author is a number, a bare name, a neighbour, or somebody of another server inside a list, created and boosted, and embedded in a Like; carol, who is one of those named, writes beside it",
	happens: "400 where somebody of another server is said to have written; else the sender is the author, and nobody else is named as one, in `activity` and `object` alike", changes: true, asks: 12, play: func(s *siege) {
		me, dan := string(s.mallory.ID), s.p.Origin+"/users/dan"
		person := vocab.Doc{"id": me, "type": "Person", "name": "The Pope"}
		for n, by := range []any{1, true, string(s.carol.ID), []any{me, string(s.carol.ID)}, []any{person, vocab.Doc{"id": string(s.carol.ID), "type": "Person"}}, []any{dan, me}} {
			d := s.create(s.mallory, fmt.Sprint("refused-", n))
			d.Sub("object")["attributedTo"] = by
			s.refused(s.mallory, d)
		}
		var notes []string
		for n, by := range []any{"1", "alice", []any{"alice", me}, []any{"1", person}, []any{dan, person}, []any{me, dan}, nil} {
			d := s.create(s.mallory, fmt.Sprint("taken-", n))
			d["attributedTo"] = string(s.carol.ID)
			d.Sub("object")["attributedTo"] = by
			d.Sub("object")["attachment"] = []any{vocab.Doc{"type": "Image", "url": "https://p.example/i", "attributedTo": "alice", "actor": string(s.carol.ID)}}
			s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", d))
			notes = append(notes, d.Sub("object").Text("id"))
			s.shows(s.p, but(d.Sub("object"), "id", d.Sub("object").Text("id")+"-boosted"))
			s.brought(s.mallory, d.Sub("object").Text("id")+"-boosted")
		}
		like := s.like(s.mallory, "like")
		like["instrument"] = vocab.Doc{"id": s.id(s.mallory, "x"), "type": "Note", "attributedTo": "alice", "actor": "carol"}
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", like))
		offer := s.does(s.mallory, "Offer", vocab.Doc{"id": s.id(s.mallory, "offered"), "type": "Thing", "attributedTo": "alice", "actor": "carol"})
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", s.openly(offer)))
		honest := s.create(s.carol, "honest")
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", honest))
		s.settle()
		for _, id := range notes {
			if by := s.alice.Column(s, `SELECT raw ->> 'attributedTo' FROM objects WHERE uri = $1`, id); len(by) != 1 || strings.Contains(by[0], "alice") || strings.Contains(by[0], `"1"`) {
				s.Errorf("%s is stored as by %q", id, by)
			}
		}
		s.namesOnlyAuthors(honest.Sub("object").Text("id"))
	}}

// brought lets an actor send an Announce of an object to alice.
func (s *siege) brought(a *peertest.Actor, id string) {
	s.Helper()
	s.answered(s.post(a, s.alice.ID+"/inbox", s.openly(s.does(a, "Announce", id))), 202)
}

// namesOnlyAuthors checks the items of this attack in alice's feeds. The object with the id honest
// names carol as its only author, and all other objects name mallory.
func (s *siege) namesOnlyAuthors(honest string) {
	s.Helper()
	seen := map[string]bool{}
	for _, feed := range []string{"main", "notifications"} {
		s.pages("/api/feed?limit=100&feed="+feed, func(page vocab.Doc) string {
			for _, item := range page.Subs("items") {
				if !strings.Contains(string(item.JSON()), "idn-04") {
					continue
				}
				want := string(s.mallory.ID)
				if strings.Contains(string(item.JSON()), honest) {
					want = string(s.carol.ID)
				}
				seen[want] = true
				// the note that is liked is alice's
				liked := item.Text("type") == "Like"
				for _, by := range authors(item) {
					if by != want && !(liked && by == s.alice.ID) {
						s.Errorf("the feed names %s in %s", by, item.JSON())
					}
				}
				if o := item.Sub("object"); o != nil && !liked && (o.Text("attributedTo") != item.Text("authorUri") || item.Text("authorUri") != want) {
					s.Errorf("the author is %s in the item and %s in the object", item.Text("authorUri"), o.Text("attributedTo"))
				}
			}
			if page.Text("next") == "" {
				return ""
			}
			return "/api/feed?limit=100&feed=" + feed + "&cursor=" + url.QueryEscape(page.Text("next"))
		})
	}
	if len(seen) != 2 {
		s.Errorf("the feeds show things by %v, want mallory's and carol's", seen)
	}
}

// authors returns every author that a document or one of its parts names.
func authors(v any) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			all = append(all, authors(one)...)
		}
	case vocab.Doc:
		for name, value := range v {
			if name == "attributedTo" || name == "actor" || name == "authorUri" || name == "actorUri" {
				all = append(all, fmt.Sprint(value))
				continue
			}
			all = append(all, authors(value)...)
		}
	}
	return all
}
