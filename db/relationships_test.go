package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// actorOf parses an actor of this id, with further fields.
func actorOf(t testing.TB, id vocab.ID, fields string) *vocab.Actor {
	t.Helper()
	a, err := vocab.ParseActor([]byte(`{"id":"` + string(id) + `","type":"Person","preferredUsername":"x","inbox":"` + string(id) + `/inbox"` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAFollowIsOneRowWhateverComesAboutIt(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	set := func(kind, status string, activity vocab.ID, at time.Time) {
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			return tx.SetRelationship(ctx, db.Relationship{Actor: bob, Type: kind, Status: status, Activity: activity}, at)
		})
	}
	set(db.Follower, db.Pending, bob+"/follow/1", now)
	set(db.Follower, db.Accepted, bob+"/follow/2", now.Add(time.Hour))
	set(db.Following, db.Pending, bob+"/follow/3", now)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		r, err := tx.Relationship(ctx, db.Follower, bob)
		if err != nil || r == nil || r.Status != db.Accepted || r.Activity != bob+"/follow/2" || !r.CreatedAt.Equal(now) {
			t.Errorf("Relationship = %+v, %v", r, err)
		}
		if r, err := tx.RelationshipsBy(ctx, db.Follower, bob+"/follow/1"); len(r) != 0 || err != nil {
			t.Errorf("RelationshipsBy a replaced Follow = %+v, %v", r, err)
		}
		if r, err := tx.RelationshipsBy(ctx, db.Following, bob+"/follow/3"); len(r) != 1 || err != nil {
			t.Errorf("RelationshipsBy = %+v, %v", r, err)
		}
		if n, err := tx.CountRelationships(ctx, db.Follower); n != 1 || err != nil {
			t.Errorf("CountRelationships = %d, %v", n, err)
		}
		if n, err := tx.CountRelationships(ctx, db.Following); n != 0 || err != nil { // pending
			t.Errorf("CountRelationships = %d, %v", n, err)
		}
		for _, want := range []bool{true, false} {
			if had, err := tx.EndRelationship(ctx, db.Follower, bob); had != want || err != nil {
				t.Errorf("EndRelationship = %t, %v; want %t", had, err, want)
			}
		}
		if r, err := tx.Relationship(ctx, db.Following, bob); r == nil || err != nil {
			t.Errorf("the other direction = %+v, %v", r, err)
		}
		return nil
	})
}

func TestFollowersComeInPages(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var want []vocab.ID
	for n := range 7 {
		id := vocab.ID(fmt.Sprint("https://peer.example/users/", n))
		want = append(want, id)
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			return tx.SetRelationship(ctx, db.Relationship{Actor: id, Type: db.Follower, Status: db.Accepted, Activity: id + "/follow"}, now)
		})
	}
	slices.Reverse(want)
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		var got []vocab.ID
		for place := (*db.Place)(nil); ; {
			rows, err := tx.Relationships(ctx, db.Follower, place, 3)
			if err != nil || len(rows) == 0 {
				break
			}
			for _, r := range rows {
				got = append(got, r.Actor)
				place = &db.Place{At: r.CreatedAt, ID: r.ID}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages hold %v, want %v", got, want)
		}
		return nil
	})
}

func TestFollowersDestinationsAreThoseOfTheirStoredActors(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for _, a := range []*vocab.Actor{actorOf(t, bob, ``), actorOf(t, bob, `,"endpoints":{"sharedInbox":"https://peer.example/inbox"}`), actorOf(t, carol, ``)} {
			if err := tx.SaveActor(ctx, a, now); err != nil {
				return err
			}
		}
		for id, status := range map[vocab.ID]string{bob: db.Accepted, carol: db.Pending} {
			if err := tx.SetRelationship(ctx, db.Relationship{Actor: id, Type: db.Follower, Status: status, Activity: id + "/follow"}, now); err != nil {
				return err
			}
		}
		got, err := tx.FollowerDestinations(ctx)
		if want := []db.Destination{{Actor: bob, Inbox: bob + "/inbox", SharedInbox: "https://peer.example/inbox"}}; !slices.Equal(got, want) {
			t.Errorf("FollowerDestinations = %+v, want %+v", got, want)
		}
		return err
	})
}

func TestFollowersOfOneServer(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for id, status := range map[vocab.ID]string{bob: db.Accepted, carol: db.Accepted, "https://Peer.example/users/dan": db.Accepted,
			"https://peer.example/users/eve": db.Pending, "http://peer.example/users/finn": db.Accepted, "https://peer.example.org/users/gus": db.Accepted} {
			if err := tx.SetRelationship(ctx, db.Relationship{Actor: id, Type: db.Follower, Status: status, Activity: id + "/follow"}, now); err != nil {
				return err
			}
		}
		for n, want := range map[int]int{1: 1, 10: 2} {
			got, err := tx.FollowersOf(ctx, bob.Origin(), n)
			if err != nil || len(got) != want || slices.ContainsFunc(got, func(id string) bool { return !vocab.ID(id).SameOrigin(bob) }) {
				t.Errorf("FollowersOf up to %d = %q, %v; want %d", n, got, err, want)
			}
		}
		return nil
	})
}

func TestAForgottenActorLeavesNothing(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for n, id := range []vocab.ID{bob, carol} {
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			if err := addNote(ctx, tx, id, n, now); err != nil {
				return err
			}
			if err := tx.SaveActor(ctx, actorOf(t, id, ``), now); err != nil {
				return err
			}
			if err := tx.SetReaction(ctx, db.Reaction{Object: post, Actor: id, Kind: db.Review, Type: "Like", Activity: id + "/like"}, now); err != nil {
				return err
			}
			return tx.SetRelationship(ctx, db.Relationship{Actor: id, Type: db.Follower, Status: db.Accepted, Activity: id + "/follow"}, now)
		})
	}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for _, want := range []bool{true, false} {
			if knew, err := tx.ForgetActor(ctx, bob); knew != want || err != nil {
				t.Errorf("ForgetActor = %t, %v; want %t", knew, err, want)
			}
		}
		feed, err := tx.Feed(ctx, nil, 10)
		if err != nil || len(feed) != 1 || feed[0].Actor != carol {
			t.Errorf("Feed = %+v, %v; want carol's alone", feed, err)
		}
		destinations, err := tx.FollowerDestinations(ctx)
		if err != nil || len(destinations) != 1 || destinations[0].Actor != carol {
			t.Errorf("FollowerDestinations = %+v, %v", destinations, err)
		}
		if n, err := tx.CountReactions(ctx, post, db.Review, "Like"); n != 1 || err != nil {
			t.Errorf("CountReactions = %d, %v", n, err)
		}
		return nil
	})
}

func TestAnActorHasOneReactionOfAKind(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	set := func(ctx context.Context, tx *db.Tx, kind, reaction string, n int) error {
		return tx.SetReaction(ctx, db.Reaction{Object: post, Actor: bob, Kind: kind, Type: reaction, Activity: vocab.ID(fmt.Sprint(bob, "/", n))}, now)
	}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error { return set(ctx, tx, db.Review, "Like", 1) })
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error { // within one transaction, too
		return errors.Join(set(ctx, tx, db.Review, "Like", 2), set(ctx, tx, db.Review, "Dislike", 3), set(ctx, tx, db.Announce, "Announce", 4))
	})
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for reaction, want := range map[string]int{"Like": 0, "Dislike": 1} {
			if n, err := tx.CountReactions(ctx, post, db.Review, reaction); n != want || err != nil {
				t.Errorf("%d of type %s, %v; want %d", n, reaction, err, want)
			}
		}
		for _, tt := range []struct {
			activity, actor vocab.ID
			want            bool
		}{{bob + "/1", bob, false}, {bob + "/3", carol, false}, {bob + "/3", bob, true}, {bob + "/3", bob, false}} {
			if had, err := tx.RemoveReaction(ctx, tt.activity, tt.actor); had != tt.want || err != nil {
				t.Errorf("RemoveReaction(%s) by %s = %t, %v; want %t", tt.activity, tt.actor, had, err, tt.want)
			}
		}
		if r, err := tx.Reaction(ctx, db.Reaction{Object: post, Actor: bob, Kind: db.Review}); r != nil || err != nil {
			t.Errorf("Reaction = %+v, %v", r, err)
		}
		if r, err := tx.Reaction(ctx, db.Reaction{Object: post, Actor: bob, Kind: db.Announce}); err != nil || r == nil || r.Activity != bob+"/4" {
			t.Errorf("Reaction = %+v, %v", r, err)
		}
		return nil
	})
}

func TestAnActorThatWritesItsIDInAnotherForm(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const written = "https://Peer.example/users/dan"
	dan, err := vocab.ParseActor([]byte(`{"id":"` + written + `","type":"Person","inbox":"` + written + `/inbox","followers":"` + written + `/followers"}`))
	if err != nil {
		t.Fatal(err)
	}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.SaveActor(ctx, dan, now); err != nil {
			return err
		}
		if err := tx.SetRelationship(ctx, db.Relationship{Actor: dan.ID, Type: db.Follower, Status: db.Accepted, Activity: dan.ID + "/follow"}, now); err != nil {
			return err
		}
		to, err := tx.FollowerDestinations(ctx)
		if want := []db.Destination{{Actor: "https://peer.example/users/dan", Written: written, Inbox: "https://peer.example/users/dan/inbox"}}; err != nil || !slices.Equal(to, want) {
			t.Errorf("FollowerDestinations = %+v, %v; want %+v", to, err, want)
		}
		there, err := tx.FollowersOf(ctx, dan.ID.Origin(), 2)
		if err != nil || !slices.Equal(there, []string{written}) {
			t.Errorf("FollowersOf = %q, %v; want the id as its server writes it", there, err)
		}
		again, err := tx.Actor(ctx, dan.ID)
		if err != nil || again == nil || again.Written != written || again.Followers != "https://peer.example/users/dan/followers" {
			t.Errorf("Actor = %+v, %v", again, err)
		}
		return err
	})
	if got := held(t, databaseOf(t, c, u), `SELECT uri, written, raw ->> 'followers' FROM actors`); !slices.Equal(got, []string{"(https://peer.example/users/dan,https://Peer.example/users/dan,https://peer.example/users/dan/followers)"}) {
		t.Errorf("stored %q", got)
	}
}
