package engine_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// goToSocial returns a server with the habits of GoToSocial. The name of its instance actor is the
// name of the host. The id of the actor's key is a path that shows everybody a stub. Only signed
// requests get the whole actor.
func goToSocial(t *testing.T, address string) (*peertest.Peer, *peertest.Actor) {
	t.Helper()
	p := picky{Peer: peertest.New(t, address), only: signature.Cavage}
	host := vocab.ID(p.Origin).Host()
	path := "/users/" + host
	instance := p.Actor(path)
	instance.Keys.RSA.ID = p.Origin + path + "/main-key"
	key := instance.Doc["publicKey"].(vocab.Doc)
	key["id"] = instance.Keys.RSA.ID
	instance.Doc["preferredUsername"] = host
	delete(instance.Doc, "assertionMethod")
	doc := instance.Doc.JSON()
	p.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		if !p.holds(t, r, nil) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", vocab.ActivityJSON)
		_, _ = w.Write(doc) // the engine may have hung up
	})
	p.Serve(path+"/main-key", vocab.Doc{"@context": instance.Doc["@context"], "id": string(instance.ID), "type": "Person",
		"preferredUsername": host, "publicKey": key}.JSON())
	return p.Peer, instance
}

// GoToSocial sends a report from its instance actor to an inbox of the reported account. The
// property object holds the account and the posts. The property to is empty.
func TestAReportByGoToSocialReachesTheOperator(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	alice := i.CreateUser(t, "alice")
	_, note := alice.Post(t, map[string]any{"content": "buy now"})
	peer, instance := goToSocial(t, "127.0.0.2")
	flag, err := os.ReadFile("../testdata/activities/gotosocial/flag.json")
	if err != nil {
		t.Fatal(err)
	}
	for n, inbox := range []string{i.URL + "/inbox", alice.ID + "/inbox"} {
		id := peer.Origin + "/reports/01GP3AWY4CRDVRNZKW0TEAMB5" + string(rune('R'+n))
		body := strings.NewReplacer(
			"https://gts.example/reports/01GP3AWY4CRDVRNZKW0TEAMB5R", id,
			"https://gts.example/users/gts.example", string(instance.ID),
			"https://us.example/users/alice/statuses/01FVW7JHQFSFK166WWKR8CBA6M", note,
			"https://us.example/users/alice", alice.ID).Replace(string(flag))
		f := peertest.Forgery{URL: inbox, Body: body, Key: instance.Keys.RSA, Dialect: signature.Cavage,
			Params: `keyId="` + instance.Keys.RSA.ID + `",algorithm="hs2019"`}
		answer, err := http.DefaultClient.Do(f.Request(t))
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusAccepted {
			t.Errorf("the report to %s was answered %s", inbox, answer.Status)
		}
		r := newestReport(t, i)
		if r.Activity != id || r.Actor != string(instance.ID) || r.Content != "spam, and a lot of it" ||
			!slices.Equal(r.Users, []string{"alice"}) || !slices.Equal(r.Objects, []string{alice.ID, note}) {
			t.Errorf("the newest report is %+v, want the one that was sent to %s", r, inbox)
		}
	}
}

// report is an item of the output of `lightweb report list`.
type report struct {
	Activity, Actor, Content string
	Users, Objects           []string
}

func newestReport(t *testing.T, i *enginetest.Instance) report {
	t.Helper()
	var listed struct{ Reports []report }
	i.Run(t, "report", "list", "--json").Decode(t, &listed)
	if len(listed.Reports) == 0 {
		return report{}
	}
	return listed.Reports[0]
}
