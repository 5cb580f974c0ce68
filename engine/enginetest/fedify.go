package enginetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Fedify is a running peer made with Fedify. README.md in the folder fedify lists the calls.
type Fedify struct {
	Origin string
	seen   int // number of the last activity that Expect returned
}

// StartFedify starts a peer with the actor bob. The parameter firstKnock is the signature dialect
// that the peer tries first: rfc9421 or draft-cavage-http-signatures-12. The test is skipped where
// npm cannot install Fedify.
func StartFedify(t testing.TB, firstKnock string) *Fedify {
	t.Helper()
	c := exec.Command(Node(t), besideThis("fedify", "peer.mjs"))
	c.Env = append(os.Environ(), "PORT=0", "FIRST_KNOCK="+firstKnock, "EXIT_WITH_STDIN=1")
	_, stdout, log := startNode(t, c, "the Fedify peer")
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("start Fedify: %v\n%s", err, log)
	}
	f := &Fedify{}
	if err := json.Unmarshal([]byte(line), f); err != nil {
		t.Fatalf("start Fedify: %v: %q", err, line)
	}
	return f
}

// Actor returns the id of the peer's actor.
func (f *Fedify) Actor() string { return f.Origin + "/users/bob" }

// Call makes the peer do something, and returns its answer. It fails the test unless the status
// is 200.
func (f *Fedify) Call(t testing.TB, name string, args map[string]any) vocab.Doc {
	t.Helper()
	return document(t, name, f.Try(t, name, args))
}

// Try does the same as Call, for a call that may fail. It returns the answer with any status.
func (f *Fedify) Try(t testing.TB, name string, args map[string]any) Answer {
	t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return ask(t, http.MethodPost, f.Origin+"/control/"+name, body, http.Header{"Content-Type": {"application/json"}})
}

// Look returns one of the peer's records. The name of a record is log or requests.
func (f *Fedify) Look(t testing.TB, name string) vocab.Doc {
	t.Helper()
	return document(t, name, ask(t, http.MethodGet, f.Origin+"/control/"+name, nil, nil))
}

// Expect waits for the next activity that the peer receives. It fails the test if the activity has
// another type than the parameter kind. So it also fails if an activity is delivered twice.
func (f *Fedify) Expect(t testing.TB, kind string) Heard {
	t.Helper()
	a := ask(t, http.MethodGet, f.Origin+"/control/wait?after="+fmt.Sprint(f.seen)+"&type="+url.QueryEscape(kind), nil, nil)
	if a.Status != http.StatusOK {
		t.Fatalf("Fedify waited for a %s: %d %s", kind, a.Status, a.Body)
	}
	d := document(t, "wait", a)
	h := Heard{ID: d.Text("id"), Actor: d.Text("actor"), ObjectID: d.Text("objectId"), Activity: d.Sub("activity"),
		Signature: d.Text("signature"), Verified: d.Text("verified")}
	f.seen++
	if got := fmt.Sprint(d["seq"]); got != fmt.Sprint(f.seen) {
		t.Fatalf("Fedify received something else before the %s: %s", kind, ask(t, http.MethodGet, f.Origin+"/control/log", nil, nil).Body)
	}
	return h
}

// Heard is an activity that the peer received.
type Heard struct {
	ID, Actor, ObjectID string
	Activity            vocab.Doc
	Signature           string // the dialect of the request's signature
	Verified            string // the proof of authorship that Fedify accepted
}

func document(t testing.TB, call string, a Answer) vocab.Doc {
	t.Helper()
	if a.Status != http.StatusOK {
		t.Fatalf("Fedify answered %s with %d %s", call, a.Status, a.Body)
	}
	d, err := vocab.ParseDoc(a.Body)
	if err != nil {
		t.Fatalf("Fedify answered %s with %s: %v", call, a.Body, err)
	}
	return d
}
