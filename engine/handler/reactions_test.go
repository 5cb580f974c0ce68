package handler_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

func posted(to string) func(*peertest.Scene) {
	return func(s *peertest.Scene) { s.Posts("us:/alice/objects/1", to) }
}

// member adds an actor to a group of alice's. Alice's first post was addressed to the group.
func member(name string) func(*peertest.Scene) {
	return func(s *peertest.Scene) {
		a, err := s.Actors.Resolve(context.Background(), s.Actor(name).ID)
		if err == nil {
			err = s.Store.Instance.Acquaintances.Add(context.Background(), a.ID, []vocab.Username{s.Alice}, false)
		}
		if err != nil {
			panic(err)
		}
		g := user.Group{ID: uuid.New(), Name: "friends", URI: s.Local.Groups(s.Alice) + "/1"}
		err = s.Store.Write(context.Background(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
			return errors.Join(tx.Actors.Save(ctx, a, s.Now()), tx.Groups.Add(ctx, g, s.Now()), tx.Groups.AddMember(ctx, g.ID, a.ID, "", s.Now()),
				tx.Groups.AddUnnamed(ctx, s.ID("us:/alice/objects/1"), []user.Unnamed{{Group: g.URI, Actor: a.ID}}))
		})
		if err != nil {
			panic(err)
		}
	}
}

func TestLike(t *testing.T) {
	like := func(kind, object string) string {
		return `{"id":"p:/likes/1","type":"` + kind + `","actor":"p:/carol","object":"` + object + `"}`
	}
	liked := []string{
		"+ activity inbound Like p:/likes/1 us:/alice/objects/1",
		"+ reaction p:/carol Like us:/alice/objects/1 p:/likes/1",
		"+ event like.received p:/likes/1 us:/alice/objects/1 by stranger p:/carol"}
	play(t, []row{
		{name: "of a public post", given: posted("as:Public"), body: like("Like", "us:/alice/objects/1"), want: liked},
		{name: "of a public post, by the address of its page", given: posted("as:Public"), inbox: "us:/inbox", body: like("Like", "us:/@alice/1"), want: liked},
		{name: "of a public post, through the shared inbox", given: posted("as:Public"), inbox: "us:/inbox", body: like("Like", "us:/alice/objects/1"), want: liked},
		{name: "of a post for followers, by one", given: both(posted("us:/alice/followers"), func(s *peertest.Scene) { s.Followed("p:/carol") }), body: like("Like", "us:/alice/objects/1"), want: liked},
		{name: "ORG-26 of a post for followers, by somebody else", given: posted("us:/alice/followers"), body: like("Like", "us:/alice/objects/1")},
		{name: "ORG-26 of a post for followers, by one who only asked", given: both(posted("us:/alice/followers"), approving, func(s *peertest.Scene) { s.Followed("p:/carol") }), body: like("Like", "us:/alice/objects/1")},
		{name: "of a post that was written to carol", given: posted("p:/carol"), body: like("Like", "us:/alice/objects/1"), want: liked},
		{name: "ORG-26 of a post that was written to another one", given: posted("p:/dave"), body: like("Like", "us:/alice/objects/1")},
		{name: "of a post to a group of which carol is a member", given: both(posted("us:/alice"), member("p:/carol")), body: like("Like", "us:/alice/objects/1"), want: liked},
		{name: "ORG-26 of a post to a group of others", given: both(posted("us:/alice"), member("p:/dave")), body: like("Like", "us:/alice/objects/1")},
		{name: "of what does not exist", body: like("Like", "us:/alice/objects/1")},
		{name: "of a deleted post", given: both(posted("as:Public"), func(s *peertest.Scene) {
			s.Act("", `{"id":"us:/alice/activities/d","type":"Delete","actor":"us:/alice","object":{"id":"us:/alice/objects/1","type":"Tombstone"}}`)
		}), body: like("Like", "us:/alice/objects/1")},
		{name: "that takes the place of another", given: both(posted("as:Public"), func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/likes/0","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`)
		}), body: like("Like", "us:/alice/objects/1"), want: []string{
			"- reaction p:/carol Like us:/alice/objects/1 p:/likes/0", liked[0], liked[1], liked[2]}},
		{name: "Dislike of a note is none", given: posted("as:Public"), body: like("Dislike", "us:/alice/objects/1")},
		{name: "Dislike of a note in a community", given: func(s *peertest.Scene) {
			s.Act("", `{"id":"us:/alice/activities/c","type":"Create","actor":"us:/alice","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public","audience":"q:/c/bees"}}`)
		}, body: like("Dislike", "us:/alice/objects/1"), want: []string{
			"+ activity inbound Dislike p:/likes/1 us:/alice/objects/1",
			"+ reaction p:/carol Dislike us:/alice/objects/1 p:/likes/1",
			"+ event dislike.received p:/likes/1 us:/alice/objects/1 by stranger p:/carol"}},
		{name: "Dislike of an article", given: func(s *peertest.Scene) {
			s.Act("", `{"id":"us:/alice/activities/c","type":"Create","actor":"us:/alice","object":{"id":"us:/alice/objects/1","type":"Article","attributedTo":"us:/alice","to":"as:Public"}}`)
		}, body: like("Dislike", "us:/alice/objects/1"), want: []string{
			"+ activity inbound Dislike p:/likes/1 us:/alice/objects/1",
			"+ reaction p:/carol Dislike us:/alice/objects/1 p:/likes/1",
			"+ event dislike.received p:/likes/1 us:/alice/objects/1 by stranger p:/carol"}},
		{name: "IN-14 that was undone before it came", given: both(posted("as:Public"), func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}}`)
		}), body: like("Like", "us:/alice/objects/1")},
	})
}

func TestAnnounce(t *testing.T) {
	announce := func(object, addressing string) string {
		return `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol",` + addressing + `,"object":` + object + `}`
	}
	shows := func(name, doc string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.Serve(name, doc) }
	}
	const (
		theirs = `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","content":"real",` + toAll + `}`
		event  = "+ event announce.received p:/boosts/1 q:/notes/1 by contact p:/carol"
	)
	boosted := []string{
		"+ object q:/notes/1 Note real",
		"+ activity inbound Announce p:/boosts/1 q:/notes/1",
		"+ reaction p:/carol Announce q:/notes/1 p:/boosts/1",
		"+ feed p:/boosts/1 by p:/carol",
		event}
	mine := []string{
		"+ activity inbound Announce p:/boosts/1 us:/alice/objects/1",
		"+ reaction p:/carol Announce us:/alice/objects/1 p:/boosts/1",
		"+ feed p:/boosts/1 by p:/carol",
		"+ event announce.received p:/boosts/1 us:/alice/objects/1 by stranger p:/carol"}
	play(t, []row{
		{name: "of a post that its origin shows", given: both(follows, shows("q:/notes/1", theirs)), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll), want: boosted},
		{name: "ORG-16 what it embeds is not believed", given: both(follows, shows("q:/notes/1", theirs)), inbox: "us:/inbox",
			body: announce(`{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","content":"fake",`+toAll+`}`, toAll), want: boosted},
		{name: "of a post that names its author as actor too, as Pleroma writes it", given: both(follows, shows("q:/notes/1", strings.Replace(theirs, `"attributedTo"`, `"actor":"q:/eve","attributedTo"`, 1))), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll), want: boosted},
		{name: "of such a post that it embeds, as Mobilizon writes it", given: both(follows, shows("q:/notes/1", strings.Replace(theirs, `"attributedTo"`, `"actor":"q:/eve","attributedTo"`, 1))), inbox: "us:/inbox",
			body: announce(`{"id":"q:/notes/1","type":"Note","actor":"q:/eve","attributedTo":"q:/eve","content":"fake",`+toAll+`}`, toAll), want: boosted},
		{name: "of a post under another address", given: both(follows, shows("q:/@eve/1", theirs), shows("q:/notes/1", theirs)), inbox: "us:/inbox",
			body: announce(`"q:/@eve/1"`, toAll), want: []string{boosted[0], boosted[1], boosted[2], boosted[3], strings.ReplaceAll(event, "q:/notes/1", "q:/@eve/1")}},
		{name: "IN-23 that addresses nobody", given: both(follows, shows("q:/notes/1", theirs)), body: announce(`"q:/notes/1"`, `"x":1`), want: boosted},
		{name: "of a post that its origin does not show", given: follows, inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "of a post that is gone", given: both(follows, func(s *peertest.Scene) { s.Answer("q:/notes/1", http.StatusGone) }), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "IN-15 of a post that is not public", given: both(follows, shows("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","to":"q:/eve/followers"}`)), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "ORG-02 of a post in another server's name", given: both(follows, shows("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"p:/carol",`+toAll+`}`)), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "ORG-02 of a post in another server's name, too", given: both(follows, shows("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":["q:/eve","p:/carol"],`+toAll+`}`)), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "ORG-18 of a document with another server's id", given: both(follows, shows("q:/notes/1", `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol",`+toAll+`}`)), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "ORG-30 of an activity", given: both(follows, shows("q:/notes/1", `{"id":"q:/notes/1","type":"EmojiReact","actor":"q:/eve","attributedTo":"q:/eve",`+toAll+`}`)), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "ORG-30 of an activity of an unknown type", given: both(follows, shows("q:/notes/1", `{"id":"q:/notes/1","type":"Bite","actor":"q:/eve","object":"p:/carol","attributedTo":"q:/eve",`+toAll+`}`)), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "ORG-30 of an actor", given: both(follows, func(s *peertest.Scene) { s.Actor("q:/eve") }), inbox: "us:/inbox", body: announce(`"q:/eve"`, toAll)},
		{name: "by somebody she does not follow", given: shows("q:/notes/1", theirs), inbox: "us:/inbox", body: announce(`"q:/notes/1"`, toAll)},
		{name: "of her own post, to her", given: posted("as:Public"), inbox: "us:/inbox", body: announce(`"us:/alice/objects/1"`, toAll+`,"cc":["us:/alice"]`), want: mine},
		{name: "of her own post, named nowhere", given: posted("as:Public"), inbox: "us:/inbox", body: announce(`"us:/alice/objects/1"`, toAll), want: []string{mine[0], mine[1], mine[3]}},
		{name: "ORG-16 of her own post that is not public", given: posted("us:/alice/followers"), body: announce(`"us:/alice/objects/1"`, toAll)},
		{name: "of a post of hers that does not exist", body: announce(`"us:/alice/objects/1"`, toAll)},
		{name: "of a post of a user who does not exist", given: follows, inbox: "us:/inbox", body: announce(`"us:/users/nobody/objects/1"`, toAll)},
		{name: "of our instance actor", given: follows, inbox: "us:/inbox", body: announce(`"us:/actor"`, toAll)},
		{name: "of a deleted post", given: both(follows, func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`)
			s.Serve("p:/notes/1", note)
		}), inbox: "us:/inbox", body: announce(`"p:/notes/1"`, toAll)},
	})
}

func TestUndo(t *testing.T) {
	undo := func(object string) string {
		return `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":` + object + `}`
	}
	send := func(body string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/inbox", body) }
	}
	const (
		like     = `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`
		announce = `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol",` + toAll + `,"object":"p:/notes/1"}`
		daves    = `{"id":"p:/undos/2","type":"Undo","actor":"p:/dave","object":"p:/follows/1"}`
	)
	unfollowed := []string{
		"- relationship follower p:/carol accepted p:/follows/1",
		"- activity inbound Follow p:/follows/1 us:/alice",
		"+ activity inbound Undo p:/undos/1 p:/follows/1",
		"+ event undo.received p:/undos/1 p:/follows/1 by stranger p:/carol",
		"+ event relationship.changed p:/undos/1 p:/follows/1 by stranger p:/carol"}
	unliked := []string{
		"- activity inbound Like p:/likes/1 us:/alice/objects/1",
		"- reaction p:/carol Like us:/alice/objects/1 p:/likes/1",
		"+ activity inbound Undo p:/undos/1 p:/likes/1",
		"+ event undo.received p:/undos/1 p:/likes/1 by stranger p:/carol"}
	play(t, []row{
		{name: "of a Follow, by its id", given: send(follow), inbox: "us:/inbox", body: undo(`"p:/follows/1"`), forged: daves, want: unfollowed},
		{name: "of a Follow, embedded", given: send(follow), body: undo(followed), forged: strings.ReplaceAll(daves, `"p:/follows/1"`, `{"id":"p:/follows/1","type":"Follow"}`), want: unfollowed},
		{name: "IN-22 of a Follow, by id and type", given: send(follow), body: undo(`{"id":"p:/follows/1","type":"Follow"}`), want: unfollowed},
		{name: "IN-22 of a Follow, under an id of its own", given: send(follow), body: undo(`{"id":"p:/follows/77","type":"Follow"}`), want: []string{
			unfollowed[0],
			"+ activity inbound Undo p:/undos/1 p:/follows/77",
			"+ event undo.received p:/undos/1 p:/follows/77 by stranger p:/carol",
			"+ event relationship.changed p:/undos/1 p:/follows/77 by stranger p:/carol"}},
		{name: "of a Follow without id", given: send(follow), inbox: "us:/inbox", body: undo(`{"type":"Follow","actor":"p:/carol","object":"us:/alice"}`), want: []string{
			unfollowed[0],
			"+ activity inbound Undo p:/undos/1",
			"+ event undo.received p:/undos/1 by stranger p:/carol",
			"+ event relationship.changed p:/undos/1 by stranger p:/carol"}},
		{name: "of a Follow of somebody else", given: send(follow), inbox: "us:/inbox", body: undo(`{"id":"p:/follows/2","type":"Follow","actor":"p:/carol","object":"us:/users/bob"}`)},
		{name: "of a Follow, about nobody, to everybody's inbox", given: send(follow), inbox: "us:/inbox", body: undo(`{"id":"p:/follows/2","type":"Follow"}`)},
		{name: "of an older Follow that comes late", given: both(send(follow), send(`{"id":"p:/follows/2","type":"Follow","actor":"p:/carol","object":"us:/alice"}`)), body: undo(`"p:/follows/1"`), want: []string{
			unfollowed[1], unfollowed[2], unfollowed[3]}},
		{name: "of a Follow that never came", body: undo(followed)},
		{name: "of the Accept of alice's Follow", given: follows, body: undo(`"p:/carol/accepts/f"`), want: []string{
			"- relationship following p:/carol accepted us:/alice/activities/f",
			"- activity inbound Accept p:/carol/accepts/f us:/alice/activities/f",
			"+ activity inbound Undo p:/undos/1 p:/carol/accepts/f",
			"+ event undo.received p:/undos/1 p:/carol/accepts/f by contact p:/carol",
			"+ event relationship.changed p:/undos/1 p:/carol/accepts/f by contact p:/carol"}},
		{name: "of the Accept of another one's Follow", given: follows, inbox: "us:/inbox", body: undo(`{"id":"p:/accepts/2","type":"Accept","actor":"p:/carol","object":"us:/users/bob/activities/1"}`)},
		{name: "of a Like, by its id", given: both(posted("as:Public"), send(like)), inbox: "us:/inbox", body: undo(`"p:/likes/1"`), forged: strings.ReplaceAll(daves, "p:/follows/1", "p:/likes/1"), want: unliked},
		{name: "of a Like, embedded", given: both(posted("as:Public"), send(like)), inbox: "us:/inbox", body: undo(like), want: unliked},
		{name: "of a Like under an id that never came", given: both(posted("as:Public"), send(like)), body: undo(strings.ReplaceAll(like, "likes/1", "likes/77")), want: []string{
			unliked[0], unliked[1],
			"+ activity inbound Undo p:/undos/1 p:/likes/77",
			"+ event undo.received p:/undos/1 p:/likes/77 by stranger p:/carol"}},
		{name: "of an older Like that comes late", given: both(posted("as:Public"), send(like), send(strings.ReplaceAll(like, "likes/1", "likes/2"))), body: undo(like), want: []string{
			unliked[0], unliked[2], unliked[3]}},
		{name: "of an Announce", given: both(follows, func(s *peertest.Scene) { s.Serve("p:/notes/1", note) }, send(announce)), inbox: "us:/inbox", body: undo(announce), want: []string{
			"- activity inbound Announce p:/boosts/1 p:/notes/1",
			"- reaction p:/carol Announce p:/notes/1 p:/boosts/1",
			"- feed p:/boosts/1 by p:/carol",
			"+ activity inbound Undo p:/undos/1 p:/boosts/1",
			"+ event undo.received p:/undos/1 p:/boosts/1 by contact p:/carol"}},
		{name: "of what never came, and is unknown", given: follows, body: undo(`"p:/likes/1"`)},
		{name: "of a Reject is nothing: only an Accept ends it", given: both(asked, send(`{"id":"p:/answers/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`)), body: undo(`"p:/answers/1"`)},
		{name: "of a report about several things is nothing", given: follows, body: undo(`{"id":"p:/flags/1","type":"Flag","object":["us:/alice","us:/alice/objects/1"]}`)},
		{name: "of what does nothing", given: both(follows, send(`{"id":"p:/listens/1","type":"Listen","actor":"p:/carol",`+toAll+`,"object":"p:/songs/1"}`)), body: undo(`"p:/listens/1"`), want: []string{
			"- activity inbound Listen p:/listens/1 p:/songs/1",
			"+ activity inbound Undo p:/undos/1 p:/listens/1",
			"+ event undo.received p:/undos/1 p:/listens/1 by contact p:/carol"}},
		{name: "IN-22 of a Like, by id and type", given: both(posted("as:Public"), send(like)), inbox: "us:/inbox", body: undo(`{"id":"p:/likes/1","type":"Like"}`),
			forged: strings.ReplaceAll(daves, `"p:/follows/1"`, `{"id":"p:/likes/1","type":"Like"}`), want: unliked},
		{name: "IN-22 of a Like, by type alone", given: both(posted("as:Public"), send(like)), body: undo(`{"type":"Like"}`)},
		{name: "ORG-11 of a Create is nothing", given: both(follows, send(createOf(note, toAll))), body: undo(`"p:/creates/1"`)},
		{name: "ORG-11 of a Create that has not come is nothing", given: follows, body: undo(createOf(note, toAll))},
	})
}

// For every type of activity that has an effect, this test says whether an Undo takes the effect
// back.
func TestUndoKnowsEveryType(t *testing.T) {
	t.Parallel()
	takenBack := map[string]bool{"Follow": true, "Accept": true, "Like": true, "Dislike": true, "EmojiReact": true, "Announce": true, "Add": true, "Remove": true, "Block": true, "Offer": true,
		"Create": false, "Update": false, "Delete": false, "Undo": false, "Reject": false, "Move": false, "Flag": false, "QuoteRequest": false}
	types := handler.New(nil, nil)
	for _, kind := range types.Types(func(h handler.Handler) bool { return h.Received != nil }) {
		back, known := takenBack[kind]
		if !known {
			t.Errorf("nobody said what Undo of %s does", kind)
		}
		if h := types.OfType(kind); h.Final == back || back != (h.Undone != nil) {
			t.Errorf("%s is final = %t, want %t", kind, h.Final, !back)
		}
	}
}

func TestAnUndoneFollowStaysUndone(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	if made := s.Changes(func() {
		s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":`+follow+`}`)
		s.MustSend("p:/carol", "us:/alice/inbox", follow)
	}); len(made) > 0 {
		t.Errorf("a Follow after its Undo made %q, want nothing", slices.Clip(made))
	}
}

// An Undo whose embedded activity is malformed is refused. If it were accepted, a sender could put
// activities into a user's database that have to be set aside.
func TestAnUndoOfSeveralThingsIsRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	for _, object := range []string{`["us:/alice","p:/dave"]`, `7`} {
		body := `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"type":"Follow","actor":"p:/carol","object":` + object + `}}`
		expect(t, s, "Follow of "+object, nil, fault.Invalid, func() error { return s.Send("p:/carol", "us:/alice/inbox", body) })
	}
}
