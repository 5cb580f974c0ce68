package engine_test

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

var frs01 = attack{id: "FRS-01", sends: "two Updates of an actor within a minute that move its inbox, then a post to it; fifty Updates in a row",
	happens: "the post goes to the new inbox, and nothing to the old ones; three fetches a minute, and one more when something is sent to the actor", asks: 60, changes: true,
	play: func(s *siege) {
		g := s.guest(s.q, "moves")
		s.accepted(s.post(g, s.alice.ID+"/inbox", s.does(g, "Follow", s.alice.ID)))
		var inbox string
		move := func(to string) {
			s.Helper()
			inbox = string(g.ID) + to
			g.Doc["inbox"] = inbox
			g.Show()
			s.accepted(s.post(g, s.alice.ID+"/inbox", s.does(g, "Update", g.Doc)))
		}
		arrive := func() {
			s.Helper()
			create, _ := s.alice.Post(s, map[string]any{"content": "to where they are", "visibility": "public"})
			s.settle()
			var at []string
			for _, p := range s.q.Posted() {
				if path := s.q.Origin + p.URL.Path; strings.HasPrefix(path, string(g.ID)) && strings.Contains(string(p.Content), create) {
					at = append(at, path)
				}
			}
			if !slices.Equal(at, []string{inbox}) {
				s.Errorf("the post went to %q, want %s alone", at, inbox)
			}
		}
		move("/second")
		move("/third")
		arrive()
		before := asksFor(s.q, g)
		for n := range 50 {
			move(fmt.Sprint("/flood-", n))
		}
		if n := asksFor(s.q, g) - before; n > 4 {
			s.Errorf("50 Updates caused %d fetches, want 4 at most", n)
		}
		arrive()
	}}

// asksFor counts how often the engine asked a peer for an actor's document.
func asksFor(p *peertest.Peer, a *peertest.Actor) (n int) {
	for _, path := range p.Asked() {
		if p.Origin+path == string(a.ID) {
			n++
		}
	}
	return n
}

// rotate gives an actor a new key under the same id.
func (s *siege) rotate(a *peertest.Actor) {
	s.Helper()
	a.Keys.RSA.Private = s.q.Actor("/users/keys-of-" + strings.ToLower(s.row.id)).Keys.RSA.Private
	a.Doc["publicKey"] = with(a.Doc.Sub("publicKey"), "publicKeyPem", signature.MarshalPublicKeyPEM(a.Keys.RSA.Private.Public().(*rsa.PublicKey)))
	a.Show()
}

var frs02 = attack{id: "FRS-02", sends: "an Update that announces a new key, seconds after the actor was fetched, then requests by the old and by the new key; carol likes two notes meanwhile",
	happens: "the new key is taken at once, and the old one refused with 401; an Update that the new key signs is taken, too", asks: 20, changes: true,
	play: func(s *siege) {
		g := s.guest(s.q, "rotates")
		notes := []string{s.note, s.secret}
		for name, signs := range map[string]func(before, now signature.Key) signature.Key{
			"signed by the old key": func(before, _ signature.Key) signature.Key { return before },
			"signed by the new key": func(_, now signature.Key) signature.Key { return now },
		} {
			before := g.Keys.RSA
			s.rotate(g)
			update := s.does(g, "Update", g.Doc)
			s.accepted(s.forge(peertest.Forgery{Key: signs(before, g.Keys.RSA), Body: string(update.JSON())}))
			if got := s.post(g, s.alice.ID+"/inbox", s.does(g, "Like", s.note)); got.Status != http.StatusAccepted {
				s.Errorf("%s: the new key was answered %d, want 202", name, got.Status)
			}
			s.accepted(s.post(s.carol, s.alice.ID+"/inbox", s.does(s.carol, "Like", notes[0])))
			notes = notes[1:]
			s.unauthorized(s.forge(peertest.Forgery{Key: before, Body: string(s.does(g, "Dislike", s.note).JSON())}))
		}
		s.settle()
		if liked := s.alice.Column(s, `SELECT object_uri FROM reactions WHERE actor_uri = $1`, string(s.carol.ID)); len(liked) != 2 {
			s.Errorf("carol likes %q, want both notes", liked)
		}
	}}

var frs03 = attack{id: "FRS-03", sends: "the proven Delete of an account, again, after the account is back",
	happens: "401: the actor's server is asked, and shows the account; the proof counts once that says 410", asks: 20, changes: true,
	play: func(s *siege) {
		g := s.guest(s.q, "returns")
		s.brings(g, s.writes(g, "kept", everybody))
		old := s.proven(s.does(g, "Delete", string(g.ID)), g.Keys.Ed25519)
		s.untouched(func() {
			for _, inbox := range []string{s.alice.ID + "/inbox", s.home.URL + "/inbox"} {
				s.unauthorized(s.forge(peertest.Forgery{URL: inbox, Body: string(old.JSON())}))
			}
		})
		s.accepted(s.post(g, s.alice.ID+"/inbox", s.does(g, "Like", s.note)))
		g.Gone()
		s.accepted(s.forge(peertest.Forgery{URL: s.home.URL + "/inbox", Body: string(old.JSON())}))
		s.settle()
		if left := s.alice.Column(s, `SELECT uri FROM objects WHERE raw ->> 'attributedTo' = $1 UNION ALL SELECT activity_uri FROM reactions WHERE actor_uri = $1`, string(g.ID)); len(left) > 0 {
			s.Errorf("once its server says so, there is left of the account: %q", left)
		}
	}}

var frs04 = attack{id: "FRS-04", sends: "a Delete of an actor that is gone, with a body, tags and recipients of somebody else's making; beside it a note of carol's",
	happens: "202: what is stored is a Delete of our own making, and the actor's note is gone; none of the other words is kept anywhere or passed on", asks: 20, changes: true,
	play: func(s *siege) {
		g := s.guest(s.q, "ends")
		left := s.writes(g, "left", everybody)
		s.brings(g, left)
		g.Gone()
		if _, err := s.home.SQL(s, "lightweb").ExecContext(s.Context(), `DELETE FROM actors WHERE uri = $1`, string(g.ID)); err != nil {
			s.Fatal(err)
		}
		s.home.Stop(s)
		s.home.Start(s)
		words := vocab.Doc{"id": string(g.ID) + "/foreign-words", "type": "Delete", "actor": string(g.ID), "content": "foreign-words",
			"to": []any{everybody, s.alice.ID, s.alice.ID + "/followers"}, "inReplyTo": s.note,
			"object": vocab.Doc{"id": string(g.ID), "type": "Person", "name": "foreign-words", "inReplyTo": s.note},
			"tag":    []any{vocab.Doc{"type": "Mention", "href": s.alice.ID, "name": "foreign-words"}}}
		s.accepted(s.forge(peertest.Forgery{URL: s.home.URL + "/inbox", Key: signature.Key{ID: g.Keys.RSA.ID, Private: s.mallory.Keys.RSA.Private}, Body: string(words.JSON())}))
		honest := s.create(s.carol, "honest")
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", honest))
		s.settle()
		if kept := s.alice.Column(s, `SELECT 1 FROM objects WHERE uri = $1 AND deleted_at IS NULL`, left.Text("id")); len(kept) > 0 {
			s.Error("the note of the actor is still there")
		}
		if got := s.held(honest.Sub("object").Text("id")); got != "believe me" {
			s.Errorf("of carol's note alice has %q", got)
		}
		if got := s.alice.Column(s, `SELECT raw::text FROM activities WHERE actor_uri = $1`, string(g.ID)); len(got) != 1 || !strings.Contains(got[0], `"Delete"`) {
			s.Errorf("alice has %q of the actor, want one Delete", got)
		}
		for _, database := range []string{"lightweb", "lightweb_alice", "lightweb_bob"} {
			if tables := s.holding(database, "foreign-words"); len(tables) > 0 {
				s.Errorf("tables %q of %s hold words of somebody else's", tables, database)
			}
		}
		for _, p := range append(s.q.Posted(), s.p.Posted()...) {
			if strings.Contains(string(p.Content), "foreign-words") {
				s.Errorf("passed on to %s: %s", p.URL, p.Content)
			}
		}
	}}
