package conversation_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// owed is an activity that is to be delivered to an inbox.
type owed struct {
	Inbox    vocab.ID
	Host     string
	Targets  []vocab.ID
	Activity vocab.Doc
}

func (o owed) object() vocab.Doc { return o.Activity.Sub("object") }

// takeOwed returns the activities that are to be delivered now, and marks them as delivered.
func (s *scene) takeOwed() (all []owed) {
	s.Helper()
	err := s.store.Write(s.Context(), s.user, func(ctx context.Context, tx *user.Tx) error {
		for {
			due, err := tx.Deliveries.Claim(ctx, "test", s.now(), time.Minute, user.ClaimBounds{Most: 1000})
			if err != nil || len(due) == 0 {
				return err
			}
			var done []user.Outcome
			for _, d := range due {
				doc, err := vocab.ParseDoc(d.Body)
				if err != nil {
					return err
				}
				all, done = append(all, owed{d.Inbox, d.Host, d.Targets, doc}), append(done, user.Outcome{Delivery: d.ID, Status: user.DeliveryDelivered})
			}
			if _, err := tx.Deliveries.Finish(ctx, "test", done, s.now()); err != nil {
				return err
			}
		}
	})
	if err != nil {
		s.Fatal(err)
	}
	return all
}

const (
	daveID = "https://us.example/users/dave"
	erinID = "https://us.example/users/erin"
)

// The host owes each other member every accepted commit, Welcome and message. Members on this
// server get them without the network, other members by HTTP. A new member gets the Welcome
// instead of the commit.
func TestWhatIsAcceptedIsOwedToEveryMember(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	dave, erin := mlstest.NewDevice(daveID, time.Now()), mlstest.NewDevice(erinID, time.Now())
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{dave, erin, s.bob}})
	first := s.takeOwed()
	wantOwed(t, "who joins", first, daveID+" Add Welcome", erinID+" Add Welcome", bobID+" Add Welcome")
	for _, o := range first {
		if (o.Host == "") != strings.HasPrefix(string(o.Targets[0]), "https://us.example/") {
			t.Errorf("%s is reached through host %q", o.Targets, o.Host)
		}
		if w := o.object(); w.Text("attributedTo") != aliceID || w.Text("context") != string(s.view().URI) || len(o.Activity.Sub("lwMetadata").Subs("members")) != 4 {
			t.Errorf("the Welcome is %s", o.Activity.JSON())
		}
		if epoch, _ := o.object().Sub("lwMetadata").Count("mlsEpoch"); epoch != 1 {
			t.Errorf("the Welcome is said to let into epoch %d", epoch)
		}
	}
	if _, err := s.send(s.bob, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	wantOwed(t, "a message", s.takeOwed(), daveID+" Add PrivateMessage", erinID+" Add PrivateMessage", bobID+" Add PrivateMessage")
	s.commit(s.alice, mlstest.Change{Remove: []*mlstest.Device{dave}})
	removal := s.takeOwed()
	wantOwed(t, "a removal", removal, daveID+" Add PublicMessage", erinID+" Add PublicMessage", bobID+" Add PublicMessage")
	if told := removal[0].Activity.Sub("lwMetadata"); len(told.Subs("members")) != 3 || told.Text("status") != user.StatusActive {
		t.Errorf("the roster after the removal is %s", told.JSON())
	}
	if _, err := s.send(s.alice, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	wantOwed(t, "a message after that", s.takeOwed(), erinID+" Add PrivateMessage", bobID+" Add PrivateMessage")
}

// wantOwed fails unless the deliveries in got are those in want, in any order. Each text in want
// has the recipient, the type of the activity and the type of its object.
func wantOwed(t *testing.T, what string, got []owed, want ...string) {
	t.Helper()
	var is []string
	for _, o := range got {
		for _, to := range o.Targets {
			is = append(is, fmt.Sprint(to, " ", o.Activity.Text("type"), " ", o.object().Text("type")))
		}
	}
	slices.Sort(is)
	slices.Sort(want)
	if !slices.Equal(is, want) {
		t.Errorf("of %s is owed %q, want %q", what, is, want)
	}
}

// Row 28 of docs/conversations.md, Cases and their tests, for the host: the host signs a receipt
// for each entry with its actor's key. The receipt covers the entry's place in the log, the hash
// of its content and the hash of the content before it.
func TestEveryMessageHasAReceipt(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.takeOwed()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := s.send(s.bob, s.group.Message()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.commit(s.alice, mlstest.Change{})
	log, got := s.log(), s.takeOwed()
	if len(got) != 21 || len(log) != 22 {
		t.Fatalf("%d messages are owed, and %d in the log", len(got), len(log))
	}
	before := sha256.Sum256(log[0].Content)
	for i, o := range got {
		object, entry := o.object(), log[i+1]
		told := object.Sub("lwMetadata")
		content, err := base64.StdEncoding.DecodeString(object.Text("content"))
		if err != nil || !bytes.Equal(content, entry.Content) {
			t.Fatalf("what is owed in place %d is not number %d: %v", i, entry.Seq, err)
		}
		hash := sha256.Sum256(content)
		text := fmt.Sprintf("lightweb-mls-receipt-1\n%s\n0\n%d\n%d\n%s\n%s", s.view().URI, entry.Epoch, entry.Seq, hex.EncodeToString(hash[:]), hex.EncodeToString(before[:]))
		receipt, err := base64.StdEncoding.DecodeString(told.Text("receipt"))
		if err != nil || !ed25519.Verify(hostKey.Public().(ed25519.PublicKey), []byte(text), receipt) {
			t.Errorf("the receipt of number %d does not hold", entry.Seq)
		}
		if told.Text("previousHash") != base64.StdEncoding.EncodeToString(before[:]) || told.Text("mlsGroupId") != s.group.ID {
			t.Errorf("number %d says %s", entry.Seq, told.JSON())
		}
		before = hash
	}
}

// The host notifies every member when a reset is requested, and again when the reset is over.
func TestAResetIsToldToEveryMember(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.takeOwed()
	next, err := s.registry.AskReset(t.Context(), s.at, aliceID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.registry.AskReset(t.Context(), s.at, aliceID); err != nil {
		t.Fatal(err)
	}
	asked := s.takeOwed()
	wantOwed(t, "a reset", asked, bobID+" Update OrderedCollection")
	if told := asked[0].object().Sub("lwMetadata"); told.Text("status") != user.StatusResetPending || told.Text("resetGroupId") != next || told.Text("mlsGroupId") != s.group.ID {
		t.Errorf("the reset is told as %s", told.JSON())
	}
	if _, err := s.registry.Reset(t.Context(), s.at, bobID, mlstest.NewGroupWith(next, s.bob).Info(s.bob)); err != nil {
		t.Fatal(err)
	}
	over := s.takeOwed()
	wantOwed(t, "its end", over, bobID+" Update OrderedCollection")
	told := over[0].object().Sub("lwMetadata")
	if generation, _ := told.Count("mlsGeneration"); told.Text("status") != user.StatusActive || told.Text("mlsGroupId") != next || generation != 1 || told["resetGroupId"] != nil {
		t.Errorf("its end is told as %s", told.JSON())
	}
}

// The host sends nothing to a member that it has blocked. It refuses a commit that adds an actor
// who cannot be found.
func TestWhoIsBlockedOrUnknownIsOwedNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.takeOwed()
	err := s.store.Write(t.Context(), s.user, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.ChangeAudience(ctx); err != nil {
			return err
		}
		return tx.Blocks.Add(ctx, user.Block{Actor: bobID, Direction: user.Outbound, Activity: aliceID + "/activities/1"}, s.now())
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.send(s.alice, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	wantOwed(t, "a message", s.takeOwed())
	s.expectRefused(s.bob)
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice(carolID, time.Now())}})
	if _, err := s.send(s.alice, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	for _, o := range s.takeOwed() {
		if names := fmt.Sprint(o.Activity["to"], o.object()["to"]); names != "["+carolID+"] ["+carolID+"]" {
			t.Errorf("a shared inbox is told to hand a message to %s", names)
		}
	}
	r, _ := s.request(s.alice, s.group, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice("https://gone.example/users/gil", time.Now())}})
	_, err = s.registry.Commit(t.Context(), s.at, r)
	s.wantRefused("a device of nobody", err, fault.Unprocessable, "actor_unknown")
	if got := s.takeOwed(); len(got) > 0 {
		t.Errorf("of a refused commit is owed %v", got)
	}
}
