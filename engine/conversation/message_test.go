package conversation_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

func TestMessagesAreNumberedInTheirOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	for n := range 3 {
		a, err := s.send(s.bob, s.group.Message())
		if err != nil || a.Seq != int64(n)+2 || a.Epoch != 1 {
			t.Fatalf("message %d: %+v, %v", n, a, err)
		}
	}
	entries, more, err := s.registry.ReadLog(t.Context(), s.at, bobID, 0)
	if err != nil || more || len(entries) != 3 { // bob does not read the commit that added him
		t.Fatalf("bob reads %d entries, %v, %v", len(entries), more, err)
	}
	if entries, _, err = s.registry.ReadLog(t.Context(), s.at, aliceID, 2); err != nil || len(entries) != 2 || entries[0].Seq != 3 {
		t.Errorf("after 2 alice reads %d entries, %v", len(entries), err)
	}
	if h, err := s.registry.Held(t.Context(), s.user, s.at.ID); h.Unread != 3 || err != nil {
		t.Errorf("alice has %d unread, %v, want 3", h.Unread, err)
	}
	if err := s.registry.MarkRead(t.Context(), s.user, s.at.ID, 3, 0); err != nil {
		t.Fatal(err)
	}
	if h, err := s.registry.Held(t.Context(), s.user, s.at.ID); h.Unread != 1 || err != nil {
		t.Errorf("after reading to 3 alice has %d unread, %v, want 1", h.Unread, err)
	}
	if err := s.registry.MarkRead(t.Context(), s.user, s.at.ID, 1<<60, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.send(s.bob, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	if h, err := s.registry.Held(t.Context(), s.user, s.at.ID); h.Unread != 1 || err != nil {
		t.Errorf("after reading beyond the end alice has %d unread, %v, want the message that came since", h.Unread, err)
	}
	if err := s.registry.MarkRead(t.Context(), s.user, s.at.ID, 3, 1); err != nil { // the mark does not move back
		t.Fatal(err)
	}
	var told []string
	s.eachEvent(func(e user.Event) {
		if e.Type == "conversation.read" {
			told = append(told, string(e.Payload))
		}
	})
	if len(told) != 2 || !strings.Contains(told[0], `"seq": 3`) || !strings.Contains(told[1], `"seq": 4`) || !strings.Contains(told[1], `"conversationId": "`+s.at.ID.String()) {
		t.Errorf("told %q, want each time the mark moved, and how far", told)
	}
	if got := s.events(); got["mls.commit.received"] != 1 || got["mls.message.received"] != 4 {
		t.Errorf("the events are %v", got)
	}
}

// When another member writes, the host's programs get the same events as the programs of every
// member.
func TestTheHostIsToldWhatOthersWrite(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	for _, by := range []*mlstest.Device{s.bob, s.alice} {
		if _, err := s.send(by, s.group.Message()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.send(s.bob, s.group.Leave(s.bob)); err != nil {
		t.Fatal(err)
	}
	if got := s.events(); got["mls.message.received"] != 3 || got["chatmessage.received"] != 1 {
		t.Fatalf("the events are %v", got)
	}
	s.eachEvent(func(e user.Event) {
		var said struct {
			Seq                                           int64
			Conversation, ConversationID, ActorURI, Trust string
		}
		if err := json.Unmarshal(e.Payload, &said); err != nil {
			t.Fatal(err)
		}
		if said.Conversation != string(s.view().URI) || said.ConversationID != s.at.ID.String() {
			t.Errorf("%s names the conversation %q, %q", e.Type, said.Conversation, said.ConversationID)
		}
		if e.Type == "chatmessage.received" && (said.Seq != 2 || said.ActorURI != bobID || said.Trust != "contact") {
			t.Errorf("the host is told %s", e.Payload)
		}
	})
}

// Row 8 of docs/conversations.md, Cases and their tests: the epoch of a message must be the
// current one or one of the five before it.
func TestRow8AMessageIsOfThePresentOrARecentEpoch(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	past := []*mlstest.Group{s.group}
	for range 6 {
		s.commit(s.alice, mlstest.Change{})
		past = append(past, s.group)
	}
	ahead := *s.group
	ahead.Epoch++
	early := ahead.Message()
	_, err := s.send(s.bob, early)
	if c := s.wantConflict("a message from the future", err, "future_epoch"); c.Epoch != 7 {
		t.Errorf("the refusal tells of epoch %d, want 7", c.Epoch)
	}
	_, err = s.send(s.bob, past[0].Message())
	s.wantConflict("six epochs ago", err, "past_epoch")
	for _, g := range past[1:] {
		if _, err := s.send(s.bob, g.Message()); err != nil {
			t.Errorf("%d epochs ago: %v", s.group.Epoch-g.Epoch, err)
		}
	}
	if n := len(s.log()); n != 7+6 {
		t.Errorf("%d entries, want 13", n)
	}
	s.commit(s.alice, mlstest.Change{})
	if a, err := s.send(s.bob, early); err != nil || a.Replayed || a.Seq != 15 {
		t.Errorf("the message from the future, after its commit: %+v, %v", a, err)
	}
}

// Row 7: messages come in another order than they were made in, across a commit and a restart of
// the engine. Each has a number in the order in which it came, and keeps its epoch. The message of
// more than five epochs ago is refused.
func TestRow7MessagesComeInAnyOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	var made [][]byte
	for range 5 {
		made = append(made, s.group.Message())
	}
	var want []string
	comes := func(n int) {
		t.Helper()
		want = append(want, hexHash(made[n]))
		if a, err := s.send(s.bob, made[n]); err != nil || a.Replayed || a.Epoch != int64(s.group.Epoch) {
			t.Errorf("message %d: %+v, %v", n, a, err)
		}
	}
	comes(2)
	s.commit(s.alice, mlstest.Change{})
	comes(0)
	if err := s.registry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.registry = s.node(s.store)
	comes(1)
	for range 4 {
		s.commit(s.alice, mlstest.Change{})
	}
	comes(3) // five epochs late
	s.commit(s.alice, mlstest.Change{})
	_, err := s.send(s.bob, made[4])
	s.wantConflict("a message of six epochs ago", err, "past_epoch")
	var got []string
	for _, e := range s.log() {
		if e.Kind == user.KindApplication {
			got = append(got, hexHash(e.Content))
			if e.Epoch != 1 {
				t.Errorf("number %d is of epoch %d, want 1", e.Seq, e.Epoch)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// Rows 4, 6 and 12: a message that comes again has the number that it had, and another member's is
// refused. Nothing is written for either, whether or not the process remembers the conversation.
func TestRow6AMessageHasOneNumberForGood(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	message := s.group.Message()
	first, err := s.send(s.bob, message)
	if err != nil {
		t.Fatal(err)
	}
	again := func(when string) {
		t.Helper()
		before := s.written(t)
		if a, err := s.send(s.bob, message); err != nil || !a.Replayed || a.Seq != first.Seq {
			t.Errorf("%s: %+v, %v, want number %d", when, a, err, first.Seq)
		}
		_, err := s.send(s.alice, message)
		s.wantConflict(when+", by another member", err, "message_taken")
		if after := s.written(t); after != before {
			t.Errorf("%s: the database had %s, and has %s", when, before, after)
		}
	}
	again("at once")
	for s.registry.DropIdle() > 0 {
		runtime.Gosched()
	}
	if _, known := s.registry.Epoch(s.at); known {
		t.Error("the process remembers a conversation that it has dropped")
	}
	again("when the conversation is not in memory")
	if err := s.registry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.registry = s.node(s.store)
	again("after a restart")
	for range 6 {
		s.commit(s.alice, mlstest.Change{})
	}
	again("six epochs later")
	if n := len(s.log()); n != 8 {
		t.Errorf("%d entries, want 8", n)
	}
}

// Row 11 of docs/conversations.md, Cases and their tests: the host accepts only ciphertext as a
// message.
func TestRow11OnlyCiphertextIsAMessage(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	for name, c := range map[string]struct {
		content []byte
		kind    fault.Kind
		code    string
	}{
		"words":         {s.group.Plain(s.bob), fault.Unprocessable, "not_a_message"},
		"a commit":      {s.group.PrivateCommit(), fault.Unprocessable, "not_a_message"},
		"a GroupInfo":   {s.group.Info(s.bob), fault.Unprocessable, "not_a_message"},
		"noise":         {[]byte("noise"), fault.Invalid, "bad_mls_message"},
		"another group": {mlstest.NewGroup(s.bob).Message(), fault.Invalid, "wrong_group"},
		"trailing":      {append(s.group.Message(), 0), fault.Invalid, "bad_mls_message"},
		"too large":     {make([]byte, 256<<10+1), fault.TooLarge, ""},
	} {
		_, err := s.send(s.bob, c.content)
		s.wantRefused(name, err, c.kind, c.code)
	}
}

// Clients send messages and commits at the same time. Each entry gets its own number. The numbers
// have no gaps.
func TestMessagesAndCommitsShareOneCount(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := s.send(s.bob, s.group.Message()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		g := s.group
		for range 4 { // few enough commits that the messages stay of a recent epoch
			r, next := g.Commit(s.alice, mlstest.Change{})
			if _, err := s.registry.Commit(t.Context(), s.at, conversation.Commit{Caller: aliceID, Key: hexHash(r), Message: r, GroupInfo: next.Info(s.alice)}); err != nil {
				t.Error(err)
			}
			g = next
		}
	})
	wg.Wait()
	log := s.log()
	if len(log) != 1+160+4 {
		t.Fatalf("%d entries, want 165", len(log))
	}
	if at := slices.IndexFunc(log, func(e user.LogEntry) bool {
		return e.Seq != log[0].Seq+int64(slices.IndexFunc(log, func(o user.LogEntry) bool { return o.Seq == e.Seq }))
	}); at >= 0 {
		t.Errorf("entry %d has number %d", at, log[at].Seq)
	}
}

// Row 23 of docs/conversations.md, Cases and their tests: two members answer a reset, and the
// first answer begins the next group.
func TestRow23TheFirstAnswerToAResetBeginsTheNextGroup(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	old := s.group
	_, err := s.registry.AskReset(t.Context(), s.at, bobID)
	s.wantRefused("a member asks for a reset", err, fault.Forbidden, "not_admin")
	_, err = s.registry.Reset(t.Context(), s.at, aliceID, mlstest.NewGroup(s.alice).Info(s.alice))
	s.wantConflict("a reset that nobody asked for", err, "no_reset_pending")
	id, err := s.registry.AskReset(t.Context(), s.at, aliceID)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.registry.AskReset(t.Context(), s.at, aliceID); again != id || err != nil {
		t.Errorf("asked again, the next group is %s, %v, want %s", again, err, id)
	}
	_, err = s.send(s.bob, old.Message())
	if c := s.wantConflict("a message while the reset is pending", err, "reset_pending"); c.Reset != id {
		t.Errorf("the refusal names %q as the next group", c.Reset)
	}
	_, err = s.registry.Reset(t.Context(), s.at, bobID, mlstest.NewGroup(s.bob).Info(s.bob))
	s.wantRefused("a group of another id", err, fault.Invalid, "wrong_group")
	var wg sync.WaitGroup
	won, accepted := make([]error, 2), make([]conversation.Accepted, 2)
	groups := []*mlstest.Group{mlstest.NewGroupWith(id, s.alice), mlstest.NewGroupWith(id, s.bob)}
	infos := [][]byte{groups[0].Info(s.alice), groups[1].Info(s.bob)}
	for i, d := range []*mlstest.Device{s.alice, s.bob} {
		wg.Go(func() {
			accepted[i], won[i] = s.registry.Reset(t.Context(), s.at, actorOf(d), infos[i])
		})
	}
	wg.Wait()
	first := slices.Index(won, nil)
	if first < 0 || won[1-first] == nil {
		t.Fatalf("the two resets ended with %v", won)
	}
	s.wantConflict("the second reset", won[1-first], "already_reset")
	if v := s.view(); v.Generation != 1 || v.Epoch != 0 || v.GroupID != id || v.Status != "active" || len(v.Members) != 2 {
		t.Errorf("the conversation is %+v", v)
	}
	if got := s.events(); got["mls.reset.pending"] != 1 || got["mls.epoch.advanced"] != 1 {
		t.Errorf("the host was told of %v, want the reset and its end", got)
	}
	late, _ := s.request(s.alice, old, mlstest.Change{})
	_, err = s.registry.Commit(t.Context(), s.at, late)
	s.wantConflict("a commit of the old group", err, "former_group")
	_, err = s.send(s.bob, old.Message())
	s.wantConflict("a message of the old group", err, "former_group")

	// The other member joins the new group by an external commit.
	s.group = groups[first]
	other := []string{aliceID, bobID}[1-first]
	if _, err := s.rejoin(mlstest.NewDevice(other, time.Now())); err != nil {
		t.Errorf("the other member does not come back: %v", err)
	}

	want := accepted[first]
	want.Replayed = true
	if again, err := s.registry.Reset(t.Context(), s.at, actorOf([]*mlstest.Device{s.alice, s.bob}[first]), infos[first]); err != nil || again != want {
		t.Errorf("the first reset sent again: %+v, %v, want %+v", again, err, want)
	}
}

// The answer to a reset gets lost, and its sender is away for longer than answers are stored. Sent
// again, the reset is answered as before, as long as nobody has committed in the new group. The
// group that a conversation began with was never begun by a reset.
func TestAResetIsAnsweredAsBeforeAsLongAsItsGroupIsNew(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	id, err := s.registry.AskReset(t.Context(), s.at, aliceID)
	if err != nil {
		t.Fatal(err)
	}
	s.group = mlstest.NewGroupWith(id, s.bob)
	info := s.group.Info(s.bob)
	want, err := s.registry.Reset(t.Context(), s.at, bobID, info)
	if err != nil {
		t.Fatal(err)
	}
	s.later(25 * time.Hour)
	want.Replayed = true
	if again, err := s.registry.Reset(t.Context(), s.at, bobID, info); err != nil || again != want {
		t.Errorf("a day later: %+v, %v, want %+v", again, err, want)
	}
	other := mlstest.NewDevice(bobID, time.Now())
	_, err = s.registry.Reset(t.Context(), s.at, bobID, mlstest.NewGroupWith(id, other).Info(other))
	s.wantConflict("the group of another device", err, "already_reset")
	if _, err := s.rejoin(mlstest.NewDevice(aliceID, time.Now())); err != nil {
		t.Fatal(err)
	}
	_, err = s.registry.Reset(t.Context(), s.at, bobID, info)
	s.wantConflict("after another member's commit", err, "already_reset")

	first := newScene(t)
	_, err = first.registry.Reset(t.Context(), first.at, aliceID, first.group.Info(first.alice))
	first.wantConflict("the first group of a conversation", err, "already_reset")
}

// The operator is no member, and can order a reset nevertheless. In this test the only admin has
// left.
func TestTheOperatorOrdersAResetWhenTheAdminHasLeft(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	if _, err := s.send(s.alice, s.group.Leave(s.alice)); err != nil {
		t.Fatal(err)
	}
	s.commit(s.bob, mlstest.Change{Remove: []*mlstest.Device{s.alice}})
	first, isNew, err := s.registry.OrderReset(t.Context(), s.at)
	if err != nil || !isNew {
		t.Fatalf("the order is answered %q, new %v, %v", first, isNew, err)
	}
	if again, isNew, err := s.registry.OrderReset(t.Context(), s.at); again != first || isNew || err != nil {
		t.Errorf("ordered again, the next group is %q, new %v, %v, want %q", again, isNew, err, first)
	}
	if n := s.events()["mls.reset.pending"]; n != 1 {
		t.Errorf("the host was told %d times, want once", n)
	}
	if _, err := s.registry.Reset(t.Context(), s.at, bobID, mlstest.NewGroupWith(first, s.bob).Info(s.bob)); err != nil {
		t.Errorf("bob begins the group: %v", err)
	}
	_, _, err = s.registry.OrderReset(t.Context(), conversation.Place{Host: s.user, ID: uuid.New()})
	s.wantRefused("a reset of no conversation", err, fault.NotFound, "no_conversation")
}
