package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestABlockEndsTheFollowsAndTellsNoMore(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.must("Follow", map[string]any{"actorUri": carol}) // carol follows alice
	d.owed()
	wakes, events := d.wakes.Load(), len(d.events())
	r, err := d.dispatch("Block", map[string]any{"actorUri": carol})
	if err != nil || r.Job != nil {
		t.Fatalf("job %+v, %v; want none: the Block stays here", r.Job, err)
	}
	rows := d.owed()
	sent := make([]string, len(rows))
	for i, row := range rows {
		sent[i] = row.Type + " to " + string(row.Inbox)
	}
	if diff := cmp.Diff([]string{"Undo to " + carol + "/inbox", "Reject to " + carol + "/inbox"}, sent); diff != "" {
		t.Error(diff)
	}
	if got, want := d.events()[events:], []string{"undo.sent", "reject.sent", "block.sent", "relationship.changed"}; !slices.Equal(got, want) {
		t.Errorf("events = %q, want %q", got, want)
	}
	if d.wakes.Load() == wakes {
		t.Error("the dispatcher sleeps on, want it awake")
	}
	d.read(func(ctx context.Context, tx *user.Tx) error {
		for _, kind := range []string{user.Follower, user.Following} {
			if rel, err := tx.Relationships.Find(ctx, kind, carol); err != nil || rel != nil {
				t.Errorf("%s: %+v, %v; want none", kind, rel, err)
			}
		}
		return nil
	})
	d.must("CreateNote", map[string]any{"content": "hi", "visibility": "followers"})
	if got := inboxes(d.owed()); !slices.Equal(got, []string{dan + "/inbox"}) {
		t.Errorf("a note for followers goes to %q, want dan alone", got)
	}
}

// When a relationship of the user changes, the user's other programs get an event that names the
// other actor.
func TestAChangedRelationshipNamesTheOtherActor(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.befriend(d.world.actors[bob], user.Pending)
	d.must("AcceptFollow", map[string]any{"actorUri": bob})
	d.must("Follow", map[string]any{"actorUri": bob})
	d.must("Unfollow", map[string]any{"actorUri": bob})
	d.must("Block", map[string]any{"actorUri": bob})
	d.must("Unblock", map[string]any{"actorUri": bob})
	var told []string
	d.read(func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Events.List(ctx, 0, 100)
		for _, e := range all {
			var p struct{ ActivityType, ActorURI, ObjectURI, Trust string }
			if e.Type == "relationship.changed" {
				err = errors.Join(err, json.Unmarshal(e.Payload, &p))
				told = append(told, strings.Join([]string{p.ActivityType, p.ActorURI, p.ObjectURI, p.Trust}, " "))
			}
		}
		return err
	})
	var want []string
	for _, kind := range []string{"Accept", "Follow", "Undo", "Block", "Undo"} {
		want = append(want, kind+" "+string(me)+" "+bob+" self")
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	d.group("friends")
	before := len(d.events())
	d.must("Follow", map[string]any{"actorUri": bob})
	d.must("AddToGroup", map[string]any{"name": "friends", "actorUri": bob})
	if got := d.events()[before:]; !slices.Equal(got, []string{"follow.sent", "relationship.changed", "add.sent"}) {
		t.Errorf("events %q, want none of a group that a relationship has changed", got)
	}
}

// A block stores a copy of the blocked actor for the list of blocks. If the actor cannot be
// fetched, it is blocked without a copy.
func TestABlockKeepsACopyOfTheActor(t *testing.T) {
	t.Parallel()
	d := town(t)
	const unknown = "https://down.example/users/x"
	d.must("Block", map[string]any{"actorUri": bob})
	d.must("Block", map[string]any{"actorUri": unknown})
	d.read(func(ctx context.Context, tx *user.Tx) error {
		cards, err := tx.Actors.FindCards(ctx, []vocab.ID{bob, unknown})
		if len(cards) != 1 || cards[bob].Handle != "@bob@p.example" {
			t.Errorf("the cards are %+v", cards)
		}
		return err
	})
}

func TestNewWordsOfAPrivatePostDoNotGoToBlockedActors(t *testing.T) {
	t.Parallel()
	d := town(t)
	message := d.must("SendMessage", map[string]any{"recipientUri": bob, "content": "psst"}).Object
	d.must("Block", map[string]any{"actorUri": bob})
	d.owed()
	d.must("UpdateObject", map[string]any{"objectId": message, "content": "never mind"})
	if got := inboxes(d.owed()); len(got) > 0 {
		t.Errorf("Update goes to %q, want nobody", got)
	}
	d.must("DeleteObject", map[string]any{"objectId": message})
	if got := inboxes(d.owed()); !slices.Equal(got, []string{bob + "/inbox"}) {
		t.Errorf("Delete goes to %q, want bob: he has it", got)
	}
}

func TestAnAnswerToTheUsersOwnLetterDoesNotGoToBlockedActors(t *testing.T) {
	t.Parallel()
	d := town(t)
	letter := d.must("CreateNote", map[string]any{"content": "psst", "visibility": "direct", "to": []string{bob, carol}}).Object
	d.must("Block", map[string]any{"actorUri": bob})
	d.owed()
	answer := d.must("Reply", map[string]any{"objectId": letter, "content": "bob need not know"})
	if got := inboxes(d.owed()); !slices.Equal(got, []string{carol + "/inbox"}) {
		t.Errorf("the answer goes to %q, want carol alone", got)
	}
	if got := string(answer.Raw); strings.Contains(got, bob) {
		t.Errorf("bob is named: %s", got)
	}
	d.refused("CreateNote", map[string]any{"content": "but this", "inReplyTo": letter, "visibility": "direct", "to": []string{bob}}, fault.Conflict, "blocked")
}

func TestAnAnswerThatNamesItsRecipientsGoesToNobodyElse(t *testing.T) {
	t.Parallel()
	d := town(t)
	public := d.note(map[string]any{"content": "bob says so", "to": []string{bob}, "visibility": "public"})
	letter := d.note(map[string]any{"content": "psst", "to": []string{bob, dan}, "visibility": "direct"})
	friends, family := d.group("friends", bob), d.group("family", carol)
	toFriends := d.note(map[string]any{"content": "hi", "to": []string{string(friends)}})
	d.owed()
	for _, c := range []struct {
		parent vocab.ID
		to     string
	}{{public, carol}, {letter, carol}, {toFriends, string(family)}} {
		a := d.must("CreateNote", map[string]any{"content": "between us", "visibility": "direct", "to": []string{c.to}, "inReplyTo": c.parent})
		if got := inboxes(d.owed()); !slices.Equal(got, []string{carol + "/inbox"}) || strings.Contains(string(a.Raw), bob) {
			t.Errorf("the answer goes to %q, want carol alone: %s", got, a.Raw)
		}
	}
	d.refused("Reply", map[string]any{"objectId": public, "content": "between us", "visibility": "direct"}, fault.Unprocessable, "invalid_parameter")
	d.must("Reply", map[string]any{"objectId": letter, "content": "and"})
	if got := inboxes(d.owed()); !slices.Equal(got, []string{bob + "/inbox", dan + "/inbox"}) {
		t.Errorf("an answer to all goes to %q", got)
	}
}

func TestNobodyFollowsWhereABlockStands(t *testing.T) {
	t.Parallel()
	d := town(t)
	refused := func(kind fault.Kind, code string) {
		t.Helper()
		_, err := d.dispatch("Follow", map[string]any{"actorUri": bob})
		if fault.KindOf(err) != kind || codeOf(err) != code {
			t.Errorf("Follow: %v, want %s", err, code)
		}
	}
	d.must("Block", map[string]any{"actorUri": bob})
	refused(fault.Conflict, "blocked")
	d.must("Unblock", map[string]any{"actorUri": bob})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Blocks.Add(ctx, user.Block{Actor: bob, Direction: user.Inbound, Activity: bob + "/blocks/1"}, d.Now())
	})
	refused(fault.Forbidden, "blocked_by")
	d.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Blocks.Remove(ctx, user.Inbound, bob)
		return err
	})
	d.must("Follow", map[string]any{"actorUri": bob})
}

func TestABlockWhoseActivityWasPrunedCanBeTakenBack(t *testing.T) {
	t.Parallel()
	d := town(t)
	b := d.must("Block", map[string]any{"actorUri": bob})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Activities.Remove(ctx, user.Owned{ID: b.URI, Actor: b.Actor})
	})
	undo := mustDoc(t, d.must("Unblock", map[string]any{"actorUri": bob}).Raw)
	if o := undo.Sub("object"); o.Text("id") != string(b.URI) || o.Text("type") != "Block" || o.Text("object") != bob {
		t.Errorf("Undo of %s, want it to say what it takes back", o.JSON())
	}
}

func TestManyAreBlockedAtOnce(t *testing.T) {
	t.Parallel()
	d := town(t)
	var all sync.WaitGroup
	for _, who := range []string{bob, carol, dan, "https://r.example/users/1", "https://r.example/users/2", "https://r.example/users/3"} {
		all.Go(func() {
			if _, err := d.dispatch("Block", map[string]any{"actorUri": who}); err != nil {
				t.Errorf("Block of %s: %v", who, err)
			}
		})
	}
	all.Wait()
	deadlocks := 0
	if err := dbtest.SQL(t, d.c, d.alice).QueryRowContext(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks); err != nil || deadlocks > 0 {
		t.Errorf("%d deadlocks, %v; want none", deadlocks, err)
	}
}
