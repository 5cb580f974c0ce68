package conversation_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

const samID = "https://swicg.example/users/sam"

// Sam's server knows only the SWICG draft. Sam gets his Welcome and the messages of the host's
// user as plain Creates by that user, and nothing else. Members on Lightweb servers get Adds by
// the host.
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

// A commit by the host's user reaches sam as a Create by that user, after the user's earlier
// messages. This holds even if the commit removes sam. Other members' messages reach sam from
// their own servers, not from the host.
func TestCommitsOfTheHostFollowItsMessagesAsCreates(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	sam := s.withSam()
	s.takeOwed()
	if _, err := s.send(s.alice, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.send(s.bob, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	r, next := s.sealed(s.alice, mlstest.Change{Remove: []*mlstest.Device{sam}})
	s.accept(r, next)
	if _, err := s.send(s.alice, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	var creates []owed
	for _, o := range s.takeOwed() {
		if o.Targets[0] == samID {
			creates = append(creates, o)
		}
	}
	wantOwed(t, "what sam gets", creates, samID+" Create PrivateMessage", samID+" Create PrivateMessage")
	last := creates[len(creates)-1]
	if told := last.object().Sub("lwMetadata"); last.object().Text("content") != base64.StdEncoding.EncodeToString(r.Message) || told["kind"] != nil || !strings.Contains(string(last.Activity.JSON()), samID) {
		t.Errorf("the last one is %s", last.Activity.JSON())
	}
}

// After a reset, members whose servers know only the SWICG draft are not in the MLS group, and
// could not read its messages. They get no messages until they are added again.
func TestAfterAResetForeignMembersGetNothingUntilTheyAreAddedAnew(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.withSam()
	s.reset()
	s.takeOwed()
	if _, err := s.send(s.alice, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	wantOwed(t, "a message", s.takeOwed(), bobID+" Add PrivateMessage")
}

// Bob adds sam, whose server knows only the SWICG draft. Bob's server sends the Welcome to sam as
// a Create by bob. So the host sends no Welcome to sam.
func TestTheWelcomesOfOtherMembersAreTheirs(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.takeOwed()
	r, next := s.request(s.bob, s.group, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice(samID, time.Now())}})
	s.accept(r, next)
	all := s.takeOwed()
	wantOwed(t, "an addition by bob", all, bobID+" Add PublicMessage")
	told := all[0].Activity.Sub("lwMetadata")
	if members := told.Subs("members"); told["mixed"] != true || len(members) != 3 || members[2]["lightweb"] != false || members[1]["lightweb"] != nil {
		t.Errorf("the host tells bob's server %s", told.JSON())
	}
}
