package handler_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

const (
	blocks  = `{"id":"us:/alice/activities/b","type":"Block","actor":"us:/alice","object":"p:/carol"}`
	blocked = `{"id":"p:/blocks/1","type":"Block","actor":"p:/carol","object":"us:/alice"}`
)

// ended returns the body of the activity to carol that ends a Follow. The parameter kind is the
// activity's type.
func ended(kind, follow, actor, object string) string {
	return strings.NewReplacer(`"type":"Accept"`, `"type":"`+kind+`"`, `{"actor":"p:/carol","id":"p:/follows/1","object":"us:/alice"`,
		`{"actor":"`+actor+`","id":"`+follow+`","object":"`+object+`"`).Replace(acceptOf1)
}

// shutOut makes alice block carol, who has written to alice before.
func shutOut(s *peertest.Scene) { s.Act("p:/carol", blocks) }

func TestBlock(t *testing.T) {
	received := []string{
		"+ activity inbound Block p:/blocks/1 us:/alice",
		"+ event block.received p:/blocks/1 us:/alice by stranger p:/carol"}
	play(t, []row{
		{name: "of a stranger", body: blocked, want: append(received, "+ block inbound p:/carol p:/blocks/1")},
		{name: "through the shared inbox", inbox: "us:/inbox", body: blocked, want: append(received, "+ block inbound p:/carol p:/blocks/1")},
		{name: "ends the follows both ways", given: both(follows, func(s *peertest.Scene) { s.Followed("p:/carol") }), body: blocked,
			want: []string{
				"- relationship follower p:/carol accepted p:/carol/follows/f",
				"- relationship following p:/carol accepted us:/alice/activities/f",
				received[0], received[1],
				"+ event relationship.changed p:/blocks/1 us:/alice by stranger p:/carol",
				"+ block inbound p:/carol p:/blocks/1"}},
		{name: "of somebody else is nothing to alice", body: strings.Replace(blocked, "us:/alice", "us:/users/nobody", 1)},
		{name: "that bans alice from a place of the moderator's, as Lemmy sends it", given: follows, body: strings.Replace(blocked, `"object"`, `"target":"p:/c/main","object"`, 1)},
		{name: "of something of alice's is none", body: strings.Replace(blocked, "us:/alice", "us:/alice/objects/1", 1)},
		{name: "again, by another id", given: func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/alice/inbox", blocked) },
			body: strings.Replace(blocked, "blocks/1", "blocks/2", 1),
			want: []string{"- block inbound p:/carol p:/blocks/1", "+ block inbound p:/carol p:/blocks/2"}},
		{name: "again, when there is a follow to end", given: both(func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/alice/inbox", blocked) }, follows),
			body: strings.Replace(blocked, "blocks/1", "blocks/2", 1),
			want: []string{
				"- relationship following p:/carol accepted us:/alice/activities/f",
				"- block inbound p:/carol p:/blocks/1",
				"+ activity inbound Block p:/blocks/2 us:/alice",
				"+ event block.received p:/blocks/2 us:/alice by stranger p:/carol",
				"+ event relationship.changed p:/blocks/2 us:/alice by stranger p:/carol",
				"+ block inbound p:/carol p:/blocks/2"}},
		{name: "undone before it came", given: func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":`+blocked+`}`)
		}, body: blocked},
	})
}

func TestUndoOfBlock(t *testing.T) {
	undo := func(object string) string {
		return `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":` + object + `}`
	}
	send := func(body string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/inbox", body) }
	}
	const daves = `{"id":"p:/undos/2","type":"Undo","actor":"p:/dave","object":"p:/blocks/1"}`
	forgotten := []string{
		"- activity inbound Block p:/blocks/1 us:/alice",
		"- block inbound p:/carol p:/blocks/1",
		"+ activity inbound Undo p:/undos/1 p:/blocks/1",
		"+ event undo.received p:/undos/1 p:/blocks/1 by stranger p:/carol"}
	play(t, []row{
		{name: "by its id; the follow does not come back", given: both(func(s *peertest.Scene) { s.Followed("p:/carol") }, send(blocked)), inbox: "us:/inbox", body: undo(`"p:/blocks/1"`), forged: daves, want: forgotten},
		{name: "embedded", given: send(blocked), body: undo(blocked), want: forgotten},
		{name: "of an earlier one leaves the newer", given: both(send(blocked), send(strings.Replace(blocked, "blocks/1", "blocks/2", 1))), body: undo(`"p:/blocks/1"`), want: []string{
			"- activity inbound Block p:/blocks/1 us:/alice",
			"+ activity inbound Undo p:/undos/1 p:/blocks/1",
			"+ event undo.received p:/undos/1 p:/blocks/1 by stranger p:/carol"}},
		{name: "of a ban leaves the moderator's own block", given: send(blocked), body: undo(strings.Replace(strings.Replace(blocked, `"object"`, `"target":"p:/c/main","object"`, 1), "blocks/1", "bans/1", 1))},
		{name: "of none", body: undo(blocked)},
	})
}

// The activities of a blocked actor have no visible effect, except that the actor's Deletes and
// Blocks still count.
func TestBlockedActorsAreNotHeard(t *testing.T) {
	announce := `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol",` + toAll + `,"object":"q:/notes/1"}`
	evesNote := func(s *peertest.Scene) {
		s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve",`+toAll+`}`)
	}
	play(t, []row{
		{name: "Follow", given: shutOut, body: follow},
		{name: "Follow, through the shared inbox", given: shutOut, inbox: "us:/inbox", body: follow},
		{name: "Create that names her", given: shutOut, body: createOf(note, `"to":["as:Public","us:/alice"]`)},
		{name: "Like", given: both(posted("as:Public"), shutOut), body: `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`},
		{name: "Announce", given: both(evesNote, shutOut), body: announce},
		{name: "Block, which is remembered", given: shutOut, body: blocked, want: []string{"+ block inbound p:/carol p:/blocks/1"}},
		{name: "Delete, which buries what is here", given: both(follows, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", createOf(note, toAll))
			s.Act("p:/carol", `{"id":"us:/alice/activities/u","type":"Undo","actor":"us:/alice","object":`+aliceFollows+`}`)
		}, shutOut), inbox: "us:/inbox", body: `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`, want: []string{
			"- object p:/notes/1 Note hi", "+ object p:/notes/1 Tombstone", "+ tombstones 1"}},
		{name: "Announce by a friend of what eve, blocked by her, wrote", given: both(follows, evesNote, func(s *peertest.Scene) {
			s.Act("q:/eve", strings.ReplaceAll(blocks, "p:/carol", "q:/eve"))
		}), inbox: "us:/inbox", body: announce},
		{name: "Follow after she took it back", given: both(shutOut, func(s *peertest.Scene) {
			s.Act("p:/carol", `{"id":"us:/alice/activities/u","type":"Undo","actor":"us:/alice","object":`+blocks+`}`)
			approving(s)
		}), body: follow, want: []string{
			"+ relationship follower p:/carol pending p:/follows/1",
			"+ activity inbound Follow p:/follows/1 us:/alice",
			"+ event follow.received p:/follows/1 us:/alice by stranger p:/carol",
			"+ event relationship.changed p:/follows/1 us:/alice by stranger p:/carol"}},
	})
}
