package engine_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sig explain says why a request is refused. The log says the same, under the request id that the
// peer received.
func sigExplain(t *testing.T, i *enginetest.Instance) {
	bob := peertest.New(t, "127.0.0.1").Actor("/bob")
	body := []byte(`{"id":"` + string(bob.ID) + `/likes/1","type":"Like","actor":"` + string(bob.ID) + `","object":"` + i.URL + `/users/alice/objects/1"}`)
	capture := func(name string, body []byte, r *http.Request) string {
		var text bytes.Buffer
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if err := r.Write(&text); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inbox := i.URL + "/users/alice/inbox"
	good := capture("good", body, bob.Post(t, inbox, vocab.ActivityJSON, body, signature.RFC9421, time.Now()))
	other := bytes.Replace(body, []byte("Like"), []byte("Lick"), 1)
	bad := capture("bad", other, bob.Post(t, inbox, vocab.ActivityJSON, body, signature.Cavage, time.Now()))
	runAll(t, i, []command{
		{"sig explain", 64, "needs FILE"},
		{"sig explain " + good + " --at yesterday", 64, "not a time"},
		{"sig explain " + good + " --origin example.org", 64, "not an origin"},
		{"sig explain " + good + " --offline --key " + good, 64, "exclude each other"},
		{"sig explain " + good + " --key " + good, 65, "PEM"},
		{"sig explain /dev/null", 65, "request line"},
		{"sig explain " + good + "none", 66, "there is no file"},
	})
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{good + " --offline", 69, `"code":"offline"`},
		{good, 0, `"verified":true`},
		{good + " --offline", 0, `"owner":"` + string(bob.ID) + `"`},
		{good + " --origin https://other.example", 76, `"code":"wrong_host"`},
		{bad, 76, `"code":"digest_mismatch"`},
	} {
		got := i.Run(t, strings.Fields("sig explain --json "+c.line)...)
		if got.Code != c.code || !strings.Contains(got.Stdout, c.says) {
			t.Errorf("sig explain %s ended with %d and wrote %s, want %d and %s", c.line, got.Code, got.Stdout, c.code, c.says)
		}
	}

	// The engine accepts an activity that another actor forwards if the activity has a proof,
	// or if the server of its own actor shows it.
	them := peertest.New(t, "127.0.0.1")
	carol := them.Actor("/carol")
	passed := func(name, id string, prover *peertest.Actor) string {
		d := vocab.Doc{"@context": vocab.ActivityContext(), "id": id, "actor": string(carol.ID), "type": "Like", "object": i.URL + "/users/alice/objects/1"}
		if prover != nil {
			var err error
			if d, err = proof.Sign(d, vocab.ID(prover.Keys.Ed25519.ID), prover.Keys.Ed25519.Private, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if name == "shown" {
			them.Serve("/carol/likes/1", d.JSON())
		}
		return capture(name, d.JSON(), bob.Post(t, inbox, vocab.ActivityJSON, d.JSON(), signature.RFC9421, time.Now()))
	}
	shown := passed("shown", string(carol.ID)+"/likes/1", nil)
	for _, c := range []struct {
		path string
		code int
		says string
	}{
		{shown, 0, `"check":"origin","result":"passed"`},
		{shown + " --offline", 76, `"code":"foreign_key"`},
		{passed("unknown", string(carol.ID)+"/likes/2", nil), 76, `"check":"origin","result":"failed","code":"foreign_key"`},
		{passed("elsewhere", string(bob.ID)+"/likes/3", nil), 76, "its id is not on its actor's server"},
		{passed("proven", string(carol.ID)+"/likes/4", carol), 0, `"check":"proof","result":"passed"`},
		{passed("forged", string(carol.ID)+"/likes/5", bob), 76, `"code":"foreign_proof"`},
	} {
		got := i.Run(t, strings.Fields("sig explain --json "+c.path)...)
		if got.Code != c.code || !strings.Contains(got.Stdout, c.says) {
			t.Errorf("sig explain %s ended with %d and wrote %s, want %d and %s", c.path, got.Code, got.Stdout, c.code, c.says)
		}
	}

	refused := bob.Post(t, inbox, vocab.ActivityJSON, body, signature.Cavage, time.Now())
	refused.Body = io.NopCloser(bytes.NewReader(other))
	answer := enginetest.Send(t, refused)
	id := answer.Header.Get("X-Request-Id")
	var line string
	enginetest.Eventually(t, "the log has told of the refusal", func() bool {
		for l := range strings.Lines(i.Log()) {
			if strings.Contains(l, id) && strings.Contains(l, "signature refused") {
				line = l
			}
		}
		return line != ""
	})
	for _, want := range []string{`"level":"INFO"`, `"code":"digest_mismatch"`, "cavage signature by", bob.Keys.RSA.ID, "digest: "} {
		if answer.Status != http.StatusUnauthorized || id == "" || !strings.Contains(line, want) {
			t.Errorf("request %q was answered %d, and the log says %q of it, want 401 and %s", id, answer.Status, line, want)
		}
	}
}
