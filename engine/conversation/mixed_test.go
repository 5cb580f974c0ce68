package conversation_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

const samID = "https://swicg.example/users/sam"

// A member who knows the SWICG draft alone gets its Welcome and what the host's user says in a
// plain Create of that user, and nothing else; Lightweb members get the host's Add.
func TestAMemberWhoKnowsTheDraftAloneGetsCreatesOfTheHost(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.takeOwed()
	sam := mlstest.NewDevice(samID, time.Now())
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{sam}})
	joined := s.takeOwed()
	wantOwed(t, "who joins", joined, bobID+" Add PublicMessage", samID+" Create Welcome")
	words := s.group.Message()
	if _, err := s.send(s.alice, words); err != nil {
		t.Fatal(err)
	}
	said := s.takeOwed()
	wantOwed(t, "a message of the host", said, bobID+" Add PrivateMessage", samID+" Create PrivateMessage")
	uri := string(s.view().URI)
	for _, o := range append(joined, said...) {
		if o.Activity.Text("type") != "Create" {
			continue
		}
		d, id := o.object(), vocab.ID(o.Activity.Text("id"))
		if o.Activity.Text("actor") != aliceID || !id.SameOrigin(aliceID) || o.Activity.Text("context") != uri || d.Text("conversation") != uri || d.Text("context") != uri ||
			d.Text("attributedTo") != aliceID || d.Text("encoding") != "base64" || d.Text("mediaType") != "message/mls" || o.Activity["lwMetadata"] != nil {
			t.Errorf("the Create is %s", o.Activity.JSON())
		}
	}
	for _, o := range said {
		if o.Activity.Text("type") != "Create" {
			continue
		}
		told := o.object().Sub("lwMetadata")
		if epoch, _ := told.Count("mlsEpoch"); told.Text("kind") != "ChatMessage" || told.Text("mlsGroupId") != s.group.ID || epoch != 2 || told["receipt"] != nil {
			t.Errorf("the message says %s", told.JSON())
		}
		if o.object().Text("content") != base64.StdEncoding.EncodeToString(words) {
			t.Error("the message is another one")
		}
	}
	if _, err := s.send(s.alice, words); err != nil {
		t.Fatal(err)
	}
	wantOwed(t, "the same again", s.takeOwed())
}

// An actor that is added by somebody else than the host would get no Welcome.
func TestOnlyTheHostAddsWhoKnowsTheDraftAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	r, _ := s.request(s.bob, s.group, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice(samID, time.Now())}})
	_, err := s.registry.Commit(t.Context(), s.at, r)
	s.wantRefused("a commit of bob", err, fault.Unprocessable, "foreign_member")
}
