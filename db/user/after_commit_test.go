package user_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// heard collects the commits that a subscriber gets.
type heard struct {
	mu  sync.Mutex
	all []user.Commit
}

func (h *heard) Committed(_ context.Context, c user.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, c)
}

func (h *heard) commits() []user.Commit {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

func addEvent(ctx context.Context, tx *user.Tx) error { return tx.Events.Add(ctx, event(1)) }

// Each subscriber is called once, in the order of the subscriptions, before Write returns. By then
// the commit can be read, and Write holds no connection that a subscriber could wait for.
func TestSubscribersAreToldInOrderBetweenTheCommitAndTheWriter(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var order []string
	tell := func(name string) user.Subscriber {
		return user.Subscriber{Name: name, Committed: func(ctx context.Context, commit user.Commit) {
			err := c.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
				events, err := tx.Events.List(ctx, 0, 10)
				if len(events) != 1 || len(commit.Events) != 1 || events[0].Seq != commit.Events[0].Seq || commit.User != u {
					t.Errorf("%s is told of %+v, and reads %+v", name, commit, events)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			order = append(order, name)
		}}
	}
	c.Subscribe(tell("first"), tell("second"))
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.As(pool.Owner).Write(ctx, u, addEvent); err != nil { // a view by As shares the subscribers
		t.Fatal(err)
	}
	cancel()
	order = append(order, "writer")
	if want := []string{"first", "second", "writer"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

func TestNobodyIsToldOfWhatWasRolledBack(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var h heard
	c.Subscribe(user.Subscriber{Name: "test", Committed: h.Committed})
	refused := errors.New("refused")
	for name, work := range map[string]func(context.Context, *user.Tx) error{
		"the work fails": func(ctx context.Context, tx *user.Tx) error { return errors.Join(addEvent(ctx, tx), refused) },
		"the work hides that a statement failed": func(ctx context.Context, tx *user.Tx) error {
			_ = user.Exec(ctx, tx, `SELECT 1 / 0`)
			return addEvent(ctx, tx)
		},
		"a row that is sent with the commit fails": func(ctx context.Context, tx *user.Tx) error {
			return tx.Events.Add(ctx, user.Event{Type: "x", Source: "ap", Payload: []byte("no JSON"), At: now})
		},
	} {
		if err := c.Write(t.Context(), u, work); err == nil {
			t.Errorf("%s: Write succeeds", name)
		}
	}
	if err := c.Read(t.Context(), u, func(context.Context, *user.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if all := h.commits(); len(all) != 0 {
		t.Errorf("subscribers are told of %+v", all)
	}
}

func TestATransactionThatRunsAgainIsToldOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var h heard
	c.Subscribe(user.Subscriber{Name: "test", Committed: h.Committed})
	tries := 0
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := addEvent(ctx, tx); err != nil {
			return err
		}
		if tries++; tries < 3 {
			return user.Exec(ctx, tx, `DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$`)
		}
		return nil
	})
	if all := h.commits(); len(all) != 1 || len(all[0].Events) != 1 || all[0].Everything {
		t.Errorf("after %d tries subscribers are told of %+v", tries, all)
	}
}

// If the connection is lost during the commit, the writer does not know whether the database
// committed. Subscribers are told that anything may have changed.
func TestWhenTheOutcomeIsUnknownSubscribersAreToldSo(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	run(t, database, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$`)
	run(t, database, `CREATE CONSTRAINT TRIGGER die AFTER INSERT ON event_outbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`)
	var h heard
	c.Subscribe(user.Subscriber{Name: "test", Committed: h.Committed})
	if err := c.Write(t.Context(), u, addEvent); err == nil {
		t.Error("Write succeeds")
	}
	if all := h.commits(); len(all) != 1 || !all[0].Unknown || !all[0].Everything || !all[0].Owes || all[0].User != u || all[0].Events != nil {
		t.Errorf("subscribers are told %+v, want that anything may have happened", all)
	}
}

func TestASubscriberCannotFailOrHoldUpAWrite(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var h heard
	release := make(chan struct{})
	stuck := make(chan struct{})
	c.Subscribe(
		user.Subscriber{Name: "panics", Committed: func(context.Context, user.Commit) { panic("a bug") }},
		user.Subscriber{Name: "waits", Committed: func(ctx context.Context, _ user.Commit) { <-ctx.Done() }},
		user.Subscriber{Name: "is stuck", Committed: func(context.Context, user.Commit) { <-release; close(stuck) }},
		user.Subscriber{Name: "hears", Committed: h.Committed})
	start := time.Now()
	write(t, c, u, addEvent)
	if took := time.Since(start); took < 2*user.SubscriberTime {
		t.Errorf("the write took %v, and did not wait for its subscribers", took)
	}
	if n := len(h.commits()); n != 1 {
		t.Errorf("the last subscriber is told %d times, want once", n)
	}
	close(release)
	<-stuck
}

// Several writers commit concurrently, for one user or for several. Subscribers get each commit
// once, with the event numbers that the database assigned.
func TestEveryCommitOfConcurrentWritersIsToldOnce(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	users := []vocab.Username{dbtest.User(t, c, "alice"), dbtest.User(t, c, "bob")}
	var h heard
	c.Subscribe(user.Subscriber{Name: "test", Committed: h.Committed})
	const writers, writes = 4, 15
	var all sync.WaitGroup
	for _, u := range users {
		for w := range writers {
			all.Go(func() {
				for n := range writes {
					err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
						for i := range 3 {
							if err := tx.Events.Add(ctx, event(100*(writes*w+n)+i)); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	told := map[vocab.Username]map[int64]string{}
	for _, commit := range h.commits() {
		if len(commit.Events) != 3 {
			t.Errorf("a commit tells of %d events, want its 3", len(commit.Events))
		}
		for n, e := range commit.Events {
			if n > 0 && e.Seq != commit.Events[n-1].Seq+1 {
				t.Errorf("events %d and %d of one commit", commit.Events[n-1].Seq, e.Seq)
			}
			if told[commit.User] == nil {
				told[commit.User] = map[int64]string{}
			}
			if _, twice := told[commit.User][e.Seq]; twice {
				t.Errorf("event %d of %s is told twice", e.Seq, commit.User)
			}
			told[commit.User][e.Seq] = string(e.Payload)
		}
	}
	for _, u := range users {
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			stored, err := tx.Events.List(ctx, 0, 1000)
			if len(stored) != 3*writers*writes || len(told[u]) != len(stored) {
				t.Errorf("%d events of %s are stored, %d told", len(stored), u, len(told[u]))
			}
			for _, e := range stored {
				if told[u][e.Seq] != string(e.Payload) {
					t.Errorf("event %d is told as %s, stored as %s", e.Seq, told[u][e.Seq], e.Payload)
				}
			}
			return err
		})
	}
}

// A commit lists exactly the pages and objects that readers may now see changed. Frequent work
// never reports that everything may have changed.
func TestACommitSaysWhatItTouched(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const (
		note     = bob + "/notes/1"
		activity = note + "/activity"
		announce = vocab.ID("https://other.example/announce")
	)
	peer := actorOf(t, bob, ``)
	for _, tt := range []struct {
		name string
		work func(context.Context, *user.Tx) error
		want user.Touched
	}{
		{"a post", func(ctx context.Context, tx *user.Tx) error { return addNote(ctx, tx, bob, 1, now) },
			user.Touched{Pages: user.MainFeed | user.NotificationsFeed | user.RequestsFeed, Objects: []vocab.ID{note, activity}}},
		{"a post that is there", func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: note, Author: bob, Published: now, Raw: []byte(`{}`)})
			return err
		}, user.Touched{}},
		{"an activity of the user's", func(ctx context.Context, tx *user.Tx) error {
			return tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: "https://here.example/1", Direction: user.Outbound, Type: "Like", Actor: "https://here.example/alice", Object: note, Published: now, Raw: []byte(`{}`)})
		}, user.Touched{Pages: user.OutboxPages, Objects: []vocab.ID{"https://here.example/1"}}},
		{"a reaction", func(ctx context.Context, tx *user.Tx) error {
			return tx.Reactions.Set(ctx, user.Reaction{Object: note, Actor: carol, Kind: user.Review, Type: "Like", Activity: announce}, now)
		}, user.Touched{Objects: []vocab.ID{note}}},
		{"its end", func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Reactions.Remove(ctx, announce, carol)
			return err
		}, user.Touched{Objects: []vocab.ID{note}}},
		{"a follower", func(ctx context.Context, tx *user.Tx) error {
			return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: user.Follower, Status: user.Accepted, Activity: activity}, now)
		}, user.Touched{Pages: user.FollowersPages, Actors: []vocab.ID{bob}}},
		{"an actor", func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, peer, now) }, user.Touched{Actors: []vocab.ID{bob}}},
		{"an actor that has not changed", func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, peer, now) }, user.Touched{}},
		{"a deletion", func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Bury(ctx, user.Grave{URI: note, Author: bob, Tombstone: []byte(`{"type":"Tombstone"}`)}, now)
			return err
		}, user.Touched{Pages: user.MainFeed | user.NotificationsFeed | user.RequestsFeed | user.OutboxPages | user.FeaturedPages, Objects: []vocab.ID{note, activity}}},
		{"a group", func(ctx context.Context, tx *user.Tx) error {
			return tx.Groups.Add(ctx, user.Group{ID: uuid.New(), Name: "friends", URI: "https://here.example/friends"}, now)
		}, user.Touched{Everything: true}},
		{"what no reader sees", func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Activities.Claim(ctx, by(bob, "https://peer.example/claimed")); err != nil {
				return err
			}
			if err := tx.Lock(ctx, "thing"); err != nil {
				return err
			}
			return tx.Audits.Add(ctx, user.Audit{At: now, Action: "CreateNote", Params: []byte(`{}`), Outcome: "ok"})
		}, user.Touched{}},
	} {
		got := committed(t, c, u, tt.work).Touched
		slices.Sort(got.Objects)
		got.Objects = slices.Compact(got.Objects)
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s touches %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestACommitTellsOfTheEventThatCountsWithheldOnes(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	withhold := func(ctx context.Context, tx *user.Tx) error {
		tx.Events.Withhold(user.Event{Type: "events.withheld", Source: "ap", Payload: []byte(`{"count":1}`), At: now})
		return addEvent(ctx, tx)
	}
	first, second := committed(t, c, u, withhold), committed(t, c, u, withhold)
	if e := first.Events; len(e) != 2 || e[0].Seq+1 != e[1].Seq || e[1].Type != "events.withheld" || !strings.Contains(string(e[1].Payload), "1") {
		t.Errorf("the first commit tells of %+v, want the event and the one that counts", e)
	}
	if e := second.Events; len(e) != 1 || e[0].Type == "events.withheld" {
		t.Errorf("the second commit tells of %+v, want the event alone", e)
	}
}
