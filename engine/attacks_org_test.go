package engine_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnOrigins(t *testing.T) {
	t.Parallel()
	newSiege(t).play(originAttacks)
}

// everywhere sends an activity to alice's inbox and to the shared inbox. It checks that both
// answer with one of the statuses.
func (s *siege) everywhere(a *peertest.Actor, activity vocab.Doc, statuses ...int) {
	s.Helper()
	for _, inbox := range []string{s.alice.ID + "/inbox", s.home.URL + "/inbox"} {
		s.answered(s.post(a, inbox, activity), statuses...)
	}
}

// refused sends an activity to both inboxes and checks that they answer 400. dropped checks that
// they answer 202, the answer to an activity that the engine ignores.
func (s *siege) refused(a *peertest.Actor, activity vocab.Doc) {
	s.Helper()
	s.everywhere(a, activity, http.StatusBadRequest)
}

func (s *siege) dropped(a *peertest.Actor, activity vocab.Doc) {
	s.Helper()
	s.everywhere(a, activity, http.StatusAccepted)
}

// untouched checks that do() changes no database. Only the table acquaintances may change, because
// it may have more rows than necessary.
func (s *siege) untouched(do func()) {
	s.Helper()
	s.settle()
	before := s.state()
	do()
	s.settle()
	for made := range strings.Lines(difference(before, s.state())) {
		if !strings.HasPrefix(made, "lightweb: acquaintances ") {
			s.Errorf("it left traces: %s", made)
		}
	}
}

// approves sets whether a user approves followers by hand. It waits until the Update of the user's
// profile is made, so that no Update is made during an attack that must change nothing.
func (s *siege) approves(u *enginetest.User, approves bool) {
	s.Helper()
	shows := func() bool {
		return bytes.Contains(enginetest.Fetch(s, u.ID).Body, fmt.Appendf(nil, `"manuallyApprovesFollowers":%v`, approves))
	}
	told := func() int {
		return len(u.Column(s, `SELECT uri FROM activities WHERE type = 'Update' AND object_uri = actor_uri`))
	}
	if shows() {
		return
	}
	before := told()
	policy := "auto_accept"
	if approves {
		policy = "approval_required"
	}
	u.Configure(s, `{"follow_policy":"`+policy+`"}`)
	enginetest.Eventually(s, "the follow policy is "+policy, shows)
	enginetest.Eventually(s, "others are told of it", func() bool { return told() > before })
}

// guest makes a new actor on a peer. The actor sends a Like to alice, so that the engine knows the
// actor.
func (s *siege) guest(p *peertest.Peer, name string) *peertest.Actor {
	s.Helper()
	a := p.Actor("/users/" + strings.ToLower(s.row.id) + "-" + name)
	s.accepted(s.post(a, s.alice.ID+"/inbox", s.like(a, "hello")))
	return a
}

// does returns an activity of an actor under a new id.
func (s *siege) does(a *peertest.Actor, kind string, object any) vocab.Doc {
	return vocab.Doc{"id": s.id(a, fmt.Sprint(kind, time.Now().UnixNano())), "type": kind, "actor": string(a.ID), "object": object}
}

// everybody is the id that addresses a document to everybody.
const everybody = string(vocab.Public)

// openly returns a document addressed to alice and to everybody.
func (s *siege) openly(d vocab.Doc) vocab.Doc { return but(d, "to", []any{s.alice.ID, everybody}) }

// writes returns a note of an actor. shows lets a peer serve a document under the document's id.
func (s *siege) writes(a *peertest.Actor, name string, to ...any) vocab.Doc {
	return vocab.Doc{"id": s.id(a, name), "type": "Note", "attributedTo": string(a.ID), "content": "in my own words", "to": to}
}

func (s *siege) shows(p *peertest.Peer, doc vocab.Doc) {
	p.Serve(strings.TrimPrefix(doc.Text("id"), p.Origin), doc.JSON())
}

// brings sends an actor's object to alice and checks that she has it.
func (s *siege) brings(a *peertest.Actor, object vocab.Doc) {
	s.Helper()
	to := append([]any{s.alice.ID}, object["to"].([]any)...)
	s.accepted(s.post(a, s.alice.ID+"/inbox", but(s.does(a, "Create", object), "to", to)))
	s.settle()
	if got := s.held(object.Text("id")); got != object.Text("content") {
		s.Fatalf("alice has %q of %s", got, object.JSON())
	}
}

// held returns the content of an object that alice's database holds.
func (s *siege) held(id string) string {
	s.Helper()
	return strings.Join(s.alice.Column(s, `SELECT raw ->> 'content' FROM objects WHERE uri = $1`, id), "\n")
}

// but returns a copy of a document in which one property has another value.
func but(d vocab.Doc, name string, value any) vocab.Doc {
	d = maps.Clone(d)
	d[name] = value
	return d
}

// followOf returns the id of the Follow between alice and an actor. The parameter kind says who
// follows.
func (s *siege) followOf(kind string, a *peertest.Actor) string {
	s.Helper()
	found := s.alice.Column(s, `SELECT activity_uri FROM relationships WHERE type = $1 AND actor_uri = $2`, kind, string(a.ID))
	if len(found) != 1 {
		s.Fatalf("the Follow of the %s %s is %q", kind, a.ID, found)
	}
	return found[0]
}

// wants lets alice ask to follow an actor that does not answer yet.
func (s *siege) wants(a *peertest.Actor) (follow string) {
	s.Helper()
	return s.alice.Do(s, "Follow", map[string]any{"actorUri": string(a.ID)}).ActivityID
}

// follows lets alice follow an actor that accepts.
func (s *siege) follows(a *peertest.Actor) {
	s.Helper()
	s.accepted(s.post(a, s.alice.ID+"/inbox", s.does(a, "Accept", s.wants(a))))
	s.settle()
}

// poll writes a poll into alice's database, because clients cannot post polls yet.
func (s *siege) poll(name, more string) string {
	s.Helper()
	id := s.alice.ID + "/objects/" + strings.ToLower(s.row.id) + "-" + name
	raw := fmt.Sprintf(`{"id":%q,"type":"Question","attributedTo":%q,"to":["as:Public"],"content":"colour?","oneOf":[{"type":"Note","name":"red"},{"type":"Note","name":"blue"}]%s}`, id, s.alice.ID, more)
	if _, err := s.home.SQL(s, "lightweb_alice").ExecContext(s.Context(), `INSERT INTO objects (id, uri, published, raw) VALUES (gen_random_uuid(), $1, now(), $2)`, id, raw); err != nil {
		s.Fatal(err)
	}
	return id
}

// disguise returns a document of an actor with the given id and mallory's key. actsAs lets mallory
// send a Like as the actor with that id.
func (s *siege) disguise(id string) vocab.Doc {
	key := but(but(s.mallory.Doc.Sub("publicKey"), "id", id+"#main-key"), "owner", id)
	return vocab.Doc{"@context": vocab.ActorContext(), "id": id, "type": "Person", "inbox": id + "/inbox", "publicKey": key}
}

func (s *siege) actsAs(id string) enginetest.Answer {
	s.Helper()
	body := vocab.Doc{"id": id + "/1", "type": "Like", "actor": id, "object": s.note}
	return s.forge(peertest.Forgery{Body: string(body.JSON()), Params: keyed(signature.Cavage, id+"#main-key")})
}

// vote returns an actor's vote in a poll.
func (s *siege) vote(a *peertest.Actor, poll string, option any) vocab.Doc {
	id := s.id(a, fmt.Sprint("vote", time.Now().UnixNano()))
	return but(s.does(a, "Create", vocab.Doc{"id": id, "type": "Note", "attributedTo": string(a.ID), "name": option, "inReplyTo": poll, "to": []any{s.alice.ID}}), "to", []any{s.alice.ID})
}

// blockDomain lets the operator block a domain. The block ends with the attack.
func (s *siege) blockDomain(domain string) {
	s.Helper()
	dir := filepath.Join(s.home.DataDir, "registry")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.Fatal(err)
	}
	write := func(list string) {
		if err := os.WriteFile(filepath.Join(dir, "server.json"), []byte(`{"blocked_domains":[`+list+`]}`), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	write(`"` + domain + `"`)
	s.Cleanup(func() { write("") })
}

var originAttacks = []attack{
	{id: "ORG-01", sends: "mallory's Create or Update of a note on carol's server, whole or by its id", happens: "400: nobody speaks for the ids of another server", play: func(s *siege) {
		note := s.writes(s.carol, "note", everybody)
		s.shows(s.q, note)
		for _, object := range []any{note, but(note, "attributedTo", string(s.mallory.ID)), note["id"]} {
			s.refused(s.mallory, s.does(s.mallory, "Create", object))
			s.refused(s.mallory, s.does(s.mallory, "Update", object))
		}
	}},
	{id: "ORG-02", sends: "a note on mallory's server that carol, or somebody else there, is to have written, alone or with mallory", happens: "400 when it is whole; when it is fetched, 202 and it is dropped", asks: 6, play: func(s *siege) {
		note := s.writes(s.mallory, "note", everybody)
		other := s.p.Origin + "/users/other"
		for _, author := range []any{other, []any{other, string(s.mallory.ID)}} {
			s.refused(s.mallory, s.does(s.mallory, "Create", but(note, "attributedTo", author)))
		}
		for n, author := range []any{string(s.carol.ID), []any{string(s.mallory.ID), string(s.carol.ID)}, vocab.Doc{"type": "Person", "id": string(s.carol.ID)}} {
			forged := but(but(note, "attributedTo", author), "id", s.id(s.mallory, fmt.Sprint("note", n)))
			s.shows(s.p, forged)
			s.refused(s.mallory, s.does(s.mallory, "Create", forged))
			s.dropped(s.mallory, s.openly(s.does(s.mallory, "Create", forged["id"])))
		}
	}},
	{id: "ORG-03", sends: "a note that alice is to have written: by her id, by a number, by her bare name", happens: "400; a bare name is nobody's, and the note mallory's own", changes: true, play: func(s *siege) {
		note := s.writes(s.mallory, "note", everybody)
		s.untouched(func() {
			for _, author := range []any{s.alice.ID, 1, true, []any{1}, []any{string(s.mallory.ID), s.alice.ID}, vocab.Doc{"id": s.alice.ID}} {
				s.refused(s.mallory, s.does(s.mallory, "Create", but(note, "attributedTo", author)))
			}
		})
		for n, author := range []any{"1", "alice", vocab.Doc{"type": "Person", "name": "alice"}} {
			bare := but(but(note, "attributedTo", author), "id", s.id(s.mallory, fmt.Sprint("note", n)))
			s.brings(s.mallory, bare)
			if got := s.alice.Column(s, `SELECT raw ->> 'attributedTo' FROM objects WHERE uri = $1`, bare["id"]); got[0] != string(s.mallory.ID) {
				s.Errorf("the note of %v is by %q", author, got)
			}
		}
	}},
	{id: "ORG-04", sends: "activities and objects under ids of this server, new ones and those of alice's posts, embedded or shown by mallory's server", happens: "400; what is shown is dropped: nothing comes in under an id of ours", asks: 2, play: func(s *siege) {
		for _, id := range []string{s.note, s.secret, s.alice.ID + "/objects/new", s.home.URL + "/objects/1", s.alice.ID} {
			note := but(s.writes(s.mallory, "note", everybody), "id", id)
			for _, kind := range []string{"Create", "Update", "Delete"} {
				s.refused(s.mallory, s.does(s.mallory, kind, note))
				s.refused(s.mallory, s.does(s.mallory, kind, id))
			}
			s.refused(s.mallory, but(s.create(s.mallory, "note"), "id", id))
			s.refused(s.mallory, but(s.does(s.mallory, "Follow", s.alice.ID), "id", id))
		}
		s.p.Serve("/org-04", but(s.writes(s.mallory, "note", everybody), "id", s.note).JSON())
		s.dropped(s.mallory, s.does(s.mallory, "Announce", s.p.Origin+"/org-04"))
	}},
	{id: "ORG-05", sends: "an Update of carol's note by mallory, by somebody else of carol's server, or by two actors at once", happens: "400, 401, or 202 and it is dropped: only its author changes it", asks: 7, changes: true, play: func(s *siege) {
		note := s.writes(s.carol, "note", everybody)
		s.brings(s.carol, note)
		dave := s.guest(s.q, "dave")
		forged := but(note, "content", "changed")
		s.untouched(func() {
			s.refused(s.mallory, s.does(s.mallory, "Update", forged))
			s.refused(s.mallory, s.does(s.mallory, "Update", but(forged, "attributedTo", string(s.mallory.ID))))
			s.refused(s.mallory, but(s.does(s.mallory, "Update", forged), "actor", []any{string(s.mallory.ID), string(s.carol.ID)}))
			for _, author := range []any{nil, string(dave.ID), []any{string(dave.ID), string(s.carol.ID)}} {
				s.dropped(dave, s.does(dave, "Update", but(forged, "attributedTo", author)))
			}
			s.refused(dave, s.does(dave, "Update", forged))
			s.shows(s.q, forged)
			s.dropped(dave, s.does(dave, "Update", note["id"]))
			s.everywhere(dave, s.does(s.carol, "Update", forged), http.StatusUnauthorized)
		})
	}},
	{id: "ORG-05b", sends: "on a server that mallory shares with a victim: Delete, Update, Undo, Accept and Reject of what is the victim's, and the victim's key id with another key", happens: "actors are compared, not servers: 400, 401, or 202 and it is dropped; the victim's own key still holds", asks: 10, changes: true, play: func(s *siege) {
		victim := s.guest(s.p, "victim")
		note, like, follow := s.writes(victim, "note", s.alice.ID, everybody), s.like(victim, "like"), s.does(victim, "Follow", s.alice.ID)
		s.brings(victim, note)
		for _, activity := range []vocab.Doc{like, follow} {
			s.accepted(s.post(victim, s.alice.ID+"/inbox", activity))
		}
		asked := s.wants(victim)
		taken := but(victim.Doc, "publicKey", s.mallory.Doc["publicKey"])
		s.shows(s.p, note)
		s.untouched(func() {
			s.dropped(s.mallory, s.openly(s.does(s.mallory, "Create", note["id"])))
			for _, object := range []any{note["id"], victim.ID, vocab.Doc{"id": note["id"], "type": "Tombstone"}} {
				s.dropped(s.mallory, s.does(s.mallory, "Delete", object))
			}
			s.refused(s.mallory, s.does(s.mallory, "Delete", taken))
			s.refused(s.mallory, s.does(s.mallory, "Update", taken))
			s.dropped(s.mallory, s.does(s.mallory, "Update", but(note, "attributedTo", string(s.mallory.ID))))
			for _, done := range []vocab.Doc{like, follow} {
				s.refused(s.mallory, s.does(s.mallory, "Undo", done))
				s.dropped(s.mallory, s.does(s.mallory, "Undo", but(done, "actor", string(s.mallory.ID))))
				s.dropped(s.mallory, s.does(s.mallory, "Undo", done["id"]))
			}
			for _, answer := range []string{"Accept", "Reject"} {
				s.dropped(s.mallory, s.does(s.mallory, answer, asked))
				s.dropped(s.mallory, s.does(s.mallory, answer, vocab.Doc{"type": "Follow", "actor": s.alice.ID, "object": string(victim.ID)}))
			}
			s.dropped(s.mallory, but(s.does(s.mallory, "Move", string(victim.ID)), "target", string(s.mallory.ID)))
		})
		thief := s.p.Actor("/users/org-05b-thief")
		for thief.Keys.RSA.Private == victim.Keys.RSA.Private { // there are few test keys, so two actors may share one
			thief = s.p.Actor("/users/org-05b-thief")
		}
		stolen := but(thief.Doc.Sub("publicKey"), "id", victim.Keys.RSA.ID)
		thief.Doc["publicKey"] = []any{stolen, but(stolen, "owner", string(victim.ID)), thief.Doc["publicKey"]}
		thief.Show()
		s.accepted(s.post(thief, s.alice.ID+"/inbox", s.like(thief, "hello")))
		thief.Keys.RSA.ID = victim.Keys.RSA.ID
		s.untouched(func() { s.everywhere(thief, s.like(victim, "stolen"), http.StatusUnauthorized) })
		s.accepted(s.post(victim, s.alice.ID+"/inbox", s.like(victim, "mine")))
	}},
	{id: "ORG-06", sends: "an Update of another's actor or key; of one's own note to another author or a type that is no note; of one's own actor with an inbox elsewhere", happens: "400; 401 when the actor's own document says so: the copy here stays", asks: 4, changes: true, play: func(s *siege) {
		ann := s.guest(s.q, "ann")
		s.follows(ann)
		note := s.writes(ann, "note", everybody)
		s.brings(ann, note)
		foreign := but(ann.Doc, "inbox", string(s.mallory.ID)+"/inbox")
		s.forget(ann)
		s.untouched(func() {
			s.refused(s.mallory, s.does(s.mallory, "Update", foreign))
			s.refused(s.mallory, s.does(s.mallory, "Update", but(s.mallory.Doc.Sub("publicKey"), "id", ann.Keys.RSA.ID)))
			for _, author := range []any{string(s.mallory.ID), []any{string(ann.ID), string(s.mallory.ID)}, string(s.carol.ID)} {
				s.refused(ann, s.does(ann, "Update", but(note, "attributedTo", author)))
			}
			for _, kind := range []string{"Person", "OrderedCollection", "Create", "Tombstone", "Link"} {
				s.refused(ann, s.does(ann, "Update", but(note, "type", kind)))
			}
			ann.Doc = foreign
			ann.Show()
			s.everywhere(ann, s.does(ann, "Update", foreign), http.StatusUnauthorized)
		})
		if got := s.alice.Column(s, `SELECT inbox FROM actors WHERE uri = $1`, string(ann.ID)); len(got) != 1 || got[0] != string(ann.ID)+"/inbox" {
			s.Errorf("what is for ann goes to %q", got)
		}
	}},
	{id: "ORG-07", sends: "a private post of carol's or alice's, named by somebody else in a Create, Update or Announce to everybody", happens: "400, or 202 and it is dropped: nobody widens who may read it", asks: 7, changes: true, play: func(s *siege) {
		note := s.writes(s.carol, "note", s.alice.ID)
		s.brings(s.carol, note)
		dave := s.guest(s.q, "dave")
		s.shows(s.q, note)
		s.untouched(func() {
			for _, kind := range []string{"Create", "Update"} {
				s.refused(s.mallory, s.does(s.mallory, kind, but(note, "to", []any{everybody})))
				s.refused(s.mallory, s.does(s.mallory, kind, but(s.writes(s.mallory, "note", everybody), "id", s.secret)))
				s.dropped(dave, s.openly(s.does(dave, kind, but(but(note, "attributedTo", string(dave.ID)), "to", []any{everybody}))))
			}
			for _, a := range []*peertest.Actor{s.mallory, dave} {
				s.dropped(a, s.openly(s.does(a, "Announce", note["id"])))
				s.dropped(a, s.openly(s.does(a, "Announce", s.secret)))
			}
		})
	}},
	{id: "ORG-08", sends: "a Delete of carol's note or of carol by mallory or somebody else of carol's server, by id, as a Tombstone, several at once", happens: "400, or 202 and it is dropped", asks: 1, changes: true, play: func(s *siege) {
		note := s.writes(s.carol, "note", everybody)
		s.brings(s.carol, note)
		dave := s.guest(s.q, "dave")
		s.untouched(func() {
			for _, object := range []any{note["id"], vocab.Doc{"id": note["id"], "type": "Tombstone"}, string(s.carol.ID), []any{note["id"]}, []any{note["id"], s.id(s.mallory, "note")}} {
				s.refused(s.mallory, s.does(s.mallory, "Delete", object))
			}
			for _, object := range []any{note["id"], vocab.Doc{"id": note["id"], "type": "Tombstone", "attributedTo": string(dave.ID)}, string(s.carol.ID)} {
				s.dropped(dave, s.does(dave, "Delete", object))
			}
			s.refused(dave, s.does(dave, "Delete", s.carol.Doc))
			s.refused(dave, s.does(dave, "Delete", []any{note["id"], s.id(dave, "note")}))
		})
	}},
	{id: "ORG-09", sends: "Deletes of ids that carol's notes may have one day", happens: "400; no such id is remembered, and carol's note comes in", changes: true, play: func(s *siege) {
		s.untouched(func() {
			for n := range 50 {
				s.refused(s.mallory, s.does(s.mallory, "Delete", s.id(s.carol, fmt.Sprint("note", n))))
			}
		})
		s.brings(s.carol, s.writes(s.carol, "note7", everybody))
	}},
	{id: "ORG-10", sends: "activities and notes under ids that carol is about to use", happens: "400 before the id counts as known: carol's own comes in", changes: true, play: func(s *siege) {
		hers := s.create(s.carol, "mine")
		s.untouched(func() {
			s.refused(s.mallory, but(s.create(s.mallory, "mine"), "id", hers["id"]))
			s.refused(s.mallory, but(s.create(s.mallory, "mine"), "object", hers["object"]))
			s.refused(s.mallory, but(s.like(s.mallory, "mine"), "id", hers["id"]))
			s.refused(s.mallory, s.does(s.mallory, "Undo", hers["id"]))
		})
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", hers))
		if got := s.held(hers.Sub("object").Text("id")); got != "believe me" {
			s.Errorf("alice has %q of carol's note", got)
		}
	}},
	{id: "ORG-11", sends: "an Undo of another's Follow, Like or Block, whole, by its id or without one; an Undo of a Create", happens: "400, or 202 and it is dropped", asks: 4, changes: true, play: func(s *siege) {
		dave, erin := s.guest(s.q, "dave"), s.guest(s.q, "erin")
		_, note := s.alice.Post(s, map[string]any{"content": "nobody but carol likes this", "visibility": "public"})
		like, block, created := but(s.like(s.carol, "like"), "object", note), s.does(erin, "Block", s.alice.ID), s.create(s.carol, "created")
		follow := vocab.Doc{"id": s.followOf("follower", s.carol), "type": "Follow", "actor": string(s.carol.ID), "object": s.alice.ID}
		for _, activity := range []vocab.Doc{like, created} {
			s.accepted(s.post(s.carol, s.alice.ID+"/inbox", activity))
		}
		s.accepted(s.post(erin, s.alice.ID+"/inbox", block))
		s.untouched(func() {
			for _, done := range []vocab.Doc{like, block, follow} {
				for _, object := range []any{done, done["id"]} {
					s.refused(s.mallory, s.does(s.mallory, "Undo", object))
				}
				s.refused(s.mallory, s.does(s.mallory, "Undo", but(done, "id", nil)))
				s.dropped(s.mallory, s.does(s.mallory, "Undo", vocab.Doc{"type": done["type"], "object": done["object"]}))
				s.dropped(dave, s.does(dave, "Undo", done["id"]))
				s.dropped(dave, s.does(dave, "Undo", but(done, "actor", string(dave.ID))))
				s.refused(dave, s.does(dave, "Undo", done))
			}
			for _, object := range []any{created, created["id"]} {
				s.dropped(s.carol, s.does(s.carol, "Undo", object))
			}
		})
	}},
	{id: "ORG-12", sends: "an Accept of alice's Follow of somebody else, of a Follow that she never sent, or of a made-up one with an id of hers", happens: "202 and it is dropped: only an actor that she asked can answer", asks: 3, changes: true, play: func(s *siege) {
		dave, erin := s.guest(s.q, "dave"), s.guest(s.q, "erin")
		asked := s.wants(erin)
		follow := func(id any, of string) vocab.Doc {
			return vocab.Doc{"id": id, "type": "Follow", "actor": s.alice.ID, "object": of}
		}
		s.untouched(func() {
			for _, a := range []*peertest.Actor{s.mallory, dave} {
				for _, object := range []any{asked, follow(asked, string(erin.ID)), follow(nil, string(erin.ID)), follow(asked, string(a.ID)), follow(nil, string(a.ID)), follow(s.alice.ID+"/activities/made-up", string(a.ID))} {
					s.dropped(a, s.does(a, "Accept", object))
				}
			}
			for _, object := range []any{s.alice.ID + "/activities/made-up", follow(s.alice.ID+"/activities/made-up", string(erin.ID)), but(follow(nil, string(erin.ID)), "actor", s.bob.ID), but(follow(nil, string(erin.ID)), "type", "Like"), string(erin.ID)} {
				s.dropped(erin, s.does(erin, "Accept", object))
			}
		})
		s.accepted(s.post(erin, s.alice.ID+"/inbox", s.does(erin, "Accept", asked)))
		if got := s.alice.Column(s, `SELECT actor_uri FROM relationships WHERE type = 'following' AND status = 'accepted' AND actor_uri = $1`, string(erin.ID)); len(got) != 1 {
			s.Error("erin's own Accept does nothing")
		}
	}},
	{id: "ORG-13", sends: "mallory's own Accept of her Follow that waits for bob's approval, or an Add of herself to his followers", happens: "202 and it is dropped, or 401 in bob's name: she waits", changes: true, play: func(s *siege) {
		s.approves(s.bob, true)
		inbox, follow := s.bob.ID+"/inbox", s.does(s.mallory, "Follow", s.bob.ID)
		s.accepted(s.post(s.mallory, inbox, follow))
		s.untouched(func() {
			for _, object := range []any{follow, follow["id"], but(follow, "id", nil), vocab.Doc{"type": "Follow", "actor": s.bob.ID, "object": string(s.mallory.ID)}} {
				s.accepted(s.post(s.mallory, inbox, s.does(s.mallory, "Accept", object)))
				s.unauthorized(s.post(s.mallory, inbox, but(s.does(s.mallory, "Accept", object), "actor", s.bob.ID)))
			}
			s.accepted(s.post(s.mallory, inbox, but(s.does(s.mallory, "Add", string(s.mallory.ID)), "target", s.bob.ID+"/followers")))
		})
		if got := s.bob.Column(s, follows); len(got) != 1 || got[0] != "follower pending" {
			s.Errorf("bob's follows are %q", got)
		}
	}},
	{id: "ORG-14", sends: "a Reject or Block by mallory, or by somebody else of carol's server, to part alice and carol", happens: "400, 401, or 202 and it is dropped", asks: 9, changes: true, play: func(s *siege) {
		dave := s.guest(s.q, "dave")
		out, in := s.followOf("following", s.carol), s.followOf("follower", s.carol)
		s.untouched(func() {
			for _, a := range []*peertest.Actor{s.mallory, dave} {
				for _, object := range []any{out, in, vocab.Doc{"type": "Follow", "actor": s.alice.ID, "object": string(s.carol.ID)}, vocab.Doc{"type": "Follow", "actor": string(s.carol.ID), "object": s.alice.ID}} {
					s.dropped(a, s.does(a, "Reject", object))
				}
				s.dropped(a, s.does(a, "Block", string(s.carol.ID)))
				s.refused(a, s.does(a, "Block", []any{s.alice.ID, string(s.carol.ID)}))
				for _, kind := range []string{"Reject", "Block"} {
					s.everywhere(a, but(s.does(s.carol, kind, s.alice.ID), "to", []any{s.alice.ID}), http.StatusUnauthorized)
				}
			}
		})
	}},
	{id: "ORG-15", sends: "an Add to or Remove from alice's followers, groups or pinned posts; a note to one of her groups", happens: "202 and it is dropped: her collections are hers, and groups are never expanded", play: func(s *siege) {
		for _, a := range []*peertest.Actor{s.mallory, s.carol} {
			for _, collection := range []string{"/followers", "/following", strings.TrimPrefix(s.circle, s.alice.ID), "/featured", ""} {
				for _, kind := range []string{"Add", "Remove"} {
					s.dropped(a, but(s.does(a, kind, string(s.mallory.ID)), "target", s.alice.ID+collection))
					s.dropped(a, but(s.does(a, kind, s.note), "target", s.alice.ID+collection))
				}
			}
		}
		s.accepted(s.post(s.mallory, s.home.URL+"/inbox", but(s.create(s.mallory, "note"), "to", []any{s.circle})))
	}},
	{id: "ORG-16", sends: "an Announce with forged words of carol's inside; of a private post of alice's; of alice's post under an id with a query", happens: "202: carol's server is asked for her words; the others are dropped, and counted nowhere", asks: 2, changes: true, play: func(s *siege) {
		note := s.writes(s.carol, "note", everybody)
		s.shows(s.q, note)
		s.dropped(s.mallory, s.openly(s.does(s.mallory, "Announce", but(note, "content", "forged"))))
		s.settle()
		if got := s.held(note.Text("id")); got != "in my own words" {
			s.Errorf("alice has %q of carol's note", got)
		}
		s.untouched(func() {
			for _, id := range []string{s.secret, s.note + "?x=1", s.note + "#x", s.note + "/", s.alice.ID, s.alice.ID + "/outbox"} {
				s.dropped(s.mallory, s.openly(s.does(s.mallory, "Announce", id)))
				s.dropped(s.mallory, s.openly(s.does(s.mallory, "Announce", but(note, "id", id))))
			}
		})
	}},
	{id: "ORG-17", sends: "a Create, Update or Delete wrapped in an Announce, as groups do, by mallory and by a group that alice follows", happens: "202 and it is dropped: what is wrapped is never believed", asks: 12, changes: true, play: func(s *siege) {
		note := s.writes(s.carol, "note", everybody)
		s.brings(s.carol, note)
		group := s.p.Actor("/users/org-17-group")
		group.Doc["type"] = "Group"
		group.Show()
		s.follows(group)
		s.untouched(func() {
			for _, a := range []*peertest.Actor{s.mallory, group} {
				for _, kind := range []string{"Create", "Update", "Delete"} {
					inner := s.does(s.carol, kind, but(note, "content", "changed"))
					s.dropped(a, s.openly(s.does(a, "Announce", inner)))
				}
				inner := but(s.create(s.mallory, "inner"), "attributedTo", string(s.mallory.ID))
				s.shows(s.p, inner)
				s.dropped(a, s.openly(s.does(a, "Announce", inner)))
				s.refused(a, s.does(a, "Announce", but(inner, "id", nil)))
			}
		})
	}},
	{id: "ORG-18", sends: "an open redirect on carol's server that leads to mallory's, for a note and for an actor; one of mallory's that leads to carol's note", happens: "202 and it is dropped, or 401: a document comes from the server that it was asked of", asks: 7, play: func(s *siege) {
		open := func(from *peertest.Peer, to string) string {
			path := "/org-18/open" + fmt.Sprint(time.Now().UnixNano())
			from.Handle(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
			return from.Origin + path
		}
		fake := open(s.q, s.p.Origin+"/org-18/fake")
		s.p.Serve("/org-18/fake", but(s.writes(s.carol, "note", everybody), "id", fake).JSON())
		s.dropped(s.mallory, s.does(s.mallory, "Announce", fake))
		posing := open(s.q, s.p.Origin+"/org-18/actor")
		s.p.Serve("/org-18/actor", s.disguise(posing).JSON())
		s.unauthorized(s.actsAs(posing))
		note := s.writes(s.carol, "real", everybody)
		s.shows(s.q, note)
		s.dropped(s.mallory, s.openly(s.does(s.mallory, "Create", open(s.p, note.Text("id")))))
	}},
	{id: "ORG-19", sends: "a note and an actor in a file that somebody uploaded to carol's server: served as JSON, text, HTML, bytes, or without a type", happens: "202 and it is dropped, or 401: only what is served as ActivityStreams is the server's word", asks: 12, play: func(s *siege) {
		for n, mediaType := range []string{"application/json", "text/plain", "text/html", "application/octet-stream", "application/ld+json", ""} {
			upload := func(name string, doc func(id string) vocab.Doc) string {
				path := fmt.Sprintf("/org-19/%d-%s.json", n, name)
				s.q.Handle(path, func(w http.ResponseWriter, _ *http.Request) {
					if w.Header()["Content-Type"] = nil; mediaType != "" {
						w.Header().Set("Content-Type", mediaType)
					}
					if _, err := w.Write(doc(s.q.Origin + path).JSON()); err != nil {
						s.Log(err)
					}
				})
				return s.q.Origin + path
			}
			note := upload("note", func(id string) vocab.Doc { return but(s.writes(s.carol, "note", everybody), "id", id) })
			s.dropped(s.mallory, s.does(s.mallory, "Announce", note))
			s.unauthorized(s.actsAs(upload("actor", s.disguise)))
		}
	}},
	{id: "ORG-20", sends: "ActivityStreams documents uploaded here as media, to be served as this server's word", never: "the one upload is the picture of a profile: it is decoded, drawn anew and served as PNG or JPEG (decision 44)"},
	{id: "ORG-21", sends: "ids written in another way: upper case, a dot or digits of another script in the host, user info, a port of its own, a query, a fragment", happens: "400 or 401 where they are another's; 202 without effect where they are the same id again: one rule compares them", changes: true, play: func(s *siege) {
		note := s.writes(s.carol, "note", everybody)
		s.brings(s.carol, note)
		like := s.like(s.mallory, "like")
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", like))
		twins := func(id string) []string {
			rest := strings.TrimPrefix(id, "http://")
			host, path, _ := strings.Cut(rest, ":")
			return []string{"HTTP://" + rest, "http://" + host + ".:" + path, "http://x@" + rest, "http://" + strings.NewReplacer("1", "１", ".", "。").Replace(host) + ":" + path, "http://" + host + ":0" + path, id + "?x", id + "#x", id + "/."}
		}
		s.untouched(func() {
			for _, id := range twins(note.Text("id")) {
				forged := but(but(note, "id", id), "attributedTo", string(s.mallory.ID))
				for _, kind := range []string{"Create", "Update", "Delete"} {
					s.refused(s.mallory, s.does(s.mallory, kind, forged))
				}
				s.refused(s.mallory, s.does(s.mallory, "Delete", id))
			}
			for _, id := range twins(s.alice.ID)[:5] {
				s.everywhere(s.mallory, but(s.like(s.mallory, "hers"), "actor", id), 400, 401)
			}
			for _, id := range twins(like.Text("id"))[:5] {
				s.everywhere(s.mallory, but(like, "id", id), 202, 400)
			}
			others := twins(s.note)
			for _, id := range slices.Concat(others[1:3], others[4:]) { // the ids left out are other spellings of the note's own id
				s.everywhere(s.mallory, s.does(s.mallory, "Like", id), 202, 400)
			}
		})
	}},
	{id: "ORG-22", sends: "activities and objects without an id, or whose id is null, empty, a number, a list, an object, or two that differ", happens: "400", play: func(s *siege) {
		for _, id := range []any{nil, "", 5, []any{s.id(s.mallory, "x")}, vocab.Doc{"id": s.id(s.mallory, "x")}, "x", "/x"} {
			s.refused(s.mallory, but(s.create(s.mallory, "note"), "id", id))
			s.refused(s.mallory, s.does(s.mallory, "Create", but(s.writes(s.mallory, "note", s.alice.ID), "id", id)))
			for _, kind := range []string{"Update", "Delete", "Like", "Announce", "Follow"} {
				s.refused(s.mallory, s.does(s.mallory, kind, vocab.Doc{"type": "Note", "id": id}))
			}
		}
		for _, kind := range []string{"Create", "Delete", "Like", "Follow", "Undo", "Accept", "Block", "Move"} {
			s.refused(s.mallory, s.does(s.mallory, kind, nil))
		}
		s.refused(s.mallory, but(s.create(s.mallory, "note"), "@id", s.id(s.mallory, "other")))
		s.refused(s.mallory, s.does(s.mallory, "Create", but(s.writes(s.mallory, "note", s.alice.ID), "@id", s.id(s.mallory, "other"))))
	}},
	{id: "ORG-23", sends: "a Move of carol by mallory; to an account that does not name the old one, or to alice; in a circle; in a chain", happens: "400, or 202 and it is dropped: both accounts are asked, and a follow moves once in 30 days", asks: 28, changes: true, play: func(s *siege) {
		ann, ben, cat := s.guest(s.p, "ann"), s.guest(s.p, "ben"), s.guest(s.p, "cat")
		s.follows(ann)
		says := func(a *peertest.Actor, movedTo any, alsoKnownAs ...any) {
			a.Doc["movedTo"], a.Doc["alsoKnownAs"] = movedTo, alsoKnownAs
			a.Show()
		}
		moves := func(a, to *peertest.Actor) vocab.Doc {
			return but(s.does(a, "Move", string(a.ID)), "target", string(to.ID))
		}
		s.untouched(func() {
			s.refused(s.mallory, but(moves(s.carol, s.mallory), "actor", string(s.mallory.ID)))
			s.refused(s.mallory, moves(s.mallory, s.mallory))
			s.refused(ann, s.does(ann, "Move", string(ann.ID)))
			says(ann, string(ben.ID))
			s.dropped(ann, moves(ann, ben))
			says(ann, nil)
			says(ben, nil, string(ann.ID))
			s.dropped(ann, moves(ann, ben))
			says(ann, s.alice.ID)
			s.dropped(ann, but(moves(ann, ben), "target", s.alice.ID))
		})
		says(ann, string(ben.ID))
		s.dropped(ann, moves(ann, ben))
		s.settle()
		s.followOf("following", ben)
		s.untouched(func() {
			says(ann, nil, string(ben.ID))
			says(ben, string(ann.ID))
			s.dropped(ben, moves(ben, ann))
			says(ben, string(cat.ID))
			says(cat, nil, string(ben.ID))
			s.dropped(ben, moves(ben, cat))
		})
	}},
	{id: "ORG-24", sends: "a report of 10,000 things; a report without a signature; one about nobody here", happens: "202: the operator gets the first 100, no user anything; 401; 202 and it is dropped", changes: true, play: func(s *siege) {
		all := []any{s.alice.ID, s.note}
		for n := range 10_000 {
			all = append(all, fmt.Sprint(s.q.Origin, "/notes/", n))
		}
		flag := s.does(s.mallory, "Flag", all)
		before := s.state()
		s.dropped(s.mallory, flag)
		s.settle()
		if made := strings.Split(difference(before, s.state()), "\n"); len(made) != 1 || !strings.HasPrefix(made[0], "lightweb: reports ") {
			s.Errorf("it left traces:\n%s", strings.Join(made, "\n"))
		}
		if n := s.count("lightweb", `SELECT cardinality(objects) FROM reports WHERE activity = $1`, flag["id"]); n != 100 {
			s.Errorf("%d of the things are kept, want 100", n)
		}
		s.untouched(func() {
			s.unauthorized(s.forge(peertest.Forgery{Body: string(s.does(s.mallory, "Flag", s.alice.ID).JSON()), After: func(r *http.Request) { r.Header.Del("Signature") }}))
			s.dropped(s.mallory, s.does(s.mallory, "Flag", string(s.carol.ID)))
			s.refused(s.mallory, s.does(s.mallory, "Flag", []any{}))
		})
	}},
	{id: "ORG-25", sends: "in alice's poll a second vote, one after its end, one for no option of it, an empty one; another's count of carol's poll", happens: "400, or 202 and it is dropped: the counts stay", asks: 1, changes: true, play: func(s *siege) {
		open, ended := s.poll("open", ""), s.poll("ended", `,"endTime":"2020-01-01T00:00:00Z"`)
		s.dropped(s.mallory, s.vote(s.mallory, open, "blue"))
		s.settle()
		if got := s.alice.Column(s, `SELECT concat_ws(' ', raw ->> 'votersCount', raw #>> '{oneOf,1,replies,totalItems}') FROM objects WHERE uri = $1`, open)[0]; got != "1 1" {
			s.Fatalf("after one vote the counts are %q", got)
		}
		hers := but(but(s.writes(s.carol, "poll", everybody), "type", "Question"), "oneOf", []any{vocab.Doc{"type": "Note", "name": "red", "replies": vocab.Doc{"type": "Collection", "totalItems": 1}}})
		s.brings(s.carol, hers)
		dave := s.guest(s.q, "dave")
		s.untouched(func() {
			for _, option := range []any{"blue", "red", "green"} {
				s.dropped(s.mallory, s.vote(s.mallory, open, option))
			}
			s.dropped(dave, s.vote(dave, ended, "blue"))
			s.dropped(dave, s.vote(dave, open, "green"))
			s.dropped(dave, s.vote(dave, s.note, "blue"))
			more := but(hers, "oneOf", []any{vocab.Doc{"type": "Note", "name": "red", "replies": vocab.Doc{"type": "Collection", "totalItems": 999}}})
			s.refused(s.mallory, s.does(s.mallory, "Update", more))
			s.refused(dave, s.does(dave, "Update", more))
			s.dropped(dave, s.does(dave, "Update", but(more, "attributedTo", string(dave.ID))))
		})
		for _, option := range []any{"", nil, 1} { // such a reply is not a vote, but a private message from a stranger
			s.dropped(s.mallory, s.vote(s.mallory, open, option))
		}
		s.settle()
		if got := s.alice.Column(s, `SELECT concat_ws(' ', raw ->> 'votersCount', raw #>> '{oneOf,1,replies,totalItems}') FROM objects WHERE uri = $1`, open)[0]; got != "1 1" {
			s.Errorf("afterwards the counts are %q", got)
		}
	}},
	{id: "ORG-26", sends: "a Like, a boost or a reply to a post that mallory cannot see, and to one that does not exist", happens: "202 for both, and it is dropped; a reply to alice herself she gets, and passes on to nobody", changes: true, play: func(s *siege) {
		missing := s.alice.ID + "/objects/019c8052-5f00-7000-8000-000000000001"
		reply := func(to string) vocab.Doc {
			d := s.create(s.mallory, fmt.Sprint("reply", time.Now().UnixNano()))
			d["to"], d["cc"] = []any{everybody}, []any{s.alice.ID + "/followers"}
			d["object"] = but(but(but(d.Sub("object"), "inReplyTo", to), "to", d["to"]), "tag", nil)
			return d
		}
		s.untouched(func() {
			for _, of := range []func(id string) vocab.Doc{
				func(id string) vocab.Doc { return s.does(s.mallory, "Like", id) },
				func(id string) vocab.Doc { return s.does(s.mallory, "Dislike", id) },
				func(id string) vocab.Doc { return s.does(s.mallory, "Announce", id) },
				reply,
			} {
				one, none := s.post(s.mallory, s.home.URL+"/inbox", of(s.secret)), s.post(s.mallory, s.home.URL+"/inbox", of(missing))
				s.accepted(one)
				if one.Status != none.Status || !bytes.Equal(one.Body, none.Body) {
					s.Errorf("answered %d %q, and %d %q for what does not exist", one.Status, one.Body, none.Status, none.Body)
				}
			}
		})
		owed := func() int { return s.count("lightweb_alice", `SELECT count(*) FROM deliveries`) }
		before, letter := owed(), reply(s.secret)
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", letter))
		if got := s.held(letter.Sub("object").Text("id")); got != "believe me" {
			s.Errorf("alice has %q of what mallory wrote to her", got)
		}
		if owed() != before {
			s.Error("alice's followers get a reply to what its author cannot see")
		}
	}},
	{id: "ORG-27", sends: "a forged stamp for a quote, one for another post, one that was taken back; an Accept, Reject or Delete of it by another than the author of what is quoted", happens: "202 and it is dropped: the quote has no approval but the author's, and none after it was taken back", asks: 23, changes: true, play: func(s *siege) {
		original := s.writes(s.carol, "original", everybody)
		s.shows(s.q, original)
		_, quote := s.alice.Post(s, map[string]any{"content": "see", "visibility": "public", "quote": original["id"]})
		request := s.alice.Column(s, `SELECT uri FROM activities WHERE type = 'QuoteRequest' AND object_uri = $1`, quote)[0]
		stamp := func(a *peertest.Actor, name, quoting string) vocab.Doc {
			d := vocab.Doc{"id": s.id(a, name), "type": "QuoteAuthorization", "attributedTo": string(a.ID), "interactingObject": quoting, "interactionTarget": original["id"]}
			s.shows(map[bool]*peertest.Peer{true: s.p, false: s.q}[a == s.mallory], d)
			return d
		}
		claims := func() string {
			s.settle()
			return s.alice.Column(s, `SELECT concat(raw ->> 'quoteAuthorization', raw ->> 'lwQuoteRefused') FROM objects WHERE uri = $1`, quote)[0]
		}
		accept := func(a *peertest.Actor, stamp vocab.Doc) vocab.Doc {
			return but(s.does(a, "Accept", request), "result", stamp["id"])
		}
		dave := s.guest(s.q, "dave")
		real := stamp(s.carol, "stamp", quote)
		s.untouched(func() {
			s.dropped(s.mallory, accept(s.mallory, real))
			s.dropped(s.mallory, accept(s.mallory, stamp(s.mallory, "stamp", quote)))
			s.dropped(s.mallory, s.does(s.mallory, "Reject", request))
			s.dropped(dave, accept(dave, stamp(dave, "stamp", quote)))
			s.dropped(dave, accept(dave, real))
			s.dropped(dave, s.does(dave, "Reject", request))
			s.dropped(s.carol, accept(s.carol, stamp(s.carol, "another", s.note)))
			s.dropped(s.carol, accept(s.carol, stamp(s.mallory, "theirs", quote)))
			s.dropped(s.carol, s.does(s.carol, "Accept", request))
		})
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", accept(s.carol, real)))
		if got := claims(); got != real["id"] {
			s.Fatalf("after the author's own Accept the quote claims %q", got)
		}
		s.untouched(func() {
			s.refused(s.mallory, s.does(s.mallory, "Delete", real["id"]))
			s.dropped(dave, s.does(dave, "Delete", real["id"]))
			s.dropped(dave, s.does(dave, "Reject", request))
		})
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", s.does(s.carol, "Delete", real["id"])))
		if got := claims(); got != "true" {
			s.Fatalf("after the author took the stamp back the quote claims %q", got)
		}
		s.untouched(func() { s.dropped(s.carol, accept(s.carol, real)) }) // carol's server still serves the quote authorization

		theirs := but(s.writes(s.mallory, "quote", everybody), "quote", original["id"])
		for n, by := range []*peertest.Actor{s.mallory, s.carol, dave} {
			post := but(theirs, "id", fmt.Sprint(theirs["id"], n))
			claimed := real // this quote authorization is for another post
			if by != s.carol {
				claimed = stamp(by, "for-theirs", post.Text("id"))
			}
			post["quoteAuthorization"] = claimed["id"]
			s.brings(s.mallory, post)
			if got := s.alice.Column(s, `SELECT uri FROM objects WHERE uri = $1 AND raw ? 'quoteAuthorization'`, post["id"]); len(got) > 0 {
				s.Errorf("a quote with the stamp %s counts as approved", claimed.JSON())
			}
		}
	}},
	{id: "ORG-28", sends: "what an actor that alice blocks does: by itself, boosted by another, passed on in another's name", happens: "202 and it is dropped, or 401; no event tells of it", asks: 11, changes: true, play: func(s *siege) {
		mean, dave := s.guest(s.p, "mean"), s.guest(s.q, "dave")
		s.follows(dave)
		s.alice.Do(s, "Block", map[string]any{"actorUri": string(mean.ID)})
		note := s.writes(mean, "note", everybody)
		s.shows(s.p, note)
		s.untouched(func() {
			for _, activity := range []vocab.Doc{s.create(mean, "post"), s.like(mean, "like"), s.does(mean, "Follow", s.alice.ID), s.does(mean, "Announce", s.note)} {
				s.dropped(mean, activity)
			}
			s.dropped(dave, but(s.does(dave, "Announce", note["id"]), "to", []any{everybody, string(dave.ID) + "/followers"}))
			s.dropped(dave, but(s.does(dave, "Announce", note), "to", []any{s.alice.ID}))
			s.everywhere(dave, s.create(mean, "forwarded"), http.StatusUnauthorized)
		})
	}},
	{id: "ORG-29", sends: "a boost by another of a post that alice has already, of a server that the operator blocks", happens: "202 and it is dropped; the blocked server is not asked", changes: true, play: func(s *siege) {
		far := peertest.New(s, "127.0.0.5")
		eve := s.guest(far, "eve")
		note := s.writes(eve, "note", everybody)
		s.brings(eve, note)
		s.shows(far, note)
		s.blockDomain("127.0.0.5")
		enginetest.Eventually(s, "eve's server is blocked", func() bool {
			return s.post(eve, s.alice.ID+"/inbox", s.like(eve, "hello")).Status == http.StatusForbidden
		})
		asked := len(far.Asked())
		s.untouched(func() {
			s.dropped(s.carol, but(s.does(s.carol, "Announce", note["id"]), "to", []any{everybody, string(s.carol.ID) + "/followers"}))
			s.dropped(s.mallory, but(s.does(s.mallory, "Announce", note), "to", []any{s.alice.ID}))
		})
		if n := len(far.Asked()); n != asked {
			s.Errorf("the blocked server was asked %d times", n-asked)
		}
	}},
	{id: "ORG-30", sends: "things in the place of others: a Person, collection, activity, Tombstone or Link created; a Note that acts; a collection followed; an activity or actor announced; attachments and tags that are none", happens: "400, 401, or 202 and it is dropped; a note with nonsense in it can be read", asks: 10, changes: true, play: func(s *siege) {
		note := s.writes(s.mallory, "note", everybody)
		activity := s.does(s.mallory, "Listen", note["id"])
		s.shows(s.p, activity)
		list := vocab.Doc{"id": s.id(s.mallory, "list"), "type": "OrderedCollection", "attributedTo": string(s.mallory.ID), "to": []any{everybody}, "orderedItems": []any{}}
		s.shows(s.p, list)
		thing := s.p.Actor("/users/org-30-thing")
		thing.Doc["type"] = "Note"
		thing.Show()
		s.untouched(func() {
			for _, kind := range []any{"Person", "Group", "OrderedCollection", "CollectionPage", "Create", "Like", "Tombstone", "Link", "Relationship", nil, 5, []any{"Note", 5}} {
				s.refused(s.mallory, s.does(s.mallory, "Create", but(note, "type", kind)))
			}
			s.refused(s.mallory, s.does(s.mallory, "Create", vocab.Doc{"type": "Link", "href": note["id"]}))
			for _, object := range []any{5, true, []any{5}, []any{[]any{}}} {
				for _, kind := range []string{"Create", "Like", "Follow", "Delete", "Announce", "Undo"} {
					s.refused(s.mallory, s.does(s.mallory, kind, object))
				}
			}
			s.everywhere(thing, s.like(thing, "like"), http.StatusUnauthorized)
			for _, object := range []string{s.alice.ID + "/followers", s.alice.ID + "/outbox", s.note} {
				s.dropped(s.mallory, s.does(s.mallory, "Follow", object))
			}
			for _, object := range []any{activity["id"], activity, list["id"], string(s.carol.ID), s.alice.ID} {
				s.dropped(s.mallory, but(s.does(s.mallory, "Announce", object), "to", []any{s.alice.ID}))
			}
		})
		for n, nonsense := range []vocab.Doc{{"attachment": []any{5, nil, []any{[]any{}}, vocab.Doc{"type": "Note"}}}, {"tag": []any{5, vocab.Doc{"type": []any{"Mention", "Hashtag"}, "href": 5}}}, {"published": 7, "updated": vocab.Doc{}, "content": "x"}, {"summary": []any{}, "source": "x", "url": 5, "icon": true}} {
			odd := but(note, "id", s.id(s.mallory, fmt.Sprint("odd", n)))
			maps.Copy(odd, nonsense)
			s.brings(s.mallory, odd)
		}
		if got := s.alice.Ask(s, http.MethodGet, "/api/feed?limit=4", nil); got.Status != http.StatusOK {
			s.Errorf("the feed is answered %d %s", got.Status, got.Body)
		}
	}},
}
