package inbox_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// hosted is a conversation of the host named by the field by. Its group includes alice's device.
type hosted struct {
	*peertest.Scene
	testing.TB
	by     string // the host; p:/dave by default
	uri    string
	host   *mlstest.Device
	device *mlstest.Device // alice's device
	group  *mlstest.Group
	seq    int
	hash   string // the hash of the last message, in base64
	reset  int
	nth    int

	registry *conversation.Registry // of the conversations that alice hosts; nil if she hosts none
	at       conversation.Place     // of the conversation that alice hosts
}

func newHosted(t *testing.T) *hosted {
	t.Helper()
	return newHostedIn(t, newScene(t))
}

func newHostedIn(t *testing.T, s *peertest.Scene) *hosted {
	t.Helper()
	return newHostedBy(t, s, "p:/dave")
}

func newHostedBy(t *testing.T, s *peertest.Scene, by string) *hosted {
	t.Helper()
	s.Actor(by)
	h := &hosted{Scene: s, TB: t, by: by, uri: s.Long(by+"/conversations/") + uuid.NewString(), host: mlstest.NewDevice(s.Long(by), s.Now()), device: mlstest.NewDevice(s.Long("us:/alice"), s.Now())}
	h.group = mlstest.NewGroup(h.host)
	h.publish(h.device)
	return h
}

// publish stores a device's key package as if alice had published it.
func (h *hosted) publish(d *mlstest.Device) {
	h.Helper()
	_, err := h.DB(h.TB, h.Alice).Exec(`INSERT INTO mls_key_packages (id, ref, device_id, suite, content, last_resort, not_after, state, created_at) VALUES ($1, $2, $3, 1, $4, false, now() + interval '1 day', 'available', now())`,
		uuid.NewString(), d.Ref, uuid.NewString(), d.Package)
	if err != nil {
		h.Fatal(err)
	}
}

// said holds the documents that the host sends for one entry. Tests change them.
type said struct {
	activity, object, labels vocab.Doc
}

// entry returns an Add activity that adds a message to the log.
func (h *hosted) entry(kind string, content []byte, epoch uint64, bend ...func(*said)) []byte {
	h.Helper()
	h.nth++
	me := h.Long("us:/alice")
	by := h.Long(h.by)
	to := []any{me}
	s := &said{labels: vocab.Doc{"seq": h.seq, "mlsGroupId": h.group.ID, "mlsEpoch": epoch, "mlsGeneration": h.reset, "previousHash": h.hash}}
	s.object = vocab.Doc{"type": kind, "id": fmt.Sprintf("%s/log/%d", h.uri, h.seq), "attributedTo": by, "to": to, "mediaType": "message/mls", "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(content), "context": h.uri, "conversation": h.uri, "lwMetadata": s.labels}
	s.activity = vocab.Doc{"@context": vocab.ActivityContext(), "type": "Add", "id": fmt.Sprintf("%s/activities/%s", by, uuid.NewString()), "actor": by, "to": to, "target": h.uri, "object": s.object,
		"lwMetadata": vocab.Doc{"status": "active", "members": []any{vocab.Doc{"id": by, "role": "admin"}, vocab.Doc{"id": me, "role": "member"}}}}
	for _, b := range bend {
		b(s)
	}
	if s.labels["receipt"] == nil {
		s.labels["receipt"] = h.receipt(content, epoch, s.labels)
	}
	return s.activity.JSON()
}

// receipt returns the host's signature for a message, in the form that docs/conversations.md,
// Between servers, defines.
func (h *hosted) receipt(content []byte, epoch uint64, labels vocab.Doc) string {
	previous, err := base64.StdEncoding.DecodeString(labels["previousHash"].(string))
	if err != nil {
		h.Fatal(err)
	}
	hash := sha256.Sum256(content)
	said := strings.Join([]string{"lightweb-mls-receipt-1", h.uri, fmt.Sprint(h.reset), fmt.Sprint(epoch), fmt.Sprint(labels["seq"]), hex.EncodeToString(hash[:]), hex.EncodeToString(previous)}, "\n")
	return base64.StdEncoding.EncodeToString(ed25519.Sign(h.Actor(h.by).Keys.Ed25519.Private.(ed25519.PrivateKey), []byte(said)))
}

// put sends an entry to the shared inbox under the next number.
func (h *hosted) put(kind string, content []byte, epoch uint64, bend ...func(*said)) error {
	h.Helper()
	h.seq++
	err := h.Pass(h.by, "us:/inbox", h.entry(kind, content, epoch, bend...))
	hash := sha256.Sum256(content)
	h.hash = base64.StdEncoding.EncodeToString(hash[:])
	return err
}

// welcome adds alice's device to the group and sends the device's Welcome under the next number.
func (h *hosted) welcome(bend ...func(*said)) error {
	h.Helper()
	_, h.group = h.group.Commit(h.host, mlstest.Change{Add: []*mlstest.Device{h.device}})
	h.seq++
	return h.sendWelcome(h.device, bend...)
}

func (h *hosted) sendWelcome(d *mlstest.Device, bend ...func(*said)) error {
	h.Helper()
	return h.Pass(h.by, "us:/inbox", h.entry("Welcome", h.group.Welcome(d), 0, append([]func(*said){func(s *said) {
		delete(s.labels, "mlsEpoch")
		s.labels["keyPackageRef"] = base64.StdEncoding.EncodeToString(d.Ref)
		s.object["id"] = h.uri + "/welcomes/" + uuid.NewString()
	}}, bend...)...))
}

func (h *hosted) begun(bend ...func(*said)) *hosted {
	h.Helper()
	if err := h.welcome(bend...); err != nil {
		h.Fatal(err)
	}
	return h
}

func (h *hosted) rows(query string) []string {
	h.Helper()
	return h.Column(h.TB, h.Alice, query)
}

func (h *hosted) want(what, query string, want ...string) {
	h.Helper()
	if got := h.rows(query); !slices.Equal(got, want) {
		h.Errorf("%s: %q, want %q", what, got, want)
	}
}

const (
	stateOfJoined = `SELECT concat_ws(' ', status, generation, epoch, last_seq, whole_seq, reset_group_id IS NOT NULL) FROM mls_joined`
	keptMessages  = `SELECT concat_ws(' ', kind, seq, epoch, regexp_replace(sender_uri, '.*/', ''), receipt IS NOT NULL, blocked) FROM mls_inbox ORDER BY arrival`
	toldOf        = `SELECT type FROM event_outbox ORDER BY seq`
)

func TestAMemberHasItsOwnCopyOfAConversation(t *testing.T) {
	h := newHosted(t).begun()
	h.want("after the Welcome", stateOfJoined, "active 0 0 1 1 f")
	commit, next := h.group.Commit(h.host, mlstest.Change{})
	words := next.Message()
	for _, err := range []error{h.put("PrivateMessage", h.group.Message(), 1), h.put("PublicMessage", commit, 1), h.put("PrivateMessage", words, 2)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.want("state", stateOfJoined, "active 0 2 4 4 f")
	h.want("messages", keptMessages, "welcome 0 dave f f", "application 2 1 dave t f", "commit 3 1 dave t f", "application 4 2 dave t f")
	h.want("events", toldOf, "conversation.welcome", "mls.message.received", "chatmessage.received", "mls.commit.received", "mls.message.received", "chatmessage.received")
	h.want("feed, activities and objects", `SELECT 'x' FROM feed UNION ALL SELECT uri FROM activities UNION ALL SELECT uri FROM objects`)
	h.want("members", `SELECT concat_ws(' ', regexp_replace(actor_uri, '.*/', ''), role, left_seq) FROM conversation_members ORDER BY role`, "dave admin", h.Alice.String()+" member")
	for _, what := range h.rows(`SELECT payload::text FROM event_outbox`) {
		if strings.Contains(what, base64.StdEncoding.EncodeToString(words)[:24]) {
			t.Errorf("an event holds ciphertext: %s", what)
		}
	}
	again := h.entry("PrivateMessage", words, 2)
	for range 2 { // the Welcome has another id the first time, and the same id the second time
		if err := h.Pass("p:/dave", "us:/inbox", again); err != nil {
			t.Fatal(err)
		}
	}
	h.want("messages once more", `SELECT count(*)::text FROM mls_inbox`, "4")
}

// The host states the epoch of a Welcome, because the Welcome's header does not contain it. The
// user's programs see the stated epoch.
func TestAWelcomeTellsTheEpochThatItLetsInto(t *testing.T) {
	tell := func(epoch any) func(*said) { return func(s *said) { s.labels["mlsEpoch"] = epoch } }
	h := newHosted(t)
	for _, epoch := range []any{-1, "1", 1 << 60} {
		if err := h.sendWelcome(h.device, tell(epoch)); err == nil {
			t.Errorf("a Welcome into epoch %v is taken", epoch)
		}
	}
	h.begun(tell(1))
	h.want("after the Welcome", stateOfJoined, "active 0 1 1 1 f")
	if err := h.put("PrivateMessage", h.group.Message(), 1); err != nil {
		t.Fatal(err)
	}
	h.want("after a message", stateOfJoined, "active 0 1 2 2 f")
}

// Row 11 of docs/conversations.md, Cases and their tests. An entry is refused if it contradicts
// the header of its message, or if its sender is not the host of the conversation.
func TestEntriesAreRefusedThatCannotBe(t *testing.T) {
	h := newHosted(t).begun()
	other := mlstest.NewGroup(h.host)
	words := h.group.Message()
	before := h.rows(keptMessages)
	for name, c := range map[string]struct {
		bend func(*said)
		from string
		code string
	}{
		"another group is said":           {bend: func(s *said) { s.labels["mlsGroupId"] = other.ID }, code: "wrong_group"},
		"another epoch is said":           {bend: func(s *said) { s.labels["mlsEpoch"] = 7 }, code: "wrong_epoch"},
		"no number":                       {bend: func(s *said) { delete(s.labels, "seq") }, code: "bad_seq"},
		"a number beyond all":             {bend: func(s *said) { s.labels["seq"] = 1 << 60 }, code: "bad_seq"},
		"another conversation":            {bend: func(s *said) { s.object["conversation"] = h.uri + "1" }, code: "wrong_conversation"},
		"for everybody":                   {bend: func(s *said) { s.activity["to"] = []any{h.Long("us:/alice"), string(vocab.Public)} }, code: "public_message"},
		"somebody else's conversation":    {bend: func(s *said) { s.activity["actor"] = h.Long("p:/mallory") }, from: "p:/mallory", code: "not_host"},
		"another server's conversation":   {bend: func(s *said) { s.activity["actor"], s.activity["id"] = h.Long("q:/mallory"), h.Long("q:/mallory/1") }, from: "q:/mallory", code: "not_host"},
		"words in the open":               {bend: func(s *said) { s.object["content"] = "hello" }, code: "plain_text"},
		"application data without secret": {bend: func(s *said) { s.object["content"] = base64.StdEncoding.EncodeToString(h.group.Plain(h.host)) }, code: "bad_mls_message"},
	} {
		from := c.from
		if from == "" {
			from = "p:/dave"
		}
		h.seq++
		err := h.Pass(from, "us:/inbox", h.entry("PrivateMessage", words, 1, func(s *said) { s.labels["receipt"] = "" }, c.bend))
		h.seq--
		if of := fault.Of(err); of == nil || of.Code != c.code || of.Kind != fault.Invalid && of.Kind != fault.Forbidden {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if after := h.rows(keptMessages); !slices.Equal(after, before) {
		t.Errorf("what is kept is %q, was %q", after, before)
	}
}

// A host cannot use the id of another conversation's group to put a message into that
// conversation.
func TestAHostCannotReachIntoAnotherConversation(t *testing.T) {
	mine := newHosted(t).begun()
	if err := mine.join(""); err != nil {
		t.Fatal(err)
	}
	theirs := newHostedIn(t, mine.Scene).begun()
	theirs.group.ID, theirs.reset = mine.group.ID, 1
	if err := theirs.put("PrivateMessage", theirs.group.Message(), 1); err != nil {
		t.Fatal(err)
	}
	squatter := newHostedIn(t, mine.Scene)
	squatter.group.ID = mine.group.ID
	if err := squatter.welcome(); err != nil {
		t.Fatal(err)
	}
	mine.want("conversations", `SELECT uri FROM conversations ORDER BY created_at`, mine.uri, theirs.uri)
	mine.want("messages", keptMessages, "welcome 0 dave f f", "welcome 0 dave f f")
}

// A Welcome takes effect only if it uses a key package that the user has published.
func TestAWelcomeNeedsAKeyPackageOfTheUser(t *testing.T) {
	h := newHosted(t)
	h.device = mlstest.NewDevice(h.Long("us:/alice"), h.Now())
	h.begun()
	h.want("conversations", `SELECT uri FROM conversations`)
	h.publish(h.device)
	h.sendWelcomeOK(h.device)
	second := mlstest.NewDevice(h.Long("us:/alice"), h.Now())
	h.publish(second)
	h.sendWelcomeOK(second)
	h.want("welcomes", `SELECT state FROM mls_welcomes`, "available", "available")
	h.want("conversations", `SELECT uri FROM conversations`, h.uri)
	if err := h.sendWelcome(second, func(s *said) { s.labels["keyPackageRef"] = base64.StdEncoding.EncodeToString(h.device.Ref) }); fault.Of(err) == nil || fault.Of(err).Code != "wrong_key_package" {
		t.Errorf("a Welcome that is not for the package that is said: %v", err)
	}
}

func (h *hosted) sendWelcomeOK(d *mlstest.Device) {
	h.Helper()
	if err := h.sendWelcome(d); err != nil {
		h.Fatal(err)
	}
}

func (h *hosted) block(name string) {
	h.Helper()
	if _, err := h.DB(h.TB, h.Alice).Exec(`INSERT INTO blocks (digest, direction, actor_uri, activity_uri, created_at) VALUES (sha256($1::text::bytea), 'outbound', $1, 'b', now())`, h.Long(name)); err != nil {
		h.Fatal(err)
	}
}

// The engine keeps messages of a blocked member, because other members' commits build on them. The
// user gets no event for such a message.
func TestBlockedActorsInConversations(t *testing.T) {
	h := newHosted(t)
	h.Actor("q:/mallory")
	h.block("q:/mallory")
	by := func(s *said) { s.object["attributedTo"] = h.Long("q:/mallory") }
	h.begun(by)
	h.want("invited by a blocked actor", `SELECT uri FROM conversations`)
	h.sendWelcomeOK(h.device)
	if err := h.put("PrivateMessage", h.group.Message(), 1, by); err != nil {
		t.Fatal(err)
	}
	h.block("p:/dave")
	if err := h.put("PrivateMessage", h.group.Message(), 1); err != nil {
		t.Fatal(err)
	}
	h.want("messages", keptMessages, "welcome 0 dave f f", "application 2 1 mallory t t", "application 3 1 dave t t")
	h.want("events", toldOf, "conversation.welcome")
	other := newHostedIn(t, h.Scene)
	if err := other.welcome(); err != nil {
		t.Fatal(err)
	}
	h.want("invited by a blocked host", `SELECT uri FROM conversations`, h.uri)
}

// A user drops the messages of strangers. The user gets no Welcome of a stranger either.
func TestStrangersWelcomesAreDroppedByWhoeverWantsNone(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.DropStrangers)
	h.begun()
	h.want("conversations", `SELECT uri FROM conversations`)
	strangers(t, h.Scene, registry.RequestStrangers)
	h.sendWelcomeOK(h.device)
	h.want("conversations", `SELECT uri FROM conversations`, h.uri)
}

// PAY-07: until a device of the user has joined a conversation, its events use the budget of
// strangers.
func TestEventsOfAConversationThatNobodyJoinedAreAStrangers(t *testing.T) {
	h := newHosted(t)
	h.Inbox.TellDaily(8)
	h.begun()
	say := func(times int) {
		for range times {
			if err := h.put("PrivateMessage", h.group.Message(), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	const counted = `SELECT concat_ws(' ', type, count(*), max(payload ->> 'count')) FROM event_outbox GROUP BY type ORDER BY type`
	say(12)
	h.want("events", counted, "chatmessage.received 5", "conversation.welcome 1", "events.withheld 1 14", "mls.message.received 5")
	if _, err := h.DB(t, h.Alice).Exec(`UPDATE conversations SET confirmed = true`); err != nil {
		t.Fatal(err)
	}
	say(2)
	h.want("events once a device has joined", counted, "chatmessage.received 7", "conversation.welcome 1", "events.withheld 1 14", "mls.message.received 7")
}

// PAY-04: a conversation remembers at most 200 former groups. Without the limit, each message that
// begins another group would make the conversation's row longer.
func TestAHostBeginsGroupsWithinBounds(t *testing.T) {
	h := newHosted(t).begun()
	next := func() (had string) {
		h.group.ID, h.reset = "urn:uuid:"+uuid.NewString(), h.reset+1
		if err := h.put("PrivateMessage", h.group.Message(), 1); err != nil {
			t.Fatal(err)
		}
		return h.rows(`SELECT cardinality(former_groups)::text FROM mls_joined`)[0]
	}
	next()
	if _, err := h.DB(t, h.Alice).Exec(`UPDATE mls_joined SET former_groups = ARRAY(SELECT n::text FROM generate_series(1, 199) n)`); err != nil {
		t.Fatal(err)
	}
	if a, b := next(), next(); a != "200" || b != "200" {
		t.Errorf("it has had %s groups, then %s, want 200", a, b)
	}
}

// Until a device of alice's has joined, every event of the conversation has the trust "stranger",
// even if the host names alice as the sender.
func TestAStrangersHostDoesNotSpeakForTheUser(t *testing.T) {
	h := newHosted(t)
	asAlice := func(s *said) { s.object["attributedTo"] = h.Long("us:/alice") }
	h.begun(asAlice)
	if err := h.put("PrivateMessage", h.group.Message(), 1, asAlice); err != nil {
		t.Fatal(err)
	}
	h.want("trust", `SELECT payload ->> 'trust' FROM event_outbox ORDER BY seq`, "stranger", "stranger")
}

func TestConversationsOfOneHostAreBoundedUntilTheyAreJoined(t *testing.T) {
	h := newHosted(t)
	for range 22 {
		other := newHostedIn(t, h.Scene)
		if err := other.welcome(); err != nil {
			t.Fatal(err)
		}
	}
	h.want("conversations", `SELECT count(*)::text FROM conversations`, "20")
}

// state sends an Update of the conversation with the metadata d. The actor named by the parameter
// from sends it.
func (h *hosted) state(d vocab.Doc, from string) error {
	h.Helper()
	by := h.Long(from)
	return h.Pass(from, "us:/inbox", vocab.Doc{"@context": vocab.ActivityContext(), "type": "Update", "id": by + "/activities/" + uuid.NewString(), "actor": by, "to": []any{h.Long("us:/alice")},
		"object": vocab.Doc{"type": "OrderedCollection", "id": h.uri, "lwMetadata": d}}.JSON())
}

func TestTheHostTellsOfResetsAndTheEnd(t *testing.T) {
	h := newHosted(t).begun()
	next := "urn:uuid:" + uuid.NewString()
	now := func(status string) vocab.Doc {
		return vocab.Doc{"status": status, "mlsGroupId": h.group.ID, "mlsGeneration": h.reset, "mlsEpoch": 1, "lastSeq": h.seq}
	}
	pending := now("reset_pending")
	if err := h.state(pending, "p:/dave"); fault.Of(err) == nil || fault.Of(err).Code != "bad_state" {
		t.Errorf("a reset without a group: %v", err)
	}
	pending["resetGroupId"] = next
	if err := h.state(pending, "p:/mallory"); fault.Of(err) == nil || fault.Of(err).Code != "not_host" {
		t.Errorf("somebody else's word: %v", err)
	}
	for range 2 {
		if err := h.state(pending, "p:/dave"); err != nil {
			t.Fatal(err)
		}
	}
	h.want("pending", stateOfJoined, "reset_pending 0 1 1 1 t")
	h.group.ID, h.reset = next, 1
	begun := now("active")
	begun["mlsEpoch"] = 0
	if err := h.state(begun, "p:/dave"); err != nil {
		t.Fatal(err)
	}
	h.want("begun", stateOfJoined, "active 1 0 1 1 f")
	if err := h.state(pending, "p:/dave"); err != nil { // the pending state arrives late
		t.Fatal(err)
	}
	h.want("late", stateOfJoined, "active 1 0 1 1 f")
	for range 2 {
		if err := h.state(now("closed"), "p:/dave"); err != nil {
			t.Fatal(err)
		}
	}
	h.want("closed", stateOfJoined, "closed 1 1 1 1 f")
	h.want("closed, so that a successor may continue it", `SELECT (closed_at IS NOT NULL)::text FROM conversations`, "true")
	h.want("the timeline", `SELECT kind FROM conversation_entries`, "closed")
	if err := h.state(now("active"), "p:/dave"); err != nil {
		t.Fatal(err)
	}
	h.want("closed is for good", stateOfJoined, "closed 1 1 1 1 f")
	h.want("events", toldOf, "conversation.welcome", "mls.reset.pending", "mls.epoch.advanced", "conversation.closed")
}

// A host that was restored from a backup moves the generation ahead, and waits for the reset of a
// group that its members know. Their devices are told of the reset once.
func TestAResetAfterARestoreOfTheHostIsTold(t *testing.T) {
	h := newHosted(t).begun()
	pending := vocab.Doc{"status": "reset_pending", "mlsGroupId": h.group.ID, "mlsGeneration": 1000, "mlsEpoch": 1, "lastSeq": h.seq + 1000,
		"resetGroupId": "urn:uuid:" + uuid.NewString()}
	for range 2 {
		if err := h.state(pending, "p:/dave"); err != nil {
			t.Fatal(err)
		}
	}
	h.want("pending", `SELECT status FROM mls_joined`, "reset_pending")
	h.want("events", toldOf, "conversation.welcome", "mls.reset.pending")
}

// A user that a commit removes is told of it in the transaction that stores the commit, once.
func TestTheUserIsToldOfARemoval(t *testing.T) {
	h := newHosted(t).begun()
	commit, _ := h.group.Commit(h.host, mlstest.Change{Remove: []*mlstest.Device{h.device}})
	without := func(s *said) {
		s.activity["lwMetadata"] = vocab.Doc{"status": "active", "members": []any{vocab.Doc{"id": h.Long(h.by), "role": "admin"}}}
	}
	for range 2 {
		if err := h.put("PublicMessage", commit, 1, without); err != nil {
			t.Fatal(err)
		}
	}
	h.want("events", toldOf, "conversation.welcome", "mls.member.removed", "mls.commit.received")
	h.want("the removal", `SELECT concat_ws(' ', payload->>'actorUri', payload->>'removed', payload->>'seq', payload->>'conversation') FROM event_outbox WHERE type = 'mls.member.removed'`,
		strings.Join([]string{h.Long(h.by), `["` + h.Long("us:/alice") + `"]`, "2", h.uri}, " "))
}

// A host names as many members as it likes. Nobody is told of those that a user never met, and of
// many that leave at once there is one event.
func TestMembersThatLeaveAtOnceAreOneEvent(t *testing.T) {
	h := newHosted(t).begun()
	roster := func(names ...string) vocab.Doc {
		members := []any{vocab.Doc{"id": h.Long(h.by), "role": "admin"}, vocab.Doc{"id": h.Long("us:/alice"), "role": "member"}}
		for _, name := range names {
			members = append(members, vocab.Doc{"id": h.Long("p:/" + name), "role": "member"})
		}
		return vocab.Doc{"status": "active", "mlsGroupId": h.group.ID, "mlsGeneration": h.reset, "mlsEpoch": 1, "lastSeq": h.seq, "members": members}
	}
	exchange := func() {
		t.Helper()
		for _, names := range [][]string{{"a", "b", "c"}, {}} {
			if err := h.state(roster(names...), "p:/dave"); err != nil {
				t.Fatal(err)
			}
		}
	}
	exchange()
	h.want("events of an invitation", toldOf, "conversation.welcome")
	h.rows(`UPDATE conversations SET confirmed = true RETURNING ''`) // a device joins
	exchange()
	h.want("events of a conversation", `SELECT jsonb_array_length(payload->'removed')::text FROM event_outbox WHERE type = 'mls.member.removed'`, "3")
}

// 28. Two receipts for one place prove that the host tells members different things. They freeze
// the conversation.
func TestRow28AHostThatEquivocatesFreezesTheConversation(t *testing.T) {
	for name, second := range map[string]func(*testing.T, *hosted) error{
		"two messages of one number": func(t *testing.T, h *hosted) error {
			h.seq--
			return h.put("PrivateMessage", h.group.Message(), 1)
		},
		"two commits of one epoch": func(t *testing.T, h *hosted) error {
			first, _ := h.group.Commit(h.host, mlstest.Change{})
			if err := h.put("PublicMessage", first, 1); err != nil {
				t.Fatal(err)
			}
			other, _ := h.group.Commit(h.host, mlstest.Change{})
			return h.put("PublicMessage", other, 1)
		},
		"another message before it": func(t *testing.T, h *hosted) error {
			other := sha256.Sum256(h.group.Message())
			h.hash = base64.StdEncoding.EncodeToString(other[:])
			return h.put("PrivateMessage", h.group.Message(), 1)
		},
	} {
		for _, proven := range []bool{false, true} {
			if !proven && name == "two commits of one epoch" {
				continue // in both cases the first of the two commits has a receipt
			}
			t.Run(fmt.Sprintf("%s, proven %v", name, proven), func(t *testing.T) {
				h := newHosted(t).begun()
				if err := h.put("PrivateMessage", h.group.Message(), 1, func(s *said) {
					if !proven {
						s.labels["receipt"] = "AAAA"
					}
				}); err != nil {
					t.Fatal(err)
				}
				if err := second(t, h); err != nil {
					t.Fatal(err)
				}
				frozen := h.rows(`SELECT status FROM mls_joined`)[0] == "frozen"
				told := len(h.rows(`SELECT type FROM event_outbox WHERE type = 'mls.equivocation'`))
				if frozen != proven || (told == 1) != proven {
					t.Errorf("frozen %v, told %d times", frozen, told)
				}
				before := h.rows(keptMessages)
				if err := h.put("PrivateMessage", h.group.Message(), 1); err != nil {
					t.Fatal(err)
				}
				if after := h.rows(keptMessages); proven && !slices.Equal(before, after) {
					t.Errorf("a frozen conversation went on: %q", after)
				}
			})
		}
	}
}

// An Add to another collection is not an entry of a conversation. It is stored as an ordinary
// activity.
func TestAMessageInAnotherCollectionIsNoEntry(t *testing.T) {
	h := newHosted(t).begun()
	h.seq++
	if err := h.Pass("p:/dave", mine, h.entry("PrivateMessage", h.group.Message(), 1, func(s *said) { s.activity["target"] = h.Long("p:/dave/messages") })); err != nil {
		t.Fatal(err)
	}
	h.want("messages", `SELECT count(*)::text FROM mls_inbox`, "1")
	h.want("activities", `SELECT type FROM activities`, "Add")
}

// Row 27 of docs/conversations.md, Cases and their tests. One request to the shared inbox reaches
// each of several members.
func TestRow27OneRequestReachesTwoMembers(t *testing.T) {
	h := newHosted(t)
	bob := *h
	bob.Scene = h.With("bob" + strings.ToLower(uuid.NewString()[:8]))
	bob.device = mlstest.NewDevice(bob.Long("us:/alice"), h.Now())
	bob.publish(bob.device)
	h.begun()
	both := func(s *said) { s.activity["to"] = []any{h.Long("us:/alice"), bob.Long("us:/alice")} }
	bob.group = h.group
	if err := bob.Pass("p:/dave", "us:/inbox", func() []byte { bob.seq = h.seq; return bob.welcomeOf() }()); err != nil {
		t.Fatal(err)
	}
	if err := h.put("PrivateMessage", h.group.Message(), 1, both); err != nil {
		t.Fatal(err)
	}
	for _, who := range []*hosted{h, &bob} {
		who.want("messages of "+who.Alice.String(), keptMessages, "welcome 0 dave f f", "application 2 1 dave t f")
	}
}

// welcomeOf returns the Add activity of a Welcome for the device.
func (h *hosted) welcomeOf() []byte {
	return h.entry("Welcome", h.group.Welcome(h.device), 0, func(s *said) {
		delete(s.labels, "mlsEpoch")
		s.labels["keyPackageRef"] = base64.StdEncoding.EncodeToString(h.device.Ref)
		s.object["id"] = h.uri + "/welcomes/" + uuid.NewString()
	})
}
