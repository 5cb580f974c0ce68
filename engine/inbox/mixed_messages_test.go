package inbox_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

const logged = `SELECT concat_ws(' ', seq, epoch, kind, regexp_replace(sender_uri, '.*/', ''), encode(content_hash, 'hex')) FROM mls_log WHERE kind <> 'commit' ORDER BY seq`

// newMixed returns a scene in which alice hosts a conversation with three members: p:/dave and
// p:/frank, whose servers know only the SWICG draft, and p:/erin, whose server is like this one.
func newMixed(t *testing.T) *hosted {
	t.Helper()
	h := newHosted(t)
	strangers(t, h.Scene, registry.DropStrangers)
	erin := h.Actor("p:/erin")
	erin.Doc["lw:mls"] = vocab.Doc{"deliveryVersion": 1}
	erin.Show()
	in := h.Deps
	r := conversation.NewRegistry(conversation.Deps{Store: in.Store, Actors: in.Local, Finder: in.Actors, Rules: in.Profiles, Log: in.Log, Now: in.Now,
		Inboxes: func(all []user.Destination) []user.Inbox { return delivery.Destinations(all, nil, in.Local.InboxOwner) }})
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h.group = mlstest.NewGroup(h.device)
	v, err := r.Create(t.Context(), h.Alice, h.group.Info(h.device))
	if err != nil {
		t.Fatal(err)
	}
	h.Actor("p:/frank")
	added := []*mlstest.Device{h.host, mlstest.NewDevice(h.Long("p:/frank"), h.Now()), mlstest.NewDevice(h.Long("p:/erin"), h.Now())}
	commit, next := h.group.Commit(h.device, mlstest.Change{Add: added})
	h.registry, h.at = r, conversation.Place{Host: h.Alice, ID: v.ID}
	_, err = r.Commit(t.Context(), h.at, conversation.Commit{Caller: h.ID("us:/alice"), Key: "1", Message: commit, GroupInfo: next.Info(h.device), Welcomes: [][]byte{next.Welcome(added...)}})
	if err != nil {
		t.Fatal(err)
	}
	h.group, h.uri = next, string(v.URI)
	return h
}

func lineOf(place string, content []byte) string {
	hash := sha256.Sum256(content)
	return place + " " + hex.EncodeToString(hash[:])
}

// A member whose server knows only the SWICG draft sends a message to the host's inbox. Once the
// host acknowledges the message, the log contains it, and only once even if it arrives again. The
// host delivers it to Lightweb members.
func TestAMessageOfAMemberWhoKnowsTheDraftAloneIsPutInOrder(t *testing.T) {
	h := newMixed(t)
	first, second := h.group.Message(), h.group.Message()
	h.sends(mine, "PrivateMessage", first, "context", h.uri)
	h.sends("us:/inbox", "PrivateMessage", first)
	h.sends("us:/inbox", "mls:PrivateMessage", second)
	h.want("the log", logged, lineOf("2 1 application dave", first), lineOf("3 1 application dave", second))
	h.want("the state", `SELECT concat_ws(' ', epoch, last_seq, status) FROM mls_conversations`, "1 3 active")
	h.want("the host's programs are told", `SELECT count(*)::text FROM event_outbox WHERE type = 'mls.message.received'`, "2")
	h.want("as of what somebody else wrote", `SELECT count(*)::text FROM event_outbox WHERE type = 'chatmessage.received'`, "2")
	h.want("owed", `SELECT concat_ws(' ', j.type, regexp_replace(d.targets[1], '.*/', '')) FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id
		WHERE convert_from(j.body, 'UTF8') LIKE '%PrivateMessage%' AND convert_from(j.body, 'UTF8') LIKE '%/log/%' ORDER BY j.id`, "Add erin", "Add erin")
	h.want("nothing is kept beside the log", keptMessages)
}

const (
	state     = `SELECT concat_ws(' ', epoch, last_seq, status, group_info IS NULL, mixed) FROM mls_conversations`
	commits   = `SELECT concat_ws(' ', seq, epoch, regexp_replace(sender_uri, '.*/', '')) FROM mls_log WHERE kind = 'commit' AND seq > 1 ORDER BY seq`
	forked    = `SELECT concat_ws(' ', payload->>'reason', payload->>'deviceEpoch', payload->>'epoch', regexp_replace(payload->>'actorUri', '.*/', '')) FROM event_outbox WHERE type = 'mls.recovery.reported'`
	ofCommits = `SELECT count(*)::text FROM event_outbox WHERE type = 'mls.commit.received'`
)

// A commit of a member whose server knows only the SWICG draft ends the epoch in which it was
// made. The log contains the commit once, and the host delivers it to Lightweb members.
func TestACommitOfAMemberWhoKnowsTheDraftAloneIsPutInOrder(t *testing.T) {
	h := newMixed(t)
	commit := h.group.PrivateCommit()
	h.sends(mine, "GroupInfo", commit, "context", h.uri) // Emissary's label
	h.sends("us:/inbox", "PrivateMessage", commit)
	h.want("the log", commits, "2 1 dave")
	h.want("the state", state, "2 2 active t t")
	h.want("the host's programs are told", ofCommits, "2")
	h.want("nobody has forked", forked)
	h.want("owed", `SELECT concat_ws(' ', j.type, regexp_replace(d.targets[1], '.*/', '')) FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id
		WHERE convert_from(j.body, 'UTF8') LIKE '%PrivateMessage%' AND convert_from(j.body, 'UTF8') LIKE '%/log/2"%' ORDER BY j.id`, "Add erin")
}

// dave, whose server knows only the SWICG draft, sends a commit of a past epoch. The commit
// changes nothing for the other members. But dave has already applied it, so the engine tells the
// host's programs, which may reset the conversation.
func TestALateCommitOfAMemberWhoKnowsTheDraftAloneIsDroppedAndTold(t *testing.T) {
	h := newMixed(t)
	late := h.group.PrivateCommit()
	h.sends(mine, "PrivateMessage", h.group.PrivateCommit())
	h.sends(mine, "PrivateMessage", late)
	h.want("the log", commits, "2 1 dave")
	h.want("the state", state, "2 2 active t t")
	h.want("who has forked", forked, "forked 1 2 dave")
}

// The engine drops a commit that arrives in an inbox if the server of its sender should have
// submitted it to the host, or if its sender is in no conversation.
func TestACommitOfSomebodyElseInAnInboxIsDropped(t *testing.T) {
	h := newMixed(t)
	h.Actor("q:/mallory")
	for _, by := range []string{"q:/mallory", "p:/erin"} {
		id := h.Long(by)
		raw := vocab.Doc{"@context": vocab.ActivityContext(), "type": "Create", "id": id + "/1", "actor": id, "to": []any{h.Long("us:/alice")}, "object": vocab.Doc{"type": "PrivateMessage", "id": id + "/2",
			"attributedTo": id, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(h.group.PrivateCommit())}}.JSON()
		if err := h.Pass(by, mine, raw); err != nil {
			t.Fatal(err)
		}
	}
	h.want("the log", commits)
	h.want("who has forked", forked)
}

// The host drops messages of another group, and messages of actors who are in no conversation. The
// log continues without these.
func TestWhatAHostCannotPutInOrderIsDropped(t *testing.T) {
	h := newMixed(t)
	h.Actor("q:/mallory")
	by := h.Long("q:/mallory")
	forged := vocab.Doc{"@context": vocab.ActivityContext(), "type": "Create", "id": by + "/1", "actor": by, "to": []any{h.Long("us:/alice")}, "object": vocab.Doc{"type": "PrivateMessage", "id": by + "/2",
		"attributedTo": by, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(h.group.Message())}}
	if err := h.Pass("q:/mallory", mine, forged.JSON()); err != nil {
		t.Fatal(err)
	}
	h.want("the log", logged)
	h.want("the state", `SELECT concat_ws(' ', epoch, last_seq, status) FROM mls_conversations`, "1 1 active")
	words := h.group.Message()
	h.sends(mine, "PrivateMessage", words)
	h.want("what comes after", logged, lineOf("2 1 application dave", words))
}
