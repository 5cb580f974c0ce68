package engine_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnPrivacy(t *testing.T) {
	t.Parallel()
	newSiege(t).play(privacyAttacks)
}

// get asks for a document. The actor signs the request. If the actor is nil, the request is
// unsigned.
func (s *siege) get(a *peertest.Actor, url string) enginetest.Answer {
	s.Helper()
	if a == nil {
		return enginetest.Fetch(s, url)
	}
	return s.send(peertest.Forgery{Method: http.MethodGet, URL: url, Key: a.Keys.RSA}.Request(s))
}

// nothing checks that an answer equals the answer for an object that never existed. The request's
// id and the date may differ.
func (s *siege) nothing(got enginetest.Answer, a *peertest.Actor) {
	s.Helper()
	s.answered(got, http.StatusNotFound)
	unknown := s.get(a, s.alice.ID+"/objects/019c8052-5f00-7000-8000-000000000001")
	clean := func(a enginetest.Answer) string {
		h := a.Header.Clone()
		id := h.Get("X-Request-Id")
		h.Del("X-Request-Id")
		h.Del("Date")
		var b bytes.Buffer
		if err := h.Write(&b); err != nil {
			s.Fatal(err)
		}
		return b.String() + strings.ReplaceAll(string(a.Body), id, "")
	}
	if a, b := clean(got), clean(unknown); a != b {
		s.Errorf("answered\n%s\nand for what never was\n%s", a, b)
	}
}

// activityOf returns the id of the Create of a post of alice's.
func (s *siege) activityOf(note string) string {
	s.Helper()
	found := s.alice.Column(s, `SELECT uri FROM activities WHERE object_uri = $1 AND type = 'Create'`, note)
	if len(found) != 1 {
		s.Fatalf("%s has the Creates %v", note, found)
	}
	return found[0]
}

// wire returns everything that the engine sent to the peers, and alice's public documents.
func (s *siege) wire() []byte {
	s.Helper()
	var all bytes.Buffer
	for _, p := range append(s.p.Posted(), s.q.Posted()...) {
		all.Write(p.Content)
	}
	for _, path := range []string{"", "/outbox", "/outbox?page=true", "/followers?page=true", "/following?page=true"} {
		all.Write(s.get(s.carol, s.alice.ID+path).Body)
	}
	return all.Bytes()
}

var privacyAttacks = []attack{
	{id: "PRV-01", sends: "requests for a private note and its activity, unsigned and signed by mallory, with queries and suffixes", happens: "404, byte for byte as for what never was", asks: 1, play: func(s *siege) {
		for _, url := range []string{s.secret, s.activityOf(s.secret)} {
			for _, a := range []*peertest.Actor{nil, s.mallory} {
				s.nothing(s.get(a, url), a)
				for _, more := range []string{"?page=true", "?x", "/likes", "/replies", "/shares", "/activity", "?_format=json"} {
					s.answered(s.get(a, url+more), http.StatusNotFound)
				}
			}
			if got := s.get(s.carol, url); got.Status != http.StatusOK {
				s.Errorf("a recipient was answered %d", got.Status)
			}
		}
	}},
	{id: "PRV-02", sends: "requests for the outbox by nobody, a follower and a stranger", happens: "never anything direct, for nobody and strangers public posts only; the total counts what is shown", asks: 2, play: func(s *siege) {
		for _, a := range []*peertest.Actor{nil, s.carol, s.mallory} {
			for _, path := range []string{"/outbox", "/outbox?page=true"} {
				got := s.get(a, s.alice.ID+path)
				if got.Status != http.StatusOK || bytes.Contains(got.Body, []byte("for carol alone")) || bytes.Contains(got.Body, []byte(s.secret)) {
					s.Errorf("%s was answered %d %s", path, got.Status, got.Body)
				}
			}
		}
		var root struct{ TotalItems int }
		var page struct{ OrderedItems []any }
		s.get(nil, s.alice.ID+"/outbox").Decode(s, &root)
		s.get(nil, s.alice.ID+"/outbox?page=true").Decode(s, &page)
		if root.TotalItems != len(page.OrderedItems) {
			s.Errorf("%d are counted and %d shown", root.TotalItems, len(page.OrderedItems))
		}
	}},
	{id: "PRV-03", sends: "a request for carol's direct note signed by somebody else on carol's server", happens: "404", asks: 1, play: func(s *siege) {
		neighbour := s.q.Actor("/users/neighbour")
		s.nothing(s.get(neighbour, s.secret), neighbour)
	}},
	{id: "PRV-04", sends: "requests for a hidden list of followers: its total, its pages", happens: "nothing of it is told, not even how many; its pages are 404", asks: 1, play: func(s *siege) {
		s.alice.Configure(s, `{"collections":{"followers":"owner","following":"owner"}}`)
		defer s.alice.Configure(s, `{}`)
		for _, name := range []string{"followers", "following"} {
			enginetest.Eventually(s, name+" is hidden", func() bool {
				return !bytes.Contains(s.get(nil, s.alice.ID+"/"+name).Body, []byte("totalItems"))
			})
			for _, a := range []*peertest.Actor{nil, s.mallory, s.carol} {
				s.answered(s.get(a, s.alice.ID+"/"+name+"?page=true"), http.StatusNotFound)
				if got := s.get(a, s.alice.ID+"/"+name); bytes.Contains(got.Body, []byte(s.q.Origin)) {
					s.Errorf("%s shows %s", name, got.Body)
				}
			}
		}
	}},
	{id: "PRV-05", sends: "requests for the followers on another server, unsigned, signed by mallory and with a token", happens: "401, or the followers on mallory's own server: none", play: func(s *siege) {
		url := s.alice.ID + "/followers_synchronization"
		s.unauthorized(s.get(nil, url))
		s.unauthorized(s.bob.Ask(s, http.MethodGet, strings.TrimPrefix(url, s.home.URL), nil))
		for who, want := range map[*peertest.Actor][]string{s.mallory: {}, s.carol: {string(s.carol.ID)}} {
			got := s.get(who, url)
			s.answered(got, http.StatusOK)
			var list struct{ OrderedItems []string }
			got.Decode(s, &list)
			if !slices.Equal(list.OrderedItems, want) || !strings.Contains(got.Header.Get("Cache-Control"), "no-store") {
				s.Errorf("%s is shown %v %s, want %q", who.ID, got.Header, got.Body, want)
			}
		}
	}},
	{id: "PRV-06", sends: "hidden recipients, in the hope that they show", happens: "bto and bcc stand nowhere: not on the wire, in collections, in stored or shown documents; nor do groups and who is in them", changes: true, asks: 2, play: func(s *siege) {
		create := s.create(s.mallory, "hidden")
		create["bto"], create["bcc"] = []any{s.alice.ID}, []any{s.bob.ID, string(s.carol.ID)}
		create.Sub("object")["bcc"] = []any{s.bob.ID}
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", create))
		stored := strings.Join(append(s.alice.Column(s, `SELECT raw::text FROM activities`), s.alice.Column(s, `SELECT raw::text FROM objects`)...), "\n")
		shown := s.alice.Ask(s, http.MethodGet, "/api/feed", nil).Body
		for place, text := range map[string]string{"the wire": string(s.wire()), "the database": stored, "the feed": string(shown)} {
			if strings.Contains(text, `"bto"`) || strings.Contains(text, `"bcc"`) {
				s.Errorf("%s holds hidden recipients", place)
			}
		}
		_, note := s.alice.Post(s, map[string]any{"content": "for a few", "to": []any{s.circle}})
		s.alice.Do(s, "UpdateObject", map[string]any{"objectId": note, "content": "for the few"})
		s.settle()
		sent := 0
		for _, p := range s.q.Posted() {
			if !bytes.Contains(p.Content, []byte(note)) {
				continue
			}
			sent++
			for _, hidden := range []string{"/groups/", "inner-circle", s.bob.ID, string(s.carol.ID)} {
				if bytes.Contains(p.Content, []byte(hidden)) {
					s.Errorf("a post to a group tells of %q: %s", hidden, p.Content)
				}
			}
		}
		if sent != 2 {
			s.Errorf("a member of the group was sent %d activities, want the post and its new words", sent)
		}
		if wire := string(s.wire()); strings.Contains(wire, "/groups/") || strings.Contains(wire, "inner-circle") {
			s.Error("what alice shows tells of her group")
		}
	}},
	{id: "PRV-07", sends: "a group of alice's as recipient, and requests for it", happens: "404 for everybody; on the way in it is nobody", play: func(s *siege) {
		for _, a := range []*peertest.Actor{nil, s.carol} {
			s.answered(s.get(a, s.circle), http.StatusNotFound)
		}
		s.answered(s.alice.Ask(s, http.MethodGet, strings.TrimPrefix(s.circle, s.home.URL), nil), http.StatusNotFound)
		create := s.create(s.mallory, "group")
		create["to"] = []any{s.circle}
		create.Sub("object")["to"] = create["to"]
		delete(create.Sub("object"), "tag")
		s.accepted(s.post(s.mallory, s.home.URL+"/inbox", create))
	}},
	{id: "PRV-08", sends: "Public as `Public`, `as:Public`, in full, in other spellings, and hidden in bto", happens: "three spellings in to and cc are public, nothing else is: what is not cannot be boosted", changes: true, asks: 4, play: func(s *siege) {
		public := map[string]bool{"Public": true, "as:Public": true, string(vocab.Public): true, "public": false, "as:public": false, "https://www.w3.org/ns/activitystreams#public": false,
			"http://www.w3.org/ns/activitystreams#Public": false}
		n := 0
		for spelling, is := range public {
			n++
			create := s.create(s.carol, fmt.Sprint("spelled-", n))
			create["to"], create["cc"] = []any{s.alice.ID}, []any{spelling}
			create.Sub("object")["to"], create.Sub("object")["cc"] = create["to"], create["cc"]
			if got := s.post(s.carol, s.alice.ID+"/inbox", create); got.Status == http.StatusBadRequest && !is {
				continue // this spelling is not a valid id
			} else {
				s.accepted(got)
			}
			got := s.alice.Try(s, "Boost", map[string]any{"objectId": create.Sub("object")["id"]})
			if (got.Status == http.StatusCreated) != is {
				s.Errorf("%q: a boost was answered %d %s", spelling, got.Status, got.Body)
			}
		}
		hidden := s.create(s.carol, "hidden")
		hidden["to"], hidden["bto"] = []any{s.alice.ID}, []any{string(vocab.Public)}
		hidden.Sub("object")["to"], hidden.Sub("object")["bto"] = hidden["to"], hidden["bto"]
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", hidden))
		if got := s.alice.Try(s, "Boost", map[string]any{"objectId": hidden.Sub("object")["id"]}); got.Status == http.StatusCreated {
			s.Error("what is public in bto alone was boosted")
		}
	}},
	{id: "PRV-09", sends: "a note to the followers of an actor whose document names no followers", happens: "202 to the shared inbox, and it is nobody's", asks: 1, play: func(s *siege) {
		a := s.p.Actor("/users/prv-09")
		delete(a.Doc, "followers")
		a.Show()
		create := s.create(a, "note")
		create["to"] = []any{string(a.ID) + "/followers"}
		create.Sub("object")["to"] = create["to"]
		s.accepted(s.post(a, s.home.URL+"/inbox", create))
	}},
	{id: "PRV-10", sends: "a note that mentions alice in a tag and addresses somebody else", happens: "202 to the shared inbox; it does not reach her, and tells her nothing", play: func(s *siege) {
		create := s.create(s.mallory, "tag")
		create["to"] = []any{string(s.carol.ID)}
		create.Sub("object")["to"] = create["to"]
		s.accepted(s.post(s.mallory, s.home.URL+"/inbox", create))
	}},
	{id: "PRV-11", sends: "a request for a private note, over a cache that others use", happens: "`Cache-Control: private, no-store`, and `Vary` names the signature", play: func(s *siege) {
		for _, a := range []*peertest.Actor{s.carol, nil} {
			h := s.get(a, s.secret).Header
			if control := h.Get("Cache-Control"); !strings.Contains(control, "private") || !strings.Contains(control, "no-store") {
				s.Errorf("Cache-Control is %q", control)
			}
			if vary := strings.Join(h.Values("Vary"), ","); !strings.Contains(vary, "Signature") || !strings.Contains(vary, "Authorization") {
				s.Errorf("Vary is %q", vary)
			}
		}
	}},
	{id: "PRV-12", sends: "a private reply, in the hope that it is forwarded to alice's followers", happens: "202, and it stays with alice: only what addresses her followers is passed on", changes: true, play: func(s *siege) {
		before := len(s.q.Posted()) + len(s.p.Posted())
		reply := s.create(s.carol, "reply")
		reply["to"] = []any{s.alice.ID}
		reply.Sub("object")["to"], reply.Sub("object")["inReplyTo"] = reply["to"], s.secret
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", reply))
		s.settle()
		if n := len(s.q.Posted()) + len(s.p.Posted()); n != before {
			s.Errorf("%d posts left", n-before)
		}
	}},
	{id: "PRV-13", sends: "requests that tell what is gone from what never was", happens: "404 as for what never was, without ETag; 410 only for who could read it", changes: true, asks: 6, play: func(s *siege) {
		_, note := s.alice.Post(s, map[string]any{"content": "soon gone", "visibility": "direct", "to": []any{string(s.carol.ID)}})
		s.alice.Do(s, "DeleteObject", map[string]any{"objectId": note})
		s.settle()
		for _, a := range []*peertest.Actor{nil, s.mallory} {
			got := s.get(a, note)
			s.nothing(got, a)
			if tag := got.Header.Get("ETag"); tag != "" {
				s.Errorf("ETag is %q", tag)
			}
		}
		if got := s.get(s.carol, note); got.Status != http.StatusGone || bytes.Contains(got.Body, []byte("soon gone")) {
			s.Errorf("a recipient was answered %d %s", got.Status, got.Body)
		}
	}},
	{id: "PRV-14", sends: "a Follow that is not approved yet, and a request for what followers may read", happens: "404, and nothing is delivered: pending is not following", changes: true, asks: 6, play: func(s *siege) {
		s.approves(s.bob, true)
		defer s.approves(s.bob, false)
		_, note := s.bob.Post(s, map[string]any{"content": "for followers", "visibility": "followers"})
		s.accepted(s.post(s.mallory, s.bob.ID+"/inbox", vocab.Doc{"id": s.id(s.mallory, "follow"), "type": "Follow", "actor": string(s.mallory.ID), "object": s.bob.ID}))
		s.answered(s.get(s.mallory, note), http.StatusNotFound)
		_, later := s.bob.Post(s, map[string]any{"content": "for followers, too", "visibility": "followers"})
		s.settle()
		if slices.ContainsFunc(s.p.Posted(), func(p peertest.Posted) bool { return bytes.Contains(p.Content, []byte(later)) }) {
			s.Error("a post was delivered to who is not approved")
		}
		self := vocab.Doc{"id": s.id(s.mallory, "accept"), "type": "Accept", "actor": string(s.mallory.ID), "object": s.id(s.mallory, "follow")}
		s.accepted(s.post(s.mallory, s.bob.ID+"/inbox", self))
		s.answered(s.get(s.mallory, note), http.StatusNotFound)
	}},
	{id: "PRV-15", sends: "requests that fail half-way, to see private words in what is said", happens: "refusals hold no word of what is stored", asks: 1, play: func(s *siege) {
		for _, a := range []*peertest.Actor{nil, s.mallory} {
			for _, url := range []string{s.secret + "%00", s.secret + "'", s.alice.ID + "/outbox?cursor=AQAG", s.alice.ID + "/outbox?cursor=" + strings.Repeat("A", 3000), s.alice.ID + "/inbox"} {
				got := s.get(a, url)
				s.answered(got, 400, 401, 404)
				if bytes.Contains(got.Body, []byte("carol")) {
					s.Errorf("%s was answered %s", url, got.Body)
				}
			}
		}
	}},
	{id: "PRV-16", sends: "mallory's Like, Dislike, Announce, reply and report of a note only carol may read", happens: "202, as for what never was; no effect, and no word of the note comes back", changes: true, asks: 2, play: func(s *siege) {
		before := s.state()
		for n, kind := range []string{"Like", "Dislike", "Announce"} {
			doc := vocab.Doc{"id": s.id(s.mallory, fmt.Sprint(n)), "type": kind, "actor": string(s.mallory.ID), "object": s.secret, "to": []any{string(vocab.Public)}}
			got := s.post(s.mallory, s.alice.ID+"/inbox", doc)
			s.accepted(got)
			if len(got.Body) != 0 {
				s.Errorf("%s was answered %s", kind, got.Body)
			}
		}
		s.settle()
		if after := s.state(); after != before {
			s.Errorf("it left traces:\n%s", difference(before, after))
		}
		flag := vocab.Doc{"id": s.id(s.mallory, "flag"), "type": "Flag", "actor": string(s.mallory.ID), "object": []any{s.alice.ID, s.secret}, "content": "bad"}
		s.accepted(s.post(s.mallory, s.home.URL+"/inbox", flag))
		var kept string
		if err := s.home.SQL(s, "lightweb").QueryRowContext(s.Context(), `SELECT string_agg(r::text, ' ') FROM reports r`).Scan(&kept); err != nil || strings.Contains(kept, "for carol alone") {
			s.Errorf("the report is kept as %s, %v", kept, err)
		}
	}},
	{id: "PRV-17", sends: "encrypted messages, to find them or their plain text in events, caches and logs", happens: "words in the open are refused; ciphertext is kept for the user's devices, and nothing else has it", changes: true, play: spyOnCiphertext},
	{id: "PRV-18", sends: "requests of strangers for who reads, types or is there", happens: "nothing: mutual follows alone are told, over their sockets", changes: true, play: spyOnSignals},
	{id: "PRV-19", sends: "bob's token for what is alice's", happens: "403 for her inbox; of the rest what everybody sees", play: func(s *siege) {
		s.answered(s.bob.Ask(s, http.MethodGet, "/users/alice/inbox", nil), http.StatusForbidden)
		s.answered(s.bob.Ask(s, http.MethodGet, strings.TrimPrefix(s.secret, s.home.URL), nil), http.StatusNotFound)
		got := s.bob.Ask(s, http.MethodGet, "/users/alice/outbox?page=true", nil)
		if got.Status != http.StatusOK || bytes.Contains(got.Body, []byte("for carol alone")) {
			s.Errorf("alice's outbox was answered %d %s", got.Status, got.Body)
		}
	}},
	{id: "PRV-20", sends: "a server with a shared inbox, which shows what comes there to all followers", happens: "direct posts, and those to groups, go to personal inboxes only", changes: true, asks: 4, play: func(s *siege) {
		a := s.q.Actor("/users/shared")
		a.Doc["endpoints"] = vocab.Doc{"sharedInbox": s.q.Origin + "/inbox"}
		a.Show()
		s.accepted(s.post(a, s.alice.ID+"/inbox", s.like(a, "hello")))
		few := enginetest.ObjectOf(s, s.alice, s.alice.Do(s, "CreateGroup", map[string]any{"name": "few"}).ActivityID)
		s.alice.Do(s, "AddToGroup", map[string]any{"name": "few", "actorUri": string(a.ID)})
		for _, to := range []string{string(a.ID), few} {
			_, note := s.alice.Post(s, map[string]any{"content": "just us", "visibility": "direct", "to": []any{to}})
			s.settle()
			var paths []string
			for _, p := range s.q.Posted() {
				if bytes.Contains(p.Content, []byte(note)) {
					paths = append(paths, p.URL.Path)
				}
			}
			if !slices.Equal(paths, []string{"/users/shared/inbox"}) {
				s.Errorf("what is for %s was delivered to %v", to, paths)
			}
		}
	}},
}

// spyOnCiphertext sends messages of an encrypted conversation. It checks that only the places
// meant for them contain them.
func spyOnCiphertext(s *siege) {
	group := mlstest.NewGroup(mlstest.NewDevice(string(s.mallory.ID), time.Now()))
	sealed := base64.StdEncoding.EncodeToString(group.Message())
	create := func(name, content string) vocab.Doc {
		return vocab.Doc{"id": s.id(s.mallory, name), "type": "Create", "actor": string(s.mallory.ID), "to": []any{s.alice.ID}, "object": vocab.Doc{"type": "PrivateMessage",
			"id": s.id(s.mallory, name+"-object"), "attributedTo": string(s.mallory.ID), "to": []any{s.alice.ID}, "mediaType": "message/mls", "encoding": "base64", "content": content}}
	}
	s.answered(s.post(s.mallory, s.alice.ID+"/inbox", create("plain", "words in the open")), http.StatusBadRequest)
	s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", create("sealed", sealed)))
	s.settle()
	kept := s.alice.Column(s, `SELECT encode(content, 'base64') FROM mls_inbox`)
	if len(kept) != 1 {
		s.Fatalf("%d messages are kept, want 1", len(kept))
	}
	for _, query := range []string{`SELECT payload::text FROM event_outbox`, `SELECT raw::text FROM activities`, `SELECT raw::text FROM objects`, `SELECT words::text FROM search_index`} {
		for _, row := range s.alice.Column(s, query) {
			if strings.Contains(row, sealed[:40]) || strings.Contains(row, "words in the open") {
				s.Errorf("%s has %s", query, row)
			}
		}
	}
	if log := s.home.Log(); strings.Contains(log, sealed[:40]) || strings.Contains(log, "words in the open") {
		s.Error("the log has what was sent")
	}
	if seen := s.wire(); bytes.Contains(seen, []byte(sealed[:40])) {
		s.Error("it was sent on, or everybody can read it")
	}
}
