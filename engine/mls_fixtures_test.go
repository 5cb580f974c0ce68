package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// draftPeer is an actor whose server knows only the SWICG draft, and its device.
type draftPeer struct {
	*guest
	mls *mlstest.Device
}

func newDraftPeer(t *testing.T, to *enginetest.User) *draftPeer {
	t.Helper()
	g := newDraftActor(t, "127.0.0.11", "/users/emma", &seat{user: to})
	follow(t, to, string(g.actor.ID))
	return &draftPeer{guest: g}
}

// newDevice replaces the device, and returns its key package's object.
func (p *draftPeer) newDevice() vocab.Doc {
	p.mls = mlstest.NewDevice(string(p.actor.ID), time.Now())
	return p.showContent(base64.StdEncoding.EncodeToString(p.mls.Package))
}

// shown returns the activities in a user's messages collection, the newest first, as they are
// written there.
func shown(t *testing.T, u *enginetest.User) (items []json.RawMessage) {
	t.Helper()
	var head struct{ First string }
	u.Ask(t, http.MethodGet, "/users/"+u.Name+"/messages", nil).Decode(t, &head)
	var page struct{ OrderedItems []json.RawMessage }
	u.Ask(t, http.MethodGet, strings.TrimPrefix(head.First, u.Home.URL), nil).Decode(t, &page)
	return page.OrderedItems
}

// F6. Emissary replaces a used key package by an Update of the same URL. The Update is accepted,
// is no message, and changes nothing here: the package is fetched again for each claim.
func TestF6AKeyPackageIsReplacedInPlace(t *testing.T) {
	t.Parallel()
	alice := newTalker(enginetest.Start(t), t, "alice")
	emma := newDraftPeer(t, alice.user)
	for n := range 2 {
		k := emma.newDevice()
		for _, kind := range []any{k["type"], []any{"KeyPackage"}} { // as one name and as a list
			k["type"], k["mlsSignature"], k["mlsSignerKeyId"] = kind, "AA==", string(emma.actor.ID)+"#main-key"
			id := string(emma.actor.ID)
			emma.deliver(t, vocab.Doc{"@context": vocab.MessageActivityContext(), "type": "Update", "id": id + "/activities/" + uuid.NewString(), "actor": id, "to": []any{string(vocab.Public)}, "object": k}.JSON())
		}
		if got := claimPackage(t, alice.user, string(emma.actor.ID)); got.Content != base64.StdEncoding.EncodeToString(emma.mls.Package) {
			t.Errorf("after the Update %d another package is claimed than the one that is shown", n)
		}
	}
	if all := shown(t, alice.user); len(all) != 0 {
		t.Errorf("key packages are shown as messages: %s", all)
	}
	if n := len(alice.user.Column(t, `SELECT kind FROM mls_inbox`)); n != 0 {
		t.Errorf("%d messages are kept", n)
	}
}

// F12. A Welcome with a topology is kept as it came, byte for byte, whatever the topology is. The
// user's program reads it in the messages collection. Here it changes nothing.
func TestF12AWelcomeWithATopologyIsKeptAsItCame(t *testing.T) {
	t.Parallel()
	alice := newTalker(enginetest.Start(t), t, "alice")
	emma := newDraftPeer(t, alice.user)
	emma.newDevice()
	id := string(emma.actor.ID)
	var sent []string
	for n, topology := range []string{`"FullMesh"`, `"mls:Star"`, `"https://example.org/ns#Ring"`, `{"type":"Tree","hub":"` + id + `"}`} {
		_, next := mlstest.NewGroup(emma.mls).Commit(emma.mls, mlstest.Change{Add: []*mlstest.Device{alice.device}})
		content := base64.StdEncoding.EncodeToString(next.Welcome(alice.device))
		activity := `{"@context" : ["https://www.w3.org/ns/activitystreams"],"type":"Create", "id":"` + id + "/activities/" + uuid.NewString() + `","actor":"` + id + `","instrument":"urn:uuid:client",` +
			`"to":["` + alice.user.ID + `"],"object":{"topology":` + topology + `,"type":["Object","Welcome"],"attributedTo":"` + id + `","to":["` + alice.user.ID + `"],"mlsSignature":"AA==","content":"` + content + `","mediaType":"message/mls","encoding":"base64","summary":"a <b> \u00e9"}}`
		sent = append([]string{activity}, sent...)
		emma.deliver(t, []byte(activity))
		all := shown(t, alice.user)
		if len(all) != n+1 {
			t.Fatalf("%d activities are shown, want %d: %s", len(all), n+1, all)
		}
		for i, is := range all {
			if string(is) != sent[i] {
				t.Errorf("the messages collection shows %s, want %s", is, sent[i])
			}
		}
	}
	var welcomes struct {
		Items []struct {
			Sender         string
			ConversationID *string
		}
	}
	alice.want(t, http.StatusOK, alice.user.Ask(t, http.MethodGet, "/api/welcomes", nil)).Decode(t, &welcomes)
	if len(welcomes.Items) != len(sent) {
		t.Errorf("%d Welcomes wait, want %d", len(welcomes.Items), len(sent))
	}
	for _, w := range welcomes.Items {
		if w.Sender != id || w.ConversationID != nil {
			t.Errorf("a Welcome is %+v", w)
		}
	}
	var mine struct{ Items []struct{ ID string } }
	if alice.user.Ask(t, http.MethodGet, "/api/conversations", nil).Decode(t, &mine); len(mine.Items) != 0 {
		t.Errorf("the Welcomes began %+v", mine.Items)
	}
}
