package engine_test

import (
	"fmt"
	"net/http"
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
		m.gets(s.alice.ID+"/followers", true)
		m.gets(s.circle, true)

		s.alice.Do(s, "Block", map[string]any{"actorUri": m.spellings[2]})
		s.settle()
		for n := range m.spellings {
			s.accepted(m.post(n, "Follow", s.alice.ID))
			s.accepted(m.post(n, "Like", s.note))
			if a := s.alice.Try(s, "AddToGroup", map[string]any{"name": "inner-circle", "actorUri": m.spellings[n]}); a.Status != http.StatusConflict {
				s.Errorf("a blocked actor is put into a group as %s: %d %s", m.spellings[n], a.Status, a.Body)
			}
		}
		m.stands(0)
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

// manyNames is a server whose name can be written in many ways, with mallory, who does, and dave, an honest actor who
// always writes it in the same way: not the canonical one.
type manyNames struct {
	*siege
	peer          *peertest.Peer
	mallory, dave *peertest.Actor
	spellings     []string // of mallory's id; the first is canonical
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

// names lets alice do what names dave and what is his, and wants him to be sent nothing but his own spelling.
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

// post sends something by mallory under a spelling.
func (m *manyNames) post(spelling int, kind string, object any) enginetest.Answer {
	m.Helper()
	m.n++
	id := m.spellings[spelling]
	d := vocab.Doc{"id": fmt.Sprintf("%s/%d", id, m.n), "type": kind, "actor": id, "object": object, "to": []any{m.alice.ID}}
	return m.send(peertest.Forgery{URL: m.alice.ID + "/inbox", Body: string(d.JSON()), Dialect: signature.RFC9421, Key: m.mallory.Keys.RSA}.Request(m))
}

// stands wants mallory to stand n times in each of these tables, and dave once.
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

// gets lets alice write to somebody besides dave, and wants mallory to get it once or not, and dave once, who is named as he
// writes himself. What is said of the followers on their server is of exactly those.
func (m *manyNames) gets(to string, want bool) {
	m.Helper()
	before := len(m.peer.Posted())
	m.alice.Do(m, "CreateNote", map[string]any{"content": "for my friends", "to": []any{to}, "cc": []any{m.spelledDave()}})
	m.settle()
	var got [2]int // mallory, dave
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
		m.saysOf(p, want)
	}
	if mallory := map[bool]int{true: 1}[want]; got != [2]int{mallory, 1} {
		m.Errorf("what is for %s came to mallory and dave %d times; want [%d 1]", to, got, mallory)
	}
}

// spelledDave is dave's id in yet another spelling.
func (m *manyNames) spelledDave() string {
	return strings.Replace(m.written, "LocalHost", "LOCALHOST", 1)
}

// saysOf wants the digest of the followers on the server (FEP-8fcf), if there is one, to be that of dave and, if she
// follows, mallory, as their server writes them.
func (m *manyNames) saysOf(p peertest.Posted, follows bool) {
	m.Helper()
	field := p.Header.Get("Collection-Synchronization")
	if field == "" {
		return
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
}

var idn02 = attack{id: "IDN-02", sends: "an id that mallory has used, undone, deleted or written under before, in the next activity of somebody else on that server", later: "the next release"}

var idn03 = attack{id: "IDN-03", sends: "Undo and Delete of thousands of invented ids, to many users", later: "the next release"}

var idn04 = attack{id: "IDN-04", sends: "notes whose author is a number, a bare name, or somebody of another server inside a list", later: "the next release"}
