package user_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A friendship with an actor, a close friendship with it and a follow of it do not depend on each
// other. No collection lists friendships.
func TestFriendshipsStandBesideEachOther(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, r := range []user.Relationship{
			{Type: user.Following, Status: user.Accepted, Activity: aliceID + "/follow"},
			{Type: user.FriendOf, Status: user.Pending, Activity: bob + "/offer", Direction: user.Inbound, Host: "peer.example"},
			{Type: user.CloseFriendOf, Status: user.Accepted, Activity: aliceID + "/offer", Direction: user.Outbound},
		} {
			r.Actor = bob
			if err := tx.Relationships.Set(ctx, r, now.Add(time.Duration(n)*time.Second)); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		is, err := tx.Relationships.FindStanding(ctx, bob)
		if err != nil {
			return err
		}
		friend, closeFriend := is.Friendship[user.FriendOf], is.Friendship[user.CloseFriendOf]
		if is.Following != user.Accepted || friend.Status != user.Pending || friend.Direction != user.Inbound || closeFriend.Status != user.Accepted || closeFriend.Direction != user.Outbound {
			t.Errorf("between the two stands %+v", is)
		}
		if n, err := tx.Relationships.Count(ctx, user.Following); err != nil || n != 1 {
			t.Errorf("%d are followed, %v; want 1", n, err)
		}
		offers, err := tx.Relationships.FindOffersOf(ctx, bob)
		if err != nil || len(offers) != 1 || offers[0].Type != user.FriendOf {
			t.Errorf("offers of bob's: %+v, %v; want the one that he made", offers, err)
		}
		if named, err := tx.Relationships.FindOffersBy(ctx, aliceID+"/offer"); err != nil || len(named) > 0 {
			t.Errorf("alice's own Offer is one of others: %+v, %v", named, err)
		}
		n, err := tx.Relationships.CountOffers(ctx, "peer.example")
		if err != nil || n != (user.OfferCounts{OfHost: 1, All: 1}) {
			t.Errorf("%+v wait, %v; want one of the domain, and in all", n, err)
		}
		return nil
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		ended, err := tx.Relationships.End(ctx, user.FriendOf, bob, now)
		if err != nil || !ended {
			t.Errorf("Relationships.End = %t, %v", ended, err)
		}
		left, err := tx.Relationships.ListAll(ctx, user.Ties{}, nil, 10)
		if kinds := []string{left[0].Type, left[1].Type}; err != nil || len(left) != 2 || !slices.Equal(kinds, []string{user.CloseFriendOf, user.Following}) {
			t.Errorf("left are %+v, %v", left, err)
		}
		return err
	})
}

// An actor that offers friendship becomes a contact only when the user accepts. An offer lapses
// after a month.
func TestAnOfferWaitsForAMonthAndMakesNoContact(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	h := &history{t, c, dbtest.User(t, c, "alice")}
	const asks, friend, asked vocab.ID = "https://peer.example/asks", "https://peer.example/friend", "https://peer.example/asked"
	day := 24 * time.Hour
	for _, r := range []user.Relationship{
		{Actor: asks, Type: user.FriendOf, Status: user.Pending, Direction: user.Inbound},
		{Actor: asks, Type: user.CloseFriendOf, Status: user.Pending, Direction: user.Inbound},
		{Actor: friend, Type: user.FriendOf, Status: user.Accepted, Direction: user.Inbound},
		{Actor: asked, Type: user.FriendOf, Status: user.Pending, Direction: user.Outbound},
	} {
		since := time.Now().Add(-31 * day)
		if r.Type == user.CloseFriendOf {
			since = time.Now().Add(-29 * day)
		}
		r.Activity = r.Actor + "/offer"
		write(t, c, h.u, func(ctx context.Context, tx *user.Tx) error { return tx.Relationships.Set(ctx, r, since) })
	}
	for _, actor := range []vocab.ID{asks, friend, asked} {
		h.posts(old, actor, "letter", map[string]any{"to": aliceID})
	}
	if _, err := c.Prune(t.Context(), h.u, user.Pruning{Me: aliceID, Before: time.Now().Add(-180 * day), Deliveries: user.DeliveryRetention{Now: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	left := h.left()
	for actor, stays := range map[vocab.ID]bool{asks: false, friend: true, asked: true} {
		if slices.Contains(left, "object "+string(actor)+"/letter") != stays {
			t.Errorf("the letter of %s stays: %t, want %t", actor, !stays, stays)
		}
	}
	read(t, c, h.u, func(ctx context.Context, tx *user.Tx) error {
		waiting, err := tx.Relationships.FindOffersOf(ctx, asks)
		if err != nil || len(waiting) != 1 || waiting[0].Type != user.CloseFriendOf {
			t.Errorf("waiting are %+v, %v; want the Offer of four weeks ago", waiting, err)
		}
		for _, actor := range []vocab.ID{friend, asked} {
			if r, err := tx.Relationships.Find(ctx, user.FriendOf, actor); err != nil || r == nil {
				t.Errorf("%s: %+v, %v; want it kept", actor, r, err)
			}
		}
		return nil
	})
}

// A Follow waits for the user for 90 days, and makes no follow then. The removed Follow has ended.
func TestAFollowWaitsForThreeMonths(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	day, now := 24*time.Hour, time.Now()
	since := map[vocab.ID]user.Relationship{}
	for actor, r := range map[vocab.ID]user.Relationship{
		"https://peer.example/old":    {Status: user.Pending, CreatedAt: now.Add(-91 * day)},
		"https://peer.example/new":    {Status: user.Pending, CreatedAt: now.Add(-89 * day)},
		"https://peer.example/friend": {Status: user.Accepted, CreatedAt: now.Add(-91 * day)},
	} {
		r.Actor, r.Type, r.Activity = actor, user.Follower, actor+"/follow"
		since[actor] = r
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Relationships.Set(ctx, r, r.CreatedAt) })
	}
	if _, err := c.Prune(t.Context(), u, user.Pruning{Me: aliceID, Before: now.Add(-180 * day), Deliveries: user.DeliveryRetention{Now: now}}); err != nil {
		t.Fatal(err)
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for actor, r := range since {
			left, err := tx.Relationships.Find(ctx, user.Follower, actor)
			if err != nil {
				return err
			}
			ended, err := tx.Activities.FindEnd(ctx, user.Owned{ID: r.Activity, Actor: actor})
			if err != nil {
				return err
			}
			if goes := actor == "https://peer.example/old"; (left == nil) != goes || ended.IsZero() == goes {
				t.Errorf("%s: is gone: %t, ended at %v, want gone: %t", actor, left == nil, ended, goes)
			}
		}
		return nil
	})
}
