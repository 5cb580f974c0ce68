package handler_test

import (
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

// forgotten is what becomes of all that wrote made once carol is deleted.
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
	daves := `{"id":"p:/deletes/2","type":"Delete","actor":"p:/dave","object":"p:/notes/1"}`
	play(t, []row{
		{name: "by id", given: wrote, inbox: "us:/inbox", body: del(`"p:/notes/1"`), forged: daves, want: deleted},
		{name: "of a Tombstone", given: wrote, inbox: "us:/inbox", body: del(`{"id":"p:/notes/1","type":"Tombstone"}`), forged: strings.Replace(daves, `"p:/notes/1"`, `{"id":"p:/notes/1","type":"Tombstone"}`, 1), want: deleted},
		{name: "of the whole object", given: wrote, inbox: "us:/inbox", body: del(note), want: deleted},
		{name: "of what is not here is remembered, and told nobody", given: follows, inbox: "us:/inbox", body: del(`"p:/notes/1"`), want: remembered},
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
		"ORG-04 an object of ours": `"us:/alice/objects/1"`, "without id": `{"type":"Tombstone"}`, "everybody": `"as:Public"`,
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
		{name: "of a post that is not here", given: follows, inbox: "us:/inbox", body: update(newer)},
		{name: "of a deleted post", given: both(wrote, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`)
		}), inbox: "us:/inbox", body: update(newer)},
		{name: "of an actor whom alice does not know", body: update(`{"id":"p:/carol","type":"Person"}`)},
	})
}

func TestUpdateIsRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	for name, object := range map[string]string{
		"ORG-05 another origin's post":             note,
		"ORG-05 a post in another one's name":      `{"id":"q:/notes/1","type":"Note","attributedTo":"p:/carol"}`,
		"ORG-06 another actor":                     `{"id":"p:/carol","type":"Person"}`,
		"ORG-05b another actor of the same server": `{"id":"q:/eve","type":"Person","attributedTo":"q:/mallory"}`,
	} {
		expect(t, s, name, nil, fault.Invalid, func() error {
			return s.Send("q:/mallory", "us:/alice/inbox", `{"id":"q:/updates/1","type":"Update","actor":"q:/mallory","object":`+object+`}`)
		})
	}
}

// PeerTube attributes a video to an account and a channel, both written out.
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
			s.Later(2 * time.Minute) // an actor is not asked for more often than once a minute
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

func TestDeleteOfAnActorWhoIsGone(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	wrote(s)
	s.Actor("p:/carol").Gone()
	s.Later(25 * time.Hour) // what is known of carol is too old to be believed
	expect(t, s, "a Like", nil, fault.Unauthenticated, func() error {
		return s.Send("p:/carol", "us:/inbox", `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"p:/notes/1"}`)
	})
	expect(t, s, "the Delete", forgotten, accepted, func() error {
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
