package handler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

// shows makes carol's document name a featured collection.
func shows(s *peertest.Scene) {
	s.Actor("p:/carol").Doc["featured"] = s.Long("p:/carol/featured")
	s.Actor("p:/carol").Show()
}

func serves(name, doc string) func(*peertest.Scene) {
	return func(s *peertest.Scene) { s.Serve(name, doc) }
}

const (
	addPin    = `{"id":"p:/adds/1","type":"Add","actor":"p:/carol","object":"p:/notes/1","target":"p:/carol/featured"}`
	removePin = `{"id":"p:/removes/1","type":"Remove","actor":"p:/carol","object":"p:/notes/1","target":"p:/carol/featured"}`
	pinned    = "pin p:/notes/1 of p:/carol p:/adds/1"
)

func sends(body string) func(*peertest.Scene) {
	return func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/inbox", body) }
}

func TestAdd(t *testing.T) {
	added := []string{
		"+ activity inbound Add p:/adds/1 p:/notes/1",
		"+ event add.received p:/adds/1 p:/notes/1 by contact p:/carol",
		"+ " + pinned}
	fetched := append([]string{"+ object p:/notes/1 Note hi"}, added...)
	daves := strings.ReplaceAll(addPin, `"actor":"p:/carol"`, `"actor":"p:/dave"`)
	to := func(target string) string { return strings.Replace(addPin, "p:/carol/featured", target, 1) }
	holds := func(s *peertest.Scene) {
		s.MustSend("p:/carol", "us:/inbox", createOf(note, toAll+`,"cc":"us:/alice"`))
	}
	play(t, []row{
		{name: "IN-12 to the featured collection, of a post that is here", given: both(shows, wrote), inbox: "us:/inbox", body: addPin, forged: daves, want: added},
		{name: "to the featured collection, of a post that is not here", given: both(shows, follows, serves("p:/notes/1", note)), inbox: "us:/inbox", body: addPin, want: fetched},
		{name: "what it embeds is not believed", given: both(shows, follows, serves("p:/notes/1", note)), inbox: "us:/inbox",
			body: strings.Replace(addPin, `"p:/notes/1"`, strings.Replace(note, "hi", "fake", 1), 1), want: fetched},
		{name: "by somebody that she does not follow, of a post that she holds", given: both(shows, holds), inbox: "us:/inbox", body: addPin,
			want: []string{added[0], strings.Replace(added[1], "contact", "stranger", 1), added[2]}},
		{name: "by somebody that she does not follow", given: both(shows, serves("p:/notes/1", note)), body: addPin},
		{name: "that addresses others only", given: both(shows, follows, serves("p:/notes/1", note)), inbox: "us:/inbox", body: strings.Replace(addPin, `"object"`, `"to":"p:/dave","object"`, 1)},
		{name: "of a post that nobody shows", given: both(shows, follows), inbox: "us:/inbox", body: addPin},
		{name: "of a post that is not public", given: both(shows, follows, serves("p:/notes/1", strings.Replace(note, toAll, toFans, 1))), inbox: "us:/inbox", body: addPin},
		{name: "of a post of another one's", given: both(shows, follows, serves("p:/notes/1", strings.Replace(note, "p:/carol", "p:/dave", 1))), inbox: "us:/inbox", body: addPin},
		{name: "of a deleted post", given: both(shows, wrote, sends(`{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`)), inbox: "us:/inbox", body: addPin},
		{name: "of a hashtag", given: both(shows, follows), inbox: "us:/inbox", body: strings.Replace(addPin, `"p:/notes/1"`, `{"type":"Hashtag","href":"p:/tags/go","name":"#go"}`, 1)},
		{name: "to another collection of hers is only kept", given: both(shows, wrote), inbox: "us:/inbox", body: to("p:/carol/collections/1"), want: added[:2]},
		{name: "to the featured collection of an actor who shows none is only kept", given: wrote, inbox: "us:/inbox", body: addPin, want: added[:2]},
		{name: "to another one's collection of the same server pins nothing", given: both(shows, wrote), inbox: "us:/inbox", body: to("p:/dave/featured"), want: added[:2]},
		{name: "IN-12 to another server's collection", given: both(shows, wrote), body: to("q:/eve/featured")},
		{name: "ORG-15 to alice's followers", given: both(shows, wrote), body: to("us:/alice/followers")},
		{name: "ORG-15 to alice's groups", given: both(shows, wrote), body: to("us:/alice/groups/close-friends")},
	})
}

func TestRemove(t *testing.T) {
	pins := both(shows, wrote, sends(addPin))
	daves := strings.ReplaceAll(removePin, `"actor":"p:/carol"`, `"actor":"p:/dave"`)
	to := func(target string) string { return strings.Replace(removePin, "p:/carol/featured", target, 1) }
	play(t, []row{
		{name: "IN-12 from the featured collection", given: pins, inbox: "us:/inbox", body: removePin, forged: daves, want: []string{
			"- " + pinned,
			"+ activity inbound Remove p:/removes/1 p:/notes/1",
			"+ event remove.received p:/removes/1 p:/notes/1 by contact p:/carol"}},
		{name: "of what is not pinned", given: both(shows, wrote), inbox: "us:/inbox", body: removePin},
		{name: "from another collection of hers is only kept", given: pins, inbox: "us:/inbox", body: to("p:/carol/collections/1"), want: []string{
			"+ activity inbound Remove p:/removes/1 p:/notes/1",
			"+ event remove.received p:/removes/1 p:/notes/1 by contact p:/carol"}},
		{name: "ORG-15 from alice's followers", given: pins, body: to("us:/alice/followers")},
		{name: "a deleted post is pinned no more", given: pins, inbox: "us:/inbox", body: `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`, want: []string{
			"- object p:/notes/1 Note hi",
			"- feed p:/creates/1 by p:/carol",
			"- " + pinned,
			"+ object p:/notes/1 Tombstone",
			"+ activity inbound Delete p:/deletes/1 p:/notes/1",
			"+ event delete.received p:/deletes/1 p:/notes/1 by contact p:/carol",
			"+ tombstones 1"}},
	})
}

func TestUndoOfAddAndRemove(t *testing.T) {
	undo := func(object string) string {
		return `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":` + object + `}`
	}
	forged := strings.ReplaceAll(undo(`"p:/adds/1"`), `"actor":"p:/carol"`, `"actor":"p:/dave"`)
	pins := both(shows, wrote, sends(addPin))
	unpinned := []string{
		"- activity inbound Add p:/adds/1 p:/notes/1",
		"- " + pinned,
		"+ activity inbound Undo p:/undos/1 p:/adds/1",
		"+ event undo.received p:/undos/1 p:/adds/1 by contact p:/carol"}
	play(t, []row{
		{name: "Add, by its id", given: pins, inbox: "us:/inbox", body: undo(`"p:/adds/1"`), forged: forged, want: unpinned},
		{name: "IN-22 Add, by id and type", given: pins, inbox: "us:/inbox", body: undo(`{"id":"p:/adds/1","type":"Add"}`), want: unpinned},
		{name: "Add, under an id that never came", given: pins, inbox: "us:/inbox", body: undo(strings.Replace(addPin, "adds/1", "adds/7", 1)), want: []string{
			unpinned[1],
			"+ activity inbound Undo p:/undos/1 p:/adds/7",
			"+ event undo.received p:/undos/1 p:/adds/7 by contact p:/carol"}},
		{name: "Add, to another collection, under an id that never came", given: pins, inbox: "us:/inbox",
			body: undo(strings.NewReplacer("adds/1", "adds/7", "carol/featured", "carol/collections/1").Replace(addPin))},
		{name: "Add that has not come", given: both(shows, wrote), inbox: "us:/inbox", body: undo(addPin)},
		{name: "Remove", given: both(pins, sends(removePin)), inbox: "us:/inbox", body: undo(`"p:/removes/1"`),
			forged: strings.Replace(forged, "adds", "removes", 1), want: []string{
				"- activity inbound Remove p:/removes/1 p:/notes/1",
				"+ activity inbound Undo p:/undos/1 p:/removes/1",
				"+ event undo.received p:/undos/1 p:/removes/1 by contact p:/carol",
				"+ pin p:/notes/1 of p:/carol p:/undos/1"}},
		{name: "Remove of what was deleted since", given: both(pins, sends(removePin), sends(`{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/1"}`)),
			inbox: "us:/inbox", body: undo(`"p:/removes/1"`), want: []string{
				"- activity inbound Remove p:/removes/1 p:/notes/1",
				"+ activity inbound Undo p:/undos/1 p:/removes/1",
				"+ event undo.received p:/undos/1 p:/removes/1 by contact p:/carol"}},
		{name: "Remove that has not come", given: pins, inbox: "us:/inbox", body: undo(removePin)},
	})
}

func TestTheNewestPinsOfAnActorAreKept(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	both(shows, follows)(s)
	for n := range 22 {
		id := fmt.Sprintf("notes/%d", n)
		s.Serve("p:/"+id, strings.Replace(note, "notes/1", id, 1))
		s.MustSend("p:/carol", "us:/inbox", strings.NewReplacer("notes/1", id, "adds/1", fmt.Sprintf("adds/%d", n)).Replace(addPin))
	}
	got := s.Column(t, s.Alice, `SELECT object_uri FROM pins ORDER BY pinned_at`)
	if len(got) != 20 || got[0] != s.Long("p:/notes/2") || got[19] != s.Long("p:/notes/21") {
		t.Errorf("%d pins: %q, want the last 20 in the order they came", len(got), got)
	}
}

func TestAddAndRemoveNeedObjectAndTarget(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	for name, tt := range map[string]struct{ fields, pointer string }{
		"no target":           {`"object":"p:/notes/1"`, "/target"},
		"a target without id": {`"object":"p:/notes/1","target":{"type":"Collection"}`, "/target"},
		"several targets":     {`"object":"p:/notes/1","target":["p:/carol/featured","p:/carol/collections/1"]`, "/target"},
		"everybody":           {`"object":"p:/notes/1","target":"as:Public"`, "/target"},
		"no object":           {`"target":"p:/carol/featured"`, "/object"},
		"several objects":     {`"object":["p:/notes/1","p:/notes/2"],"target":"p:/carol/featured"`, "/object"},
	} {
		for _, kind := range []string{"Add", "Remove"} {
			var err error
			expect(t, s, "DL-02 "+kind+" with "+name, nil, fault.Invalid, func() error {
				err = s.Send("p:/carol", "us:/alice/inbox", `{"id":"p:/adds/1","type":"`+kind+`","actor":"p:/carol",`+tt.fields+`}`)
				return err
			})
			if e := fault.Of(err); e == nil || e.Pointer != tt.pointer {
				t.Errorf("%s with %s: err = %v, want one that points to %s", kind, name, err, tt.pointer)
			}
		}
	}
}
