package engine_test

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Some servers accept only some signatures. They still federate with the engine: their Accepts
// arrive, posts reach them, and the engine accepts their activities.
func TestPeersThatArePicky(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	for n, tt := range []struct {
		name   string
		picky  picky
		writes signature.Dialect
	}{
		{"in secure mode: every request must be signed", picky{secure: true}, signature.RFC9421},
		{"with draft-cavage signatures alone", picky{only: signature.Cavage}, signature.Cavage},
		{"with RFC 9421 by RSA alone", picky{only: signature.RFC9421}, signature.RFC9421},
		{"in secure mode with draft-cavage alone", picky{only: signature.Cavage, secure: true}, signature.Cavage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			alice := i.CreateUser(t, "alice"+string(rune('a'+n)))
			p := tt.picky
			p.Peer = peertest.New(t, "127.0.0."+string(rune('2'+n)))
			p.dave = p.Actor("/users/dave")
			p.guard(t)
			send := func(activity vocab.Doc) {
				t.Helper()
				f := peertest.Forgery{URL: alice.ID + "/inbox", Body: string(activity.JSON()), Key: p.dave.Keys.RSA, Dialect: tt.writes}
				answer, err := http.DefaultClient.Do(f.Request(t))
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusAccepted {
					t.Fatalf("%s was answered %s", activity["type"], answer.Status)
				}
			}
			me := string(p.dave.ID)
			follow := alice.Do(t, "Follow", map[string]any{"actorUri": me}).ActivityID
			p.gets(t, "alice's Follow", follow)
			send(vocab.Doc{"id": me + "/accept", "type": "Accept", "actor": me, "object": follow})
			send(vocab.Doc{"id": me + "/follow", "type": "Follow", "actor": me, "object": alice.ID})
			p.gets(t, "the Accept of dave's Follow", me+"/follow")
			_, note := alice.Post(t, map[string]any{"content": "hello", "visibility": "followers"})
			p.gets(t, "alice's note", note)
			p.Serve("/notes/1", vocab.Doc{"id": p.Origin + "/notes/1", "type": "Note", "attributedTo": me, "content": "hello", "to": []any{string(vocab.Public)}}.JSON())
			send(vocab.Doc{"id": me + "/create", "type": "Create", "actor": me, "to": []any{string(vocab.Public)}, "object": vocab.Doc{
				"id": p.Origin + "/notes/1", "type": "Note", "attributedTo": me, "content": "hello", "to": []any{string(vocab.Public)}}})
			alice.Await(t, "main", "dave's note", func(it enginetest.Item) bool { return it.ActivityURI == me+"/create" })
		})
	}
}

// picky is a server with the actor dave. It accepts signatures of one dialect or of both. In
// secure mode it shows its actors to signed requests only.
type picky struct {
	*peertest.Peer
	only   signature.Dialect // the only dialect that it accepts; if zero, it accepts both
	secure bool
	dave   *peertest.Actor

	mu    *sync.Mutex
	taken [][]byte
}

// guard makes the peer check the signatures of requests.
func (p *picky) guard(t *testing.T) {
	p.mu = &sync.Mutex{}
	p.Handle("/users/dave/inbox", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !p.holds(t, r, body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken = append(p.taken, body)
		w.WriteHeader(http.StatusAccepted)
	})
	if !p.secure {
		return
	}
	doc := p.dave.Doc.JSON()
	p.Handle("/users/dave", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", vocab.ActivityJSON)
		if !p.holds(t, r, nil) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if _, err := w.Write(doc); err != nil {
			t.Log(err)
		}
	})
}

// holds reports whether a request is signed in a dialect that the server accepts, with the RSA key
// of an actor that lists the key.
func (p *picky) holds(t *testing.T, r *http.Request, body []byte) bool {
	claims, err := signature.Parse(r, body, signature.Options{Origin: p.Origin, Now: time.Now()})
	if err != nil || len(claims) != 1 || p.only != 0 && claims[0].Dialect != p.only {
		return false
	}
	signer, err := vocab.ParseActor(enginetest.Fetch(t, string(vocab.ID(claims[0].KeyID).Document())).Body)
	if err != nil {
		return false
	}
	for _, k := range signer.Keys {
		if string(k.ID) != claims[0].KeyID {
			continue
		}
		// this server verifies RSA signatures only
		key, err := signature.ParsePublicKeyPEM(k.PEM)
		return err == nil && claims[0].Verify(key) == nil
	}
	return false
}

// gets waits until the peer has accepted an activity that contains the given id.
func (p *picky) gets(t *testing.T, what, id string) {
	t.Helper()
	enginetest.Eventually(t, what+" arrives", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, body := range p.taken {
			if bytes.Contains(body, []byte(`"`+id+`"`)) {
				return true
			}
		}
		return false
	})
}
