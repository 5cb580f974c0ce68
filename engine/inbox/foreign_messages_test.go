package inbox_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// foreign sends a message as servers do that support MLS without hosts: as a Create by its sender.
// The parameter more holds further properties of the object, as names and values in turn.
func (h *hosted) foreign(inbox, kind string, content []byte, more ...any) (id string, err error) {
	h.Helper()
	by, me := h.Long(h.by), h.Long("us:/alice")
	id = by + "/objects/" + uuid.NewString()
	object := vocab.Doc{"type": kind, "id": id, "attributedTo": by, "to": []any{me}, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(content)}
	activity := vocab.Doc{"@context": vocab.ActivityContext(), "type": "Create", "id": by + "/activities/" + uuid.NewString(), "actor": by, "to": []any{me}, "object": object}
	for i := 0; i < len(more); i += 2 {
		if name, in := strings.CutPrefix(more[i].(string), "activity."); in {
			activity[name] = more[i+1]
		} else {
			object[more[i].(string)] = more[i+1]
		}
	}
	return id, h.Pass(h.by, inbox, activity.JSON())
}

func (h *hosted) sends(inbox, kind string, content []byte, more ...any) string {
	h.Helper()
	id, err := h.foreign(inbox, kind, content, more...)
	if err != nil {
		h.Fatalf("%s: %v", kind, err)
	}
	return id
}

// grow adds alice's device to the host's group.
func (h *hosted) grow() {
	_, h.group = h.group.Commit(h.host, mlstest.Change{Add: []*mlstest.Device{h.device}})
}

// Fixture F4. A Welcome has no context. Its conversation is found when the first message names the
// Welcome as its context.
func TestF4AWelcomeWithoutAContext(t *testing.T) {
	h := newHosted(t)
	h.grow()
	first := h.sends("us:/inbox", "Welcome", h.group.Welcome(h.device), "context", nil)
	other := mlstest.NewDevice(h.Long("us:/alice"), h.Now())
	h.publish(other)
	h.sends("us:/inbox", "Welcome", h.group.Welcome(other), "context", nil) // this makes two Welcomes possible
	h.sends("us:/inbox", "PrivateMessage", h.group.Message(), "context", first)
	h.want("conversations", `SELECT concat_ws(' ', group_id, host_uri = '') FROM conversations`, h.group.ID+" t")
	h.want("its Welcome", `SELECT object_uri FROM mls_welcomes WHERE conversation_id IS NOT NULL`, first)
	h.want("messages", keptMessages, "welcome 0 dave f f", "welcome 0 dave f f", "application 1 1 dave f f")
}

// Fixtures F3, F5, F6 and F12. The engine keeps messages in these forms and messages that it
// cannot read. It answers 202 to all of them.
func TestFixturesOfOtherServersAreKept(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.RequestStrangers)
	h.grow()
	h.sends(mine, "Welcome", h.group.Welcome(h.device), "topology", "mls:Star")
	h.sends(mine, "GroupInfo", h.group.PrivateCommit())
	h.sends(mine, "", nil, "type", []any{"PrivateMessage", "Failure"}, "object", h.Long("us:/alice/objects/1"), "content", nil, "encoding", nil)
	h.sends(mine, "PrivateMessage", []byte("\x00\x01\x00\x04 of tomorrow"), "generator", vocab.Doc{"id": "urn:uuid:1", "type": "Application"})
	h.want("messages", keptMessages, "welcome 0 dave f f", "commit 1 1 dave f f", "opaque 0 dave f f", "opaque 0 dave f f")
	if _, err := h.foreign(mine, "PrivateMessage", h.group.Message(), "activity.to", []any{string(vocab.Public)}); fault.Of(err) == nil || fault.Of(err).Code != "public_message" {
		t.Errorf("a message for everybody: %v", err)
	}
	update := vocab.Doc{"@context": vocab.ActivityContext(), "type": "Update", "id": h.Long("p:/dave/activities/9"), "actor": h.Long("p:/dave"), "to": []any{string(vocab.Public)},
		"object": vocab.Doc{"type": "KeyPackage", "id": h.Long("p:/dave/keyPackages/1"), "attributedTo": h.Long("p:/dave"), "mediaType": "message/mls", "encoding": "base64",
			"content": base64.StdEncoding.EncodeToString(h.host.Package)}}
	if err := h.Pass("p:/dave", mine, update.JSON()); err != nil {
		t.Errorf("a key package that is replaced: %v", err)
	}
}

// A key package is no chat message, and its Create is told as a Create.
func TestAKeyPackageIsToldAsNoMessage(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.AllowStrangers)
	create := vocab.Doc{"@context": vocab.ActivityContext(), "type": "Create", "id": h.Long("p:/dave/activities/9"), "actor": h.Long("p:/dave"), "to": []any{h.Long("us:/alice")},
		"object": vocab.Doc{"type": "KeyPackage", "id": h.Long("p:/dave/keyPackages/1"), "attributedTo": h.Long("p:/dave"), "to": []any{h.Long("us:/alice")}, "mediaType": "message/mls",
			"encoding": "base64", "content": base64.StdEncoding.EncodeToString(h.host.Package)}}
	if err := h.Pass("p:/dave", mine, create.JSON()); err != nil {
		t.Fatal(err)
	}
	h.want("events", toldOf, "create.received")
}

// Fixture F8. A hidden recipient gets the message. The stored copy does not name the hidden
// recipients.
func TestF8HiddenRecipients(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.AllowStrangers)
	h.sends(mine, "PrivateMessage", h.group.Message(), "activity.to", nil, "activity.bcc", []any{h.Long("us:/alice")}, "to", nil)
	h.want("messages", keptMessages, "application 0 dave f f")
	if kept := h.rows(`SELECT activity FROM mls_inbox`); strings.Contains(kept[0], `"bcc"`) {
		t.Errorf("the hidden recipients are kept: %s", kept)
	}
}

// Fixture F9, and rows 7 and 26 of docs/conversations.md, Cases and their tests. A message of the
// next epoch arrives before the commit that begins this epoch. Both arrive through two inboxes.
// The engine keeps each of them once.
func TestRow7AndF9MessagesByTwoInboxesInAnyOrder(t *testing.T) {
	h := newHosted(t)
	h.grow()
	h.sends("us:/inbox", "Welcome", h.group.Welcome(h.device))
	h.sends("us:/inbox", "mls:PrivateMessage", h.group.Message())
	commit := h.group.PrivateCommit()
	next := *h.group
	next.Epoch++
	words := next.Message()
	h.sends(mine, "", words, "type", []any{"Object", "PrivateMessage"})
	for _, inbox := range []string{mine, "us:/inbox"} {
		h.sends(inbox, "PrivateMessage", commit)
		h.sends(inbox, "PrivateMessage", words)
	}
	// a commit of the same epoch; the devices choose between the two commits
	second := h.group.PrivateCommit()
	h.sends(mine, "PrivateMessage", second)
	h.want("messages", keptMessages, "welcome 0 dave f f", "application 1 1 dave f f", "application 2 2 dave f f", "commit 3 1 dave f f", "commit 4 1 dave f f")
	h.want("state", stateOfJoined, "active 0 2 4 4 f")
}

// Row 8. The host's word of a message comes before that of the commit that begins its epoch. The
// member's server keeps the message as one that no device can read yet, and goes on from it once
// the commit has come. Each of the two is kept once.
func TestRow8AMessageComesBeforeItsCommit(t *testing.T) {
	metrics := prometheus.NewRegistry()
	h := newHostedIn(t, peertest.NewStage(t, peertest.NewInbound(t, func(d *inbox.Deps) { d.Metrics = metrics })).Scene(t)).begun(func(s *said) { s.labels["mlsEpoch"] = 1 })
	commit, next := h.group.Commit(h.host, mlstest.Change{})
	words := next.Message()
	h.seq++
	first := h.entry("PublicMessage", commit, 1)
	hash := sha256.Sum256(commit)
	h.hash = base64.StdEncoding.EncodeToString(hash[:])
	h.seq++
	second := h.entry("PrivateMessage", words, 2)
	for range 2 {
		if err := h.Pass(h.by, "us:/inbox", second); err != nil {
			t.Fatal(err)
		}
	}
	h.want("early", keptMessages, "welcome 1 dave f f", "application 3 2 dave t f")
	h.want("a gap", stateOfJoined, "active 0 2 3 1 f")
	if n := counted(t, metrics, "lightweb_mls_undecryptable_total", conversation.FutureEpoch); n != 1 {
		t.Errorf("%v messages are counted as of a future epoch, want 1", n)
	}
	for range 2 {
		if err := h.Pass(h.by, mine, first); err != nil {
			t.Fatal(err)
		}
	}
	h.want("in order", keptMessages, "welcome 1 dave f f", "application 3 2 dave t f", "commit 2 1 dave t f")
	h.want("no gap", stateOfJoined, "active 0 2 3 3 f")
	if n := counted(t, metrics, "lightweb_mls_undecryptable_total", ""); n != 1 {
		t.Errorf("%v messages are counted as undecryptable, want the early one", n)
	}
}

// F13. A forged label or context puts no message into a conversation of another group.
func TestF13ForgedLabelsAndContexts(t *testing.T) {
	h := newHosted(t).begun()
	if err := h.join(""); err != nil {
		t.Fatal(err)
	}
	strangers(t, h.Scene, registry.AllowStrangers)
	intruder := mlstest.NewGroup(h.host)
	h.sends(mine, "Welcome", intruder.Message(), "context", h.uri, "conversation", h.uri, "lwMetadata", vocab.Doc{"mlsGroupId": h.group.ID, "mlsEpoch": 1})
	h.want("of the conversation", `SELECT kind FROM mls_inbox WHERE conversation_id IS NOT NULL ORDER BY arrival`, "welcome")
	h.want("elsewhere", `SELECT kind || ' ' || group_id FROM mls_inbox WHERE conversation_id IS NULL`, "application "+intruder.ID)
	h.Actor("q:/mallory")
	by := h.Long("q:/mallory")
	forged := vocab.Doc{"@context": vocab.ActivityContext(), "type": "Create", "id": by + "/1", "actor": by, "to": []any{h.Long("us:/alice")}, "object": vocab.Doc{"type": "PrivateMessage", "id": by + "/2",
		"attributedTo": by, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(h.group.Message())}}
	if err := h.Pass("q:/mallory", mine, forged.JSON()); err != nil {
		t.Fatal(err)
	}
	h.want("of somebody who is not in it", `SELECT count(*)::text FROM mls_inbox WHERE sender_uri LIKE '%mallory'`, "0")
}

// In a mixed group a member's own server may deliver a message before the host does. The message
// then gets its place in the order from the host, and is not stored twice.
func TestAMessageThatComesBeforeItsHostsWord(t *testing.T) {
	h := newHosted(t).begun()
	words := h.group.Message()
	h.sends(mine, "PrivateMessage", words)
	h.want("early", keptMessages, "welcome 0 dave f f", "application 1 dave f f")
	if err := h.put("PrivateMessage", words, 1); err != nil {
		t.Fatal(err)
	}
	h.want("in order", keptMessages, "welcome 0 dave f f", "application 2 1 dave t f")
	h.want("told once", `SELECT type FROM event_outbox WHERE type = 'chatmessage.received'`, "chatmessage.received")
}

// A member's own server may also deliver messages before the host's Welcome arrives. The devices
// see each message once, in the host's order.
func TestAMessageThatComesBeforeItsHostsWelcome(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.AllowStrangers)
	_, next := h.group.Commit(h.host, mlstest.Change{Add: []*mlstest.Device{h.device}})
	words, commit := next.Message(), next.PrivateCommit()
	h.sends(mine, "PrivateMessage", words)
	h.sends(mine, "PrivateMessage", commit)
	h.want("early", keptMessages, "application 1 dave f f", "commit 1 dave f f")
	if h = h.begun(); h.group.ID != next.ID {
		t.Fatalf("the group is %s, want %s", h.group.ID, next.ID)
	}
	for _, content := range [][]byte{words, commit} {
		if err := h.put("PrivateMessage", content, 1); err != nil {
			t.Fatal(err)
		}
	}
	h.want("in order", keptMessages, "welcome 0 dave f f", "application 2 1 dave t f", "commit 3 1 dave t f")
	h.want("told", `SELECT type FROM event_outbox WHERE type = 'chatmessage.received'`, "chatmessage.received")
	h.want("none waits", `SELECT count(*)::text FROM mls_inbox WHERE conversation_id IS NULL`, "0")
}

// A stranger's message arrives before an invitation that does not include the stranger. The
// message does not become part of the invitation's conversation.
func TestAnInvitationTakesNoEarlyMessageOfAStranger(t *testing.T) {
	squatter, honest := rivals(t)
	honest.grow()
	words := honest.group.Message()
	honest.sends(mine, "PrivateMessage", words)
	squatter.begun()
	if err := squatter.put("PrivateMessage", words, 1, func(s *said) { s.object["attributedTo"] = honest.Long(honest.by) }); err != nil {
		t.Fatal(err)
	}
	honest.sends(mine, "Welcome", honest.group.Welcome(honest.device))
	honest.sends(mine, "PrivateMessage", honest.group.Message())
	honest.want("conversations", claims, "mallory welcome application", "- application application")
}

// The header of a message decides what the message is. A metric counts labels that contradict the
// header.
func TestLabelsThatContradictTheHeaderAreCounted(t *testing.T) {
	metrics := prometheus.NewRegistry()
	h := newHostedIn(t, peertest.NewStage(t, peertest.NewInbound(t, func(d *inbox.Deps) { d.Metrics = metrics })).Scene(t)).begun()
	strangers(t, h.Scene, registry.AllowStrangers)
	words := h.group.Message
	h.sends(mine, "PrivateMessage", words())
	h.sends(mine, "PrivateMessage", words(), "lwMetadata", vocab.Doc{"mlsGroupId": h.group.ID, "mlsEpoch": h.group.Epoch})
	h.sends(mine, "PrivateMessage", []byte{0, 1, 9}) // this content has no readable header
	want := func(what string, n float64) {
		t.Helper()
		if got := counted(t, metrics, "lightweb_mls_mislabeled_total", ""); got != n {
			t.Errorf("after %s %v labels were counted, want %v", what, got, n)
		}
	}
	want("true labels", 0)
	h.sends(mine, "GroupInfo", h.group.PrivateCommit()) // Emissary labels commits as GroupInfo
	want("another type", 1)
	h.sends(mine, "PrivateMessage", words(), "lwMetadata", vocab.Doc{"mlsGroupId": "urn:uuid:" + uuid.NewString()})
	want("another group", 2)
	h.sends(mine, "PrivateMessage", words(), "lwMetadata", vocab.Doc{"mlsEpoch": h.group.Epoch + 1})
	want("another epoch", 3)
	if err := h.put("PublicMessage", words(), h.group.Epoch); err != nil {
		t.Fatal(err)
	}
	want("another type in a log", 4)
}
