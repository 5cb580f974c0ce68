package audience_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/audience"
	. "github.com/lightweb/lightweb/engine/audience/audiencetest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// concerns has the Concern that the handler of each type declares.
var concerns = map[string]audience.Concern{
	"Create":   {Owner: true, PublicOnly: true, Post: true},
	"Update":   {Holders: true, Edit: true},
	"Like":     {Owner: true},
	"Announce": {Owner: true, Circle: true},
	"Move":     {Holders: true, FollowersOnly: true},
}

// arrived returns the Arrival of an activity by carol. The parameter members has its further
// members as JSON.
func arrived(t *testing.T, members string) audience.Arrival {
	t.Helper()
	a, err := vocab.ParseActivity([]byte(`{"id":"` + Carol + `/activities/1","actor":"` + Carol + `",` + members + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return audience.Arrival{Activity: a, Concern: concerns[a.Type], Sender: &vocab.Actor{ID: Carol, Followers: Circle}}
}

// The actor dave forwards activities of carol's. The constant us is the id of a local user. The
// ids of that user's notes begin with it.
const (
	dave = vocab.ID("https://dave.example/users/dave")
	us   = "https://us.example/users/alice"
)

var daves = &vocab.Actor{ID: dave, Followers: Others}

const (
	answer   = `"object":{"id":"` + Carol + `/notes/1","type":"Note","inReplyTo":"` + us + `/notes/1"}`
	like     = `"type":"Like","object":"` + us + `/notes/1"`
	create   = `"type":"Create",` + answer
	edit     = `"type":"Update","object":{"id":"` + Carol + `/notes/1","type":"Note"}`
	public   = `,"to":"` + Public + `"`
	followed = `,"to":"` + Circle + `"`
	forBob   = `,"to":"` + Bob + `"`
)

func TestReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, activity string
		forwarder      *vocab.Actor
		inbox          vocab.ID
		relayed        bool
		owners         string // named actors except Public, and owners of concerned objects
		followers      string
		acquainted     bool
	}{
		{name: "a public answer concerns the author of what it answers, and followers", activity: create + public,
			owners: Carol + "/notes/1 " + us + "/notes/1", followers: Carol},
		{name: "an answer for others concerns those it names alone", activity: create + forBob, owners: Bob},
		{name: "a post for followers reaches them at the shared inbox", activity: create + followed, owners: Circle, followers: Carol},
		{name: "and at one's own inbox that user alone", activity: create + followed, inbox: us, owners: Circle + " " + us},
		{name: "hidden names reach nobody but the user of the inbox", activity: create + `,"bcc":"` + Bob + `"`, inbox: us, owners: us},
		{name: "a Like concerns the owner of what it is about, addressed or not", activity: like, owners: us + "/notes/1"},
		{name: "what a relay sends concerns those it names alone", activity: create + public, relayed: true, followers: Carol},
		{name: "what is forwarded to the shared inbox reaches the forwarder's followers that it addresses",
			activity: create + `,"to":"` + Others + `"`, forwarder: daves, owners: Others, followers: string(dave)},
		{name: "but not from one's own inbox", activity: create + `,"to":"` + Others + `"`, forwarder: daves, inbox: us, owners: Others + " " + us},
		{name: "nor when it does not address them", activity: create + forBob, forwarder: daves, owners: Bob},
		{name: "a private post is not forwarded to others", activity: create + forBob, forwarder: daves, inbox: us, owners: Bob},
		{name: "a public post is", activity: create + public, forwarder: daves, inbox: us, owners: Carol + "/notes/1 " + us + "/notes/1 " + us},
		{name: "an edit concerns whoever holds it", activity: edit + public, acquainted: true},
		{name: "an edit of a letter is for the user of the inbox", activity: edit + forBob, inbox: us, owners: Bob + " " + us},
		{name: "a Move concerns followers alone", activity: `"type":"Move","object":"` + Carol + `","target":"` + Bob + `"`, followers: Carol},
		{name: "a Move, at one's own inbox too", activity: `"type":"Move","object":"` + Carol + `","target":"` + Bob + `"`, inbox: us, owners: us, followers: Carol},
		{name: "a boost for nobody is for followers", activity: `"type":"Announce","object":"` + us + `/notes/1"`, owners: us + "/notes/1", followers: Carol},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := arrived(t, c.activity)
			a.Forwarder, a.Inbox, a.Relayed = c.forwarder, c.inbox, c.relayed
			got := a.Reach()
			if owners := named(got.Owners); owners != c.owners {
				t.Errorf("owners of %q, want %q", owners, c.owners)
			}
			if followers := named(got.Followers); followers != c.followers {
				t.Errorf("followers of %q, want %q", followers, c.followers)
			}
			if got.Acquainted != c.acquainted || got.Sender != Carol {
				t.Errorf("acquainted with %q = %t, want %t", got.Sender, got.Acquainted, c.acquainted)
			}
		})
	}
}

// named joins ids to one text. It leaves out Public and empty ids.
func named(ids []vocab.ID) string {
	var b []string
	for _, id := range ids {
		if id != "" && id != vocab.Public {
			b = append(b, string(id))
		}
	}
	return strings.Join(b, " ")
}

func TestInPerson(t *testing.T) {
	t.Parallel()
	a := arrived(t, create+forBob)
	a.Inbox = us
	if got := a.InPerson(); !slices.Equal(got, []vocab.ID{Bob, us}) {
		t.Errorf("InPerson() = %q, want bob and the user of the inbox", got)
	}
	a.Forwarder = daves
	if got := a.InPerson(); !slices.Equal(got, []vocab.ID{Bob}) {
		t.Errorf("InPerson() of what dave forwards = %q, want bob alone", got)
	}
}

// An edit is for every actor that its activity or its object names. This holds for each property
// that can name an actor.
func TestWithJoinsEveryMember(t *testing.T) {
	t.Parallel()
	const erin = "https://erin.example/erin"
	for _, to := range []vocab.Addressing{{To: []vocab.ID{erin}}, {Cc: []vocab.ID{erin}}, {Audience: []vocab.ID{erin}},
		{Bto: []vocab.ID{erin}}, {Bcc: []vocab.ID{erin}}} {
		if a := of(t, Named(t, "bob")).With(to); !a.Names(erin) || !a.Names(Bob) {
			t.Errorf("with %+v it names not both", to)
		}
		if a := audience.Of(to, Carol, Circle).With(vocab.Addressing{To: []vocab.ID{Bob}}); !a.Names(erin) || !a.Names(Bob) {
			t.Errorf("with bob, %+v names not both", to)
		}
	}
}
