package server_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// An actor's document names two collections: its key packages, which everybody may read, and its
// messages, which only the actor may read.
func TestTheActorNamesItsKeyPackagesAndItsMessages(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	him := string(k.local.ID(k.bob))
	doc := k.get(him).want(t, 200).doc(t)
	for name, want := range map[string]string{"keyPackages": him + "/keyPackages", "messages": him + "/messages"} {
		if got, is := doc[name].(string); !is || got != want {
			t.Errorf("%s is %v, want %s", name, doc[name], want)
		}
		isTerm := func(part any) bool {
			terms, _ := part.(vocab.Doc)
			return terms.Sub(name).Text("@id") == "https://purl.archive.org/socialweb/mls#"+name
		}
		if !slices.ContainsFunc(doc["@context"].([]any), isTerm) {
			t.Errorf("the context %v has no term %s of the draft", doc["@context"], name)
		}
	}
	said := doc.Sub("lw:mls")
	if version, _ := said.Count("deliveryVersion"); version != 1 || said.Text("custody") != "client" || len(said["ciphersuites"].([]any)) != 3 {
		t.Errorf("lw:mls is %s", said.JSON())
	}
	k.get(doc.Text("keyPackages")).want(t, 200)

	message := k.group.Message()
	k.arrive(string(k.carol.ID), "PrivateMessage", message, vocab.Doc{})
	for name, how := range map[string][]asking{"nobody": nil, "another server": {k.signedWith(k.carolKey, "")}, "another user": {bearerToken(k.tokens[k.device.Identity])}} {
		for _, at := range []string{"", "?page=true", "?before=100"} {
			r := k.get(doc.Text("messages")+at, how...)
			nobodys := k.get(strings.Replace(doc.Text("messages"), "/bob/", "/nobody/", 1)+at, how...)
			if r.StatusCode/100 != 4 || r.StatusCode != nobodys.StatusCode || strings.Contains(string(r.body), base64.StdEncoding.EncodeToString(message)) {
				t.Errorf("%s is answered %d %s; of a user that is not there, %d", name, r.StatusCode, r.body, nobodys.StatusCode)
			}
		}
	}
	if r := k.get(doc.Text("messages")+"?page=true", bearerToken(k.tokens[him])).want(t, 200); !strings.Contains(string(r.body), base64.StdEncoding.EncodeToString(message)) {
		t.Errorf("bob is shown %s", r.body)
	}
}
