package handler_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

func wrote(s *peertest.Scene) {
	s.Follows("p:/carol")
	s.MustSend("p:/carol", "us:/inbox", createOf(strings.Replace(note, `"content"`, `"published":"2026-01-01T10:00:00Z","content"`, 1), toAll))
}

// forgotten has the changes in a scene prepared by wrote() when carol deletes herself.
var forgotten = []string{
	"- relationship following p:/carol accepted us:/alice/activities/f",
	"- object p:/notes/1 Note hi",
	"- activity inbound Accept p:/carol/accepts/f us:/alice/activities/f",
	"- activity inbound Create p:/creates/1 p:/notes/1",
	"- feed p:/creates/1 by p:/carol",
	"- actor p:/carol",
	"+ object p:/notes/1 Tombstone",
	"+ activity inbound Delete p:/deletes/1 p:/carol",
	"+ event delete.received p:/deletes/1 p:/carol by contact p:/carol",
	"+ event relationship.changed p:/deletes/1 p:/carol by contact p:/carol",
	"+ tombstones 1"}

func TestDelete(t *testing.T) {
	del := func(object string) string {
		return `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":` + object + `}`
	}
	deleted := []string{
		"- object p:/notes/1 Note hi",
		"- feed p:/creates/1 by p:/carol",
		"+ object p:/notes/1 Tombstone",
		"+ activity inbound Delete p:/deletes/1 p:/notes/1",
		"+ event delete.received p:/deletes/1 p:/notes/1 by contact p:/carol",
		"+ tombstones 1"}
	remembered := []string{"+ tombstones 1"}
	did := func(activity string) func(*peertest.Scene) {
		return both(both(follows, posted("as:Public")), func(s *peertest.Scene) {
			s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","content":"real",`+toAll+`}`)
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/notes/1","actor":"p:/carol",`+toAll+`,`+activity+`}`)
		})
	}
	const boost = `"type":"Announce","object":"q:/notes/1"`
	unboosted := []string{
		"- activity inbound Announce p:/notes/1 q:/notes/1",
		"- reaction p:/carol Announce q:/notes/1 p:/notes/1",
		"- feed p:/notes/1 by p:/carol",
		"+ activity inbound Delete p:/deletes/1 p:/notes/1",
		"+ event delete.received p:/deletes/1 p:/notes/1 by contact p:/carol"}
	daves := `{"id":"p:/deletes/2","type":"Delete","actor":"p:/dave","object":"p:/notes/1"}`
	play(t, []row{
		{name: "by id", given: wrote, inbox: "us:/inbox", body: del(`"p:/notes/1"`), forged: daves, want: deleted},
		{name: "of a Tombstone", given: wrote, inbox: "us:/inbox", body: del(`{"id":"p:/notes/1","type":"Tombstone"}`), forged: strings.Replace(daves, `"p:/notes/1"`, `{"id":"p:/notes/1","type":"Tombstone"}`, 1), want: deleted},
		{name: "of the whole object", given: wrote, inbox: "us:/inbox", body: del(note), want: deleted},
		{name: "of what is not here is remembered, and told nobody", given: follows, inbox: "us:/inbox", body: del(`"p:/notes/1"`), want: remembered},
		{name: "of a boost, as Wafrn takes one back", given: did(boost), inbox: "us:/inbox", body: del(`{"id":"p:/notes/1","type":"Tombstone"}`), forged: daves, want: unboosted},
		{name: "of a Like", given: did(`"type":"Like","object":"us:/alice/objects/1"`), inbox: "us:/inbox", body: del(`"p:/notes/1"`), forged: daves, want: []string{
			"- activity inbound Like p:/notes/1 us:/alice/objects/1",
			"- reaction p:/carol Like us:/alice/objects/1 p:/notes/1",
			unboosted[3], unboosted[4]}},
		{name: "of a Create", given: wrote, inbox: "us:/inbox", body: del(`"p:/creates/1"`), want: remembered},
		{name: "of an actor, by itself", given: wrote, inbox: "us:/inbox", body: del(`"p:/carol"`), want: forgotten},
		{name: "of an actor, embedded", given: wrote, inbox: "us:/inbox", body: del(`{"id":"p:/carol","type":"Person"}`), want: forgotten},
	})
}

func TestDeleteIsRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	s.Posts("us:/alice/objects/1", "as:Public")
	for name, object := range map[string]string{
		"ORG-08 another origin's object": `"p:/notes/1"`, "ORG-08 another origin's actor": `"p:/carol"`, "ORG-08 several": `["q:/notes/1","q:/notes/2"]`,
		"ORG-08 another actor of the same server": `{"id":"q:/eve","type":"Person"}`,
		"ORG-04 an object of ours":                `"us:/alice/objects/1"`, "without id": `{"type":"Tombstone"}`, "everybody": `"as:Public"`,
	} {
		expect(t, s, name, nil, fault.Invalid, func() error {
			return s.Send("q:/mallory", "us:/alice/inbox", `{"id":"q:/deletes/1","type":"Delete","actor":"q:/mallory","object":`+object+`}`)
		})
	}
}

func TestUpdate(t *testing.T) {
	update := func(object string) string {
		return `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":` + object + `}`
	}
	changed := func(content, updated string) string {
		return strings.Replace(note, `"content":"hi"`, `"content":"`+content+`","published":"2026-01-01T10:00:00Z"`+updated, 1)
	}
	newer := changed("new", `,"updated":"2026-01-01T11:00:00Z"`)
	updated := []string{
		"- object p:/notes/1 Note hi",
		"+ object p:/notes/1 Note new",
		"+ activity inbound Update p:/updates/1 p:/notes/1",
		"+ event update.received p:/updates/1 p:/notes/1 by contact p:/carol"}
	play(t, []row{
		{name: "of a post", given: wrote, inbox: "us:/inbox", body: update(newer), want: updated,
			forged: strings.ReplaceAll(`{"id":"p:/updates/2","type":"Update","actor":"p:/carol","object":`+newer+`}`, "p:/carol", "p:/dave")},
		{name: "of a post, without its time", given: wrote, inbox: "us:/inbox", body: update(strings.Replace(changed("new", ""), `"attributedTo":"p:/carol",`, "", 1)), want: updated},
		{name: "of a post, by id", given: both(wrote, func(s *peertest.Scene) { s.Serve("p:/notes/1", newer) }), inbox: "us:/inbox", body: update(`"p:/notes/1"`), want: updated},
		{name: "of a post, older than what is here", given: both(wrote, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/0","type":"Update","actor":"p:/carol","object":`+changed("newest", `,"updated":"2026-01-01T12:00:00Z"`)+`}`)
		}), inbox: "us:/inbox", body: update(newer)},
		{name: "of a post that is not here yet", given: follows, inbox: "us:/inbox", body: update(newer), want: []string{
			"+ object p:/notes/1 Note new",
			"+ activity inbound Update p:/updates/1 p:/notes/1",
			"+ event update.received p:/updates/1 p:/notes/1 by contact p:/carol"},
			forged: strings.ReplaceAll(`{"id":"p:/updates/2","type":"Update","actor":"p:/carol","object":`+newer+`}`, "p:/carol", "p:/dave")},
		{name: "of a post for somebody else that is not here", given: follows, inbox: "us:/inbox", body: update(strings.Replace(newer, toAll, `"to":"p:/dave"`, 1))},
		{name: "of a post of somebody that alice does not follow", body: update(newer)},
		{name: "of a deleted post", given: both(wrote, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`)
		}), inbox: "us:/inbox", body: update(newer)},
		{name: "of an actor that alice does not know", body: update(`{"id":"p:/carol","type":"Person"}`)},
	})
}

// IN-08: if the new version of an object lacks a property, the property is removed.
func TestAnUpdateReplacesTheWholeObject(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	follows(s)
	const object = `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol",` + toAll + `,`
	s.MustSend("p:/carol", "us:/inbox", createOf(object+`"summary":"regretted","sensitive":true,"content":"hi","published":"2026-01-01T10:00:00Z"}`, toAll))
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":`+object+`"content":"new","updated":"2026-01-01T11:00:00Z"}}`)
	if got := s.Column(t, s.Alice, `SELECT raw::text FROM objects`); len(got) != 1 || strings.Contains(got[0], "regretted") || strings.Contains(got[0], "sensitive") || !strings.Contains(got[0], "new") {
		t.Errorf("stored %q, want the new version and nothing else", got)
	}
}

// BookWyrm sends edits in a form of its own. The content of an edit lacks the book and the quoted
// text. So the engine fetches the post from its server, and stores that version.
func TestAnUpdateInBookWyrmsFormTakesWhatItsServerShows(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	update := func(n int, to string) {
		s.MustSend("p:/carol", "us:/inbox", fmt.Sprintf(`{"id":"p:/updates/%d","type":"Update","actor":"p:/carol","object":{"id":"p:/notes/1","type":"Quotation","attributedTo":"p:/carol",%s,
			"content":"bare","quote":"<p>Call me Ishmael</p>","inReplyToBook":"p:/books/1","published":"2026-01-01T10:00:00Z","updated":"2026-01-01T1%d:00:00Z"}}`, n, to, n))
	}
	holds := func(want string) {
		t.Helper()
		if got := s.Column(t, s.Alice, `SELECT raw ->> 'type' || ' ' || (raw ->> 'content') FROM objects`); !slices.Equal(got, []string{want}) {
			t.Errorf("alice holds %q, want %q", got, want)
		}
	}
	update(1, toAll) // the post's server does not serve the post
	holds("Note hi")
	s.Later(10 * time.Minute)
	s.Serve("p:/notes/1", strings.Replace(note, `"content":"hi"`, `"content":"Call me Ishmael (Moby-Dick)","published":"2026-01-01T10:00:00Z","updated":"2026-01-01T12:00:00Z"`, 1))
	update(2, toAll)
	holds("Note Call me Ishmael (Moby-Dick)")
	s.Later(10 * time.Minute)
	s.Serve("p:/notes/1", `{}`)
	update(3, `"to":"us:/alice"`) // BookWyrm does not serve private posts to other servers
	holds("Quotation bare")
}

// The engine makes the plain text of a received post from the post's content, even if the post has
// a source. So people and programs read the same text. The database keeps the source in the form
// in which it came.
func TestThePlainTextOfAReceivedPostIsThatOfItsContent(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	follows(s)
	const object = `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol",` + toAll + `,"published":"2026-01-01T10:00:00Z",`
	const source = `"source":{"content":"obey","mediaType":"text/plain"},`
	shows := func(want string) {
		t.Helper()
		if got := s.Column(t, s.Alice, `SELECT concat(readable ->> 'text', ', ', raw -> 'source' ->> 'content') FROM objects`); len(got) != 1 || got[0] != want+", obey" {
			t.Errorf("the texts are %q, want %q", got, want+", obey")
		}
	}
	s.MustSend("p:/carol", "us:/inbox", createOf(object+source+`"content":"<p>hi</p>"}`, toAll))
	shows("hi")
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":`+object+source+`"content":"<p>ho</p>","updated":"2026-01-01T11:00:00Z"}}`)
	shows("ho")
}

// A Create that arrives after its Update does not undo the Update. A server that retries
// deliveries may send them in this order.
func TestACreateThatComesAfterItsUpdate(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	follows(s)
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":`+
		strings.Replace(note, `"content":"hi"`, `"content":"new","published":"2026-01-01T10:00:00Z","updated":"2026-01-01T11:00:00Z"`, 1)+`}`)
	want := []string{received, inFeed, "+ event create.received p:/creates/1 p:/notes/1 by contact p:/carol"}
	expect(t, s, "the Create", want, accepted, func() error {
		return s.Send("p:/carol", "us:/inbox", createOf(strings.Replace(note, `"content"`, `"published":"2026-01-01T10:00:00Z","content"`, 1), toAll))
	})
}

func TestUpdateIsRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	for name, object := range map[string]string{
		"ORG-05 another origin's post":                note,
		"ORG-05 a post in another one's name":         `{"id":"q:/notes/1","type":"Note","attributedTo":"p:/carol"}`,
		"ORG-06 another actor":                        `{"id":"p:/carol","type":"Person"}`,
		"ORG-05b another actor of the same server":    `{"id":"q:/eve","type":"Person","attributedTo":"q:/mallory"}`,
		"ORG-30 a collection that is no conversation": `{"id":"q:/mallory/followers","type":"OrderedCollection","attributedTo":"q:/mallory"}`,
	} {
		expect(t, s, name, nil, fault.Invalid, func() error {
			return s.Send("q:/mallory", "us:/alice/inbox", `{"id":"q:/updates/1","type":"Update","actor":"q:/mallory","object":`+object+`}`)
		})
	}
}

// The Delete of an actor deletes the actor's posts, in whatever form a post names its author.
// PeerTube, for example, attributes a video to an account and a channel, both as embedded objects.
func TestDeleteOfAnActorFindsWhatItWroteInWhateverForm(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for _, author := range []string{`"p:/carol"`, `["p:/carol","p:/channel"]`, `{"id":"p:/carol","type":"Person"}`,
		`[{"id":"p:/carol","type":"Person"},{"id":"p:/channel","type":"Group"}]`} {
		s := stage.Scene(t)
		s.Follows("p:/carol")
		s.MustSend("p:/carol", "us:/inbox", createOf(`{"id":"p:/notes/1","type":"Video","attributedTo":`+author+`}`, toAll))
		s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`)
		if types := s.Column(t, s.Alice, `SELECT raw ->> 'type' FROM objects`); len(types) != 1 || types[0] != "Tombstone" {
			t.Errorf("attributed to %s: %q is left, want a Tombstone", author, types)
		}
	}
}

func TestUpdateOfAnActorTakesWhatItsServerShows(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{"embedded": `{"id":"p:/carol","type":"Person","name":"Not so"}`, "by id": `"p:/carol"`} {
		t.Run(name, func(t *testing.T) {
			s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
			s.Follows("p:/carol")
			s.Actor("p:/carol").Doc["name"] = "Caroline"
			s.Actor("p:/carol").Show()
			s.Later(2 * time.Minute) // the engine fetches an actor at most once a minute
			want := []string{
				"- actor p:/carol",
				"+ activity inbound Update p:/updates/1 p:/carol",
				"+ actor p:/carol Caroline",
				"+ event update.received p:/updates/1 p:/carol by contact p:/carol"}
			expect(t, s, name, want, accepted, func() error {
				return s.Send("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":`+object+`}`)
			})
		})
	}
}

// An actor whose Follow still waits is a stranger. Its copy is renewed, and no event tells of it.
func TestUpdateOfAStrangerIsSilent(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	approving(s)
	s.MustSend("p:/carol", "us:/alice/inbox", follow)
	s.Actor("p:/carol").Doc["name"] = "Caroline"
	s.Actor("p:/carol").Show()
	s.Later(2 * time.Minute) // the engine fetches an actor at most once a minute
	want := []string{
		"- actor p:/carol",
		"+ activity inbound Update p:/updates/1 p:/carol",
		"+ actor p:/carol Caroline"}
	expect(t, s, "of an actor whose Follow waits", want, accepted, func() error {
		return s.Send("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":"p:/carol"}`)
	})
}

// When an Update of a group's member arrives, the inbox changes in the user's copy of the member.
// Posts to the group go to the new inbox.
func TestUpdateOfAMemberOfAGroupTakesItsNewInbox(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	member("p:/carol")(s)
	s.Actor("p:/carol").Doc["inbox"] = s.Long("p:/carol/new-inbox")
	s.Actor("p:/carol").Show()
	s.Later(2 * time.Minute)
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":"p:/carol"}`)
	if got := s.Column(t, s.Alice, `SELECT inbox FROM actors WHERE uri = $1`, s.ID("p:/carol")); !slices.Equal(got, []string{s.Long("p:/carol/new-inbox")}) {
		t.Errorf("the inbox is %q, want the new one", got)
	}
}

func TestAnActorIsNotDeletedByAnother(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	del := `{"id":"p:/deletes/9","type":"Delete","actor":"p:/dave","object":"p:/carol"}`
	expect(t, s, "ORG-05b of the same server", nil, accepted, func() error { return s.Send("p:/dave", "us:/alice/inbox", del) })
	if err := s.Send("p:/carol", "us:/inbox", `{"id":"p:/listens/1","type":"Listen","actor":"p:/carol",`+toAll+`}`); err != nil {
		t.Errorf("carol is refused: %v", err)
	}
}

// Carol deletes herself. Her Delete removes everything of carol's. Activities by dave about the
// same objects stay.
func TestDeleteOfAnActorLeavesNothingOfIt(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	both(shows, wrote, posted("as:Public"), serves("p:/notes/1", note), sends(addPin), func(s *peertest.Scene) { s.Followed("p:/carol") })(s)
	for _, name := range []string{"p:/carol", "p:/dave"} {
		s.MustSend(name, "us:/alice/inbox", `{"id":"`+name+`/likes/1","type":"Like","actor":"`+name+`","object":"us:/alice/objects/1"}`)
	}
	s.MustSend("p:/dave", "us:/alice/inbox", `{"id":"p:/boosts/1","type":"Announce","actor":"p:/dave",`+toAll+`,"cc":"us:/alice","object":{"id":"p:/notes/1","type":"Note","content":"hi"}}`)
	s.Column(t, s.Alice, `WITH g AS (INSERT INTO groups (id, name, uri, activity_uri) VALUES (gen_random_uuid(), 'g', 'g', '') RETURNING id)
		INSERT INTO group_members (group_id, actor_uri, activity_uri) SELECT id, $1, '' FROM g RETURNING 1`, s.ID("p:/carol"))
	s.Column(t, s.Alice, `INSERT INTO unnamed_recipients VALUES ('us:/1', 'g', ARRAY[$1]) RETURNING object_uri`, s.ID("p:/carol"))
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`)

	var left []string
	for _, line := range s.Rows() {
		if strings.Contains(line, "p:/") && !strings.HasPrefix(line, "event ") && !strings.HasPrefix(line, "delivery ") {
			left = append(left, line)
		}
	}
	want := []string{
		"object p:/notes/1 Tombstone",
		"activity inbound Announce p:/boosts/1 p:/notes/1",
		"activity inbound Delete p:/deletes/1 p:/carol",
		"activity inbound Like p:/dave/likes/1 us:/alice/objects/1",
		"activity outbound Accept us:/alice/activities/* p:/carol/follows/f",
		"reaction p:/dave Like us:/alice/objects/1 p:/dave/likes/1"}
	if !slices.Equal(left, want) {
		t.Errorf("left:\n%s\nwant:\n%s", strings.Join(left, "\n"), strings.Join(want, "\n"))
	}
	if got := s.Column(t, s.Alice, `SELECT raw::text FROM activities WHERE raw::text LIKE '%"hi"%' UNION ALL SELECT actor_uri FROM group_members UNION ALL SELECT unnest(actors) FROM unnamed_recipients`); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}

// A Delete removes the words of its object. If the Delete embeds the object, they are removed from
// the Delete, too.
func TestADeleteKeepsNoWords(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":`+note+`}`)
	if got := s.Column(t, s.Alice, `SELECT type FROM activities WHERE raw::text LIKE '%"hi"%'`); len(got) > 0 {
		t.Errorf("%q hold what was deleted", got)
	}
}

// After an actor has deleted itself, its activities are refused until its server serves the actor
// again.
func TestAnActorThatDeletedItselfIsRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	const del = `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`
	expect(t, s, "the Delete", forgotten, accepted, func() error { return s.Send("p:/carol", "us:/inbox", del) })
	say := func() error {
		return s.Send("p:/carol", "us:/alice/inbox", `{"id":"p:/likes/1","type":"Listen","actor":"p:/carol","object":"p:/songs/1"}`)
	}
	expect(t, s, "a later activity", nil, fault.Unauthenticated, say)
	expect(t, s, "the Delete again", nil, accepted, func() error { return s.Send("p:/carol", "us:/inbox", del) })
	s.Actor("p:/carol").Gone()
	s.Later(25 * time.Hour)
	expect(t, s, "a later activity, and its server says so too", nil, fault.Unauthenticated, say)
	s.Actor("p:/carol").Show()
	expect(t, s, "a later activity, while that is remembered", nil, fault.Unauthenticated, say)
	s.Later(25 * time.Hour)
	expect(t, s, "a later activity, once its server shows it again", []string{
		"+ activity inbound Listen p:/likes/1 p:/songs/1",
		"+ event listen.received p:/likes/1 p:/songs/1 by stranger p:/carol"}, accepted, say)
}

func TestDeleteOfAnActorWhoIsGone(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	s.Actor("p:/carol").Gone()
	s.Later(25 * time.Hour) // after this time, the copy of carol is too old
	expect(t, s, "a Like", nil, fault.Unauthenticated, func() error {
		return s.Send("p:/carol", "us:/inbox", `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"p:/notes/1"}`)
	})
	ours := fmt.Sprintf("p:/carol#delete-%.8x", sha256.Sum256([]byte(s.Long("p:/deletes/1")))) // the engine stores its own Delete in place of carol's
	want := strings.Split(strings.ReplaceAll(strings.Join(forgotten, "\n"), "p:/deletes/1", ours), "\n")
	expect(t, s, "the Delete", want, accepted, func() error {
		return s.Send("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`)
	})
}

func TestHiddenRecipientsAreNotKept(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Follows("p:/carol")
	s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/creates/1","type":"Create","actor":"p:/carol",`+toAll+`,"bto":["us:/alice"],"bcc":"us:/alice","object":[
		{"id":"p:/notes/1","type":"Note","\u0062to":"us:/alice","attachment":[{"type":"Image","bcc":"us:/alice"}]}]}`)
	for _, raw := range s.Column(t, s.Alice, `SELECT raw::text FROM activities UNION ALL SELECT raw::text FROM objects UNION ALL SELECT payload::text FROM event_outbox`) {
		if strings.Contains(raw, `"bto"`) || strings.Contains(raw, `"bcc"`) {
			t.Errorf("stored: %s", raw)
		}
	}
	if rows := strings.Join(s.Rows(), "\n"); !strings.Contains(rows, "object p:/notes/1 Note") {
		t.Errorf("rows:\n%s\nwant the note", rows)
	}
}
