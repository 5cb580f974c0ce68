package user_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAFollowIsOneRowWhateverComesAboutIt(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	set := func(kind, status string, activity vocab.ID, at time.Time) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: kind, Status: status, Activity: activity}, at)
		})
	}
	set(user.Follower, user.Pending, bob+"/follow/1", now)
	set(user.Follower, user.Accepted, bob+"/follow/2", now.Add(time.Hour))
	set(user.Following, user.Pending, bob+"/follow/3", now)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		r, err := tx.Relationships.Find(ctx, user.Follower, bob)
		if err != nil || r == nil || r.Status != user.Accepted || r.Activity != bob+"/follow/2" || !r.CreatedAt.Equal(now) {
			t.Errorf("Relationships.Find = %+v, %v", r, err)
		}
		if r, err := tx.Relationships.FindBy(ctx, user.Follower, bob+"/follow/1"); len(r) != 0 || err != nil {
			t.Errorf("RelationshipsBy a replaced Follow = %+v, %v", r, err)
		}
		if r, err := tx.Relationships.FindBy(ctx, user.Following, bob+"/follow/3"); len(r) != 1 || err != nil {
			t.Errorf("Relationships.FindBy = %+v, %v", r, err)
		}
		if n, err := tx.Relationships.Count(ctx, user.Follower); n != 1 || err != nil {
			t.Errorf("Relationships.Count = %d, %v", n, err)
		}
		if n, err := tx.Relationships.Count(ctx, user.Following); n != 0 || err != nil { // the follow is pending
			t.Errorf("Relationships.Count = %d, %v", n, err)
		}
		for _, want := range []bool{true, false} {
			if had, err := tx.Relationships.End(ctx, user.Follower, bob, now); had != want || err != nil {
				t.Errorf("Relationships.End = %t, %v; want %t", had, err, want)
			}
		}
		if r, err := tx.Relationships.Find(ctx, user.Following, bob); r == nil || err != nil {
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
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			return tx.Relationships.Set(ctx, user.Relationship{Actor: id, Type: user.Follower, Status: user.Accepted, Activity: id + "/follow"}, now)
		})
	}
	slices.Reverse(want)
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		var got []vocab.ID
		for place := (*user.Place)(nil); ; {
			rows, err := tx.Relationships.List(ctx, user.Follower, place, 3)
			if err != nil || len(rows) == 0 {
				break
			}
			for _, r := range rows {
				got = append(got, r.Actor)
				place = &user.Place{At: r.CreatedAt, ID: r.ID}
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
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, a := range []*vocab.Actor{actorOf(t, bob, ``), actorOf(t, bob, `,"endpoints":{"sharedInbox":"https://peer.example/inbox"}`), actorOf(t, carol, ``)} {
			if err := tx.Actors.Save(ctx, a, now); err != nil {
				return err
			}
		}
		for id, status := range map[vocab.ID]string{bob: user.Accepted, carol: user.Pending} {
			if err := tx.Relationships.Set(ctx, user.Relationship{Actor: id, Type: user.Follower, Status: status, Activity: id + "/follow"}, now); err != nil {
				return err
			}
		}
		got, err := tx.Relationships.FollowerDestinations(ctx)
		if want := []user.Destination{{Actor: bob, Inbox: bob + "/inbox", SharedInbox: "https://peer.example/inbox"}}; !slices.Equal(got, want) {
			t.Errorf("Relationships.FollowerDestinations = %+v, want %+v", got, want)
		}
		return err
	})
}

func TestFollowersOfOneServer(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for id, status := range map[vocab.ID]string{bob: user.Accepted, carol: user.Accepted, "https://Peer.example/users/dan": user.Accepted,
			"https://peer.example/users/eve": user.Pending, "http://peer.example/users/finn": user.Accepted, "https://peer.example.org/users/gus": user.Accepted} {
			if err := tx.Relationships.Set(ctx, user.Relationship{Actor: id, Type: user.Follower, Status: status, Activity: id + "/follow"}, now); err != nil {
				return err
			}
		}
		for n, want := range map[int]int{1: 1, 10: 2} {
			got, err := tx.Relationships.ListFollowers(ctx, bob.Origin(), n)
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
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if err := addNote(ctx, tx, id, n, now); err != nil {
				return err
			}
			if err := tx.Actors.Save(ctx, actorOf(t, id, ``), now); err != nil {
				return err
			}
			if err := tx.Reactions.Set(ctx, user.Reaction{Object: post, Actor: id, Kind: user.Review, Type: "Like", Activity: id + "/like"}, now); err != nil {
				return err
			}
			if _, err := tx.Requests.Accept(ctx, id, now); err != nil {
				return err
			}
			if err := tx.Requests.Add(ctx, user.Request{Activity: id + "/letter", Actor: id, Host: "peer.example"}, now); err != nil {
				return err
			}
			return tx.Relationships.Set(ctx, user.Relationship{Actor: id, Type: user.Follower, Status: user.Accepted, Activity: id + "/follow"}, now)
		})
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, want := range []bool{true, false} {
			if knew, err := tx.Actors.Forget(ctx, bob); knew != want || err != nil {
				t.Errorf("Actors.Forget = %t, %v; want %t", knew, err, want)
			}
		}
		feed, err := tx.Feed.List(ctx, nil, 10)
		if err != nil || len(feed) != 1 || feed[0].Actor != carol {
			t.Errorf("Feed.List = %+v, %v; want carol's alone", feed, err)
		}
		destinations, err := tx.Relationships.FollowerDestinations(ctx)
		if err != nil || len(destinations) != 1 || destinations[0].Actor != carol {
			t.Errorf("Relationships.FollowerDestinations = %+v, %v", destinations, err)
		}
		if n, err := tx.Reactions.Count(ctx, post, user.Review, "Like"); n != 1 || err != nil {
			t.Errorf("Reactions.Count = %d, %v", n, err)
		}
		if n, err := tx.Requests.Count(ctx, bob, "peer.example"); n != (user.RequestCounts{OfHost: 1, All: 1}) || err != nil {
			t.Errorf("Requests.Count = %+v, %v; want carol's request alone", n, err)
		}
		return nil
	})
}

func TestAnActorHasOneReactionOfAKind(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	set := func(ctx context.Context, tx *user.Tx, kind, reaction string, n int) error {
		return tx.Reactions.Set(ctx, user.Reaction{Object: post, Actor: bob, Kind: kind, Type: reaction, Activity: vocab.ID(fmt.Sprint(bob, "/", n))}, now)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return set(ctx, tx, user.Review, "Like", 1) })
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { // within one transaction this time
		return errors.Join(set(ctx, tx, user.Review, "Like", 2), set(ctx, tx, user.Review, "Dislike", 3), set(ctx, tx, user.Announce, "Announce", 4))
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for reaction, want := range map[string]int{"Like": 0, "Dislike": 1} {
			if n, err := tx.Reactions.Count(ctx, post, user.Review, reaction); n != want || err != nil {
				t.Errorf("%d of type %s, %v; want %d", n, reaction, err, want)
			}
		}
		for _, tt := range []struct {
			activity, actor vocab.ID
			want            bool
		}{{bob + "/1", bob, false}, {bob + "/3", carol, false}, {bob + "/3", bob, true}, {bob + "/3", bob, false}} {
			if had, err := tx.Reactions.Remove(ctx, tt.activity, tt.actor); had != tt.want || err != nil {
				t.Errorf("Reactions.Remove(%s) by %s = %t, %v; want %t", tt.activity, tt.actor, had, err, tt.want)
			}
		}
		if r, err := tx.Reactions.Find(ctx, user.Reaction{Object: post, Actor: bob, Kind: user.Review}); r != nil || err != nil {
			t.Errorf("Reactions.Find = %+v, %v", r, err)
		}
		if r, err := tx.Reactions.Find(ctx, user.Reaction{Object: post, Actor: bob, Kind: user.Announce}); err != nil || r == nil || r.Activity != bob+"/4" {
			t.Errorf("Reactions.Find = %+v, %v", r, err)
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
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Actors.Save(ctx, dan, now); err != nil {
			return err
		}
		if err := tx.Relationships.Set(ctx, user.Relationship{Actor: dan.ID, Type: user.Follower, Status: user.Accepted, Activity: dan.ID + "/follow"}, now); err != nil {
			return err
		}
		to, err := tx.Relationships.FollowerDestinations(ctx)
		if want := []user.Destination{{Actor: "https://peer.example/users/dan", Written: written, Inbox: "https://peer.example/users/dan/inbox"}}; err != nil || !slices.Equal(to, want) {
			t.Errorf("Relationships.FollowerDestinations = %+v, %v; want %+v", to, err, want)
		}
		there, err := tx.Relationships.ListFollowers(ctx, dan.ID.Origin(), 2)
		if err != nil || !slices.Equal(there, []string{written}) {
			t.Errorf("Relationships.ListFollowers = %q, %v; want the id as its server writes it", there, err)
		}
		again, err := tx.Actors.Find(ctx, dan.ID)
		if err != nil || again == nil || again.Written != written || again.Followers != "https://peer.example/users/dan/followers" {
			t.Errorf("Actors.Find = %+v, %v", again, err)
		}
		return err
	})
	if got := held(t, databaseOf(t, c, u), `SELECT uri, written, raw ->> 'followers' FROM actors`); !slices.Equal(got, []string{"(https://peer.example/users/dan,https://Peer.example/users/dan,https://peer.example/users/dan/followers)"}) {
		t.Errorf("stored %q", got)
	}
}

// A post makes the user hold its author. Servers name the author by its id or by an object that
// has the id, alone or in a list.
func TestAnActorIsHeldByWhatItWroteInEveryForm(t *testing.T) {
	t.Parallel()
	for _, form := range []string{`%q`, `[%q]`, `{"id":%q}`, `[{"type":"Person","id":%q}]`, `["https://else.example/x",{"id":%q}]`} {
		c, u := alice(t)
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: thing("1"), Published: now, Raw: fmt.Appendf(nil, `{"attributedTo":`+form+`}`, bob)})
			return err
		})
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			for actor, want := range map[vocab.ID]bool{bob: true, carol: false} {
				holds, err := tx.Actors.IsHeld(ctx, actor, "")
				if err != nil || holds != want {
					t.Errorf("with %s Actors.IsHeld(%s) = %t, %v; want %t", form, actor, holds, err, want)
				}
				by, err := tx.Objects.ListBy(ctx, actor)
				if err != nil || (len(by) == 1) != want {
					t.Errorf("with %s Objects.ListBy(%s) = %q, %v", form, actor, by, err)
				}
			}
			return nil
		})
	}
}
