package engine_test

import (
	"bytes"
	"crypto"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// carol's reply to a post addresses alice's followers. carol's server does not know them, so
// alice's server forwards the reply (ActivityPub §7.1.2). It forwards the reply once, in the same
// bytes (IN-06), under alice's signature, and with carol's proof. Another engine accepts that
// proof. It fetches only carol's actor.
func TestForwarding(t *testing.T) {
	t.Parallel()
	i, j := enginetest.StartTwo(t)
	alice, bob := i.CreateUser(t, "alice"), j.CreateUser(t, "bob")
	authors, fans := peertest.New(t, "127.0.0.2"), peertest.New(t, "127.0.0.3")
	carol, dave := authors.Actor("/carol"), fans.Actor("/dave")
	post(t, dave, alice.ID+"/inbox", `{"id":"`+string(dave.ID)+`/follows/1","type":"Follow","actor":"`+string(dave.ID)+`","object":"`+alice.ID+`"}`)
	arrives(t, fans, "an Accept", func(body []byte) bool { return bytes.Contains(body, []byte(`"Accept"`)) })
	bob.Do(t, "Follow", map[string]any{"actorUri": alice.ID})
	bob.Await(t, "notifications", "alice's Accept", func(i enginetest.Item) bool { return i.Type == "Accept" })
	create, note := alice.Post(t, map[string]any{"content": "what do you think?", "visibility": "public"})
	bob.Await(t, "main", "alice's post", func(i enginetest.Item) bool { return i.ActivityURI == create })

	reply := proven(t, carol, `{"id":"`+string(carol.ID)+`/create","type":"Create","actor":"`+string(carol.ID)+`","to":"as:Public","cc":["`+alice.ID+`","`+alice.ID+`/followers"],
		"object":{"id":"`+string(carol.ID)+`/notes/1","type":"Note","content":"I doubt it","inReplyTo":"`+note+`"}}`)
	reply = strings.NewReplacer(`"type":"Create"`, `"type" :  "Create"`, "doubt", `\u0064oubt`).Replace(reply) // gives the JSON a spelling that no server here uses
	for range 2 {
		post(t, carol, alice.ID+"/inbox", reply)
		post(t, carol, i.URL+"/inbox", reply)
	}
	unchanged := func(body []byte) bool { return string(body) == reply }
	p := arrives(t, fans, "the reply, unchanged", unchanged)
	signedBy(t, p, fans.Origin, alice)
	delivered(t, alice, string(carol.ID)+"/create", false)
	if n := len(slices.DeleteFunc(fans.Posted(), func(p peertest.Posted) bool { return !unchanged(p.Content) })); n != 1 {
		t.Errorf("the follower got the reply %d times, want once", n)
	}
	if n := len(authors.Posted()); n != 0 {
		t.Errorf("the author's server got %d posts, want none", n)
	}
	enginetest.Eventually(t, "the reply is in bob's thread", func() bool {
		got := bob.Column(t, `SELECT raw ->> 'content' FROM objects WHERE uri = $1`, string(carol.ID)+"/notes/1")
		return len(got) == 1 && got[0] == "I doubt it"
	})
	if asked := authors.Asked(); slices.ContainsFunc(asked, func(path string) bool { return path != "/carol" }) {
		t.Errorf("the author's server was asked for %q, want no more than the author", asked)
	}
}

// proven returns an activity with a proof by its actor.
func proven(t *testing.T, by *peertest.Actor, body string) string {
	t.Helper()
	d, err := vocab.ParseDoc([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if d, err = proof.Sign(d, vocab.ID(by.Keys.Ed25519.ID), by.Keys.Ed25519.Private, time.Now()); err != nil {
		t.Fatal(err)
	}
	return string(d.JSON())
}

// post sends an activity and fails the test unless the answer is 202.
func post(t *testing.T, from *peertest.Actor, inbox, body string) {
	t.Helper()
	got := enginetest.Send(t, from.Post(t, inbox, vocab.ActivityJSON, []byte(body), signature.RFC9421, time.Now()))
	if got.Status != http.StatusAccepted {
		t.Fatalf("post to %s is answered %d %s", inbox, got.Status, got.Body)
	}
}

// arrives waits until a peer has received a body for which is() returns true. It returns the
// request.
func arrives(t *testing.T, at *peertest.Peer, what string, is func([]byte) bool) (found peertest.Posted) {
	t.Helper()
	enginetest.Eventually(t, what+" arrives", func() bool {
		all := at.Posted()
		n := slices.IndexFunc(all, func(p peertest.Posted) bool { return is(p.Content) })
		if n >= 0 {
			found = all[n]
		}
		return n >= 0
	})
	return found
}

func signedBy(t *testing.T, p peertest.Posted, origin string, u *enginetest.User) {
	t.Helper()
	claims, err := signature.Parse(p.Request, p.Content, signature.Options{Origin: origin, Now: time.Now()})
	if err != nil || len(claims) != 1 || !strings.HasPrefix(claims[0].KeyID, u.ID+"#") {
		t.Fatalf("signed by %+v, %v; want a key of %s", claims, err, u.ID)
	}
	if err := claims[0].Verify(keyOf(t, u.ID)); err != nil {
		t.Error(err)
	}
}

// keyOf returns the RSA key in an actor's document.
func keyOf(t *testing.T, actor string) crypto.PublicKey {
	t.Helper()
	a, err := vocab.ParseActor(enginetest.Fetch(t, actor).Body)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParsePublicKeyPEM(a.Keys[0].PEM)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
