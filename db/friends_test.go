package db_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Friendships stand beside each other and beside follows, and no collection lists them.
func TestFriendshipsStandBesideEachOther(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for n, r := range []db.Relationship{
			{Type: db.Following, Status: db.Accepted, Activity: aliceID + "/follow"},
			{Type: db.FriendOf, Status: db.Pending, Activity: bob + "/offer", Direction: db.Inbound, Host: "peer.example"},
			{Type: db.CloseFriendOf, Status: db.Accepted, Activity: aliceID + "/offer", Direction: db.Outbound},
		} {
			r.Actor = bob
			if err := tx.SetRelationship(ctx, r, now.Add(time.Duration(n)*time.Second)); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		is, err := tx.Standing(ctx, bob)
		if err != nil {
			return err
		}
		friend, closeFriend := is.Friendship[db.FriendOf], is.Friendship[db.CloseFriendOf]
		if is.Following != db.Accepted || friend.Status != db.Pending || friend.Direction != db.Inbound || closeFriend.Status != db.Accepted || closeFriend.Direction != db.Outbound {
			t.Errorf("between the two stands %+v", is)
		}
		if n, err := tx.CountRelationships(ctx, db.Following); err != nil || n != 1 {
			t.Errorf("%d are followed, %v; want 1", n, err)
		}
		offers, err := tx.OffersOf(ctx, bob)
		if err != nil || len(offers) != 1 || offers[0].Type != db.FriendOf {
			t.Errorf("offers of bob's: %+v, %v; want the one that he made", offers, err)
		}
		if named, err := tx.OffersBy(ctx, aliceID+"/offer"); err != nil || len(named) > 0 {
			t.Errorf("alice's own Offer is one of others: %+v, %v", named, err)
		}
		n, err := tx.CountOffers(ctx, "peer.example")
		if err != nil || n != (db.OfferCounts{OfHost: 1, All: 1}) {
			t.Errorf("%+v wait, %v; want one of the domain, and in all", n, err)
		}
		return nil
	})
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		ended, err := tx.EndRelationship(ctx, db.FriendOf, bob)
		if err != nil || !ended {
			t.Errorf("EndRelationship = %t, %v", ended, err)
		}
		left, err := tx.AllRelationships(ctx, db.Ties{}, nil, 10)
		if kinds := []string{left[0].Type, left[1].Type}; err != nil || len(left) != 2 || !slices.Equal(kinds, []string{db.CloseFriendOf, db.Following}) {
			t.Errorf("left are %+v, %v", left, err)
		}
		return err
	})
}

// Somebody who asks to be a friend is no contact by that, and does not wait for ever.
func TestAnOfferWaitsForAMonthAndMakesNoContact(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	h := &history{t, c, dbtest.User(t, c, "alice")}
	const asks, friend, asked vocab.ID = "https://peer.example/asks", "https://peer.example/friend", "https://peer.example/asked"
	day := 24 * time.Hour
	for _, r := range []db.Relationship{
		{Actor: asks, Type: db.FriendOf, Status: db.Pending, Direction: db.Inbound},
		{Actor: asks, Type: db.CloseFriendOf, Status: db.Pending, Direction: db.Inbound},
		{Actor: friend, Type: db.FriendOf, Status: db.Accepted, Direction: db.Inbound},
		{Actor: asked, Type: db.FriendOf, Status: db.Pending, Direction: db.Outbound},
	} {
		since := time.Now().Add(-31 * day)
		if r.Type == db.CloseFriendOf {
			since = time.Now().Add(-29 * day)
		}
		r.Activity = r.Actor + "/offer"
		write(t, c, h.u, func(ctx context.Context, tx *db.Tx) error { return tx.SetRelationship(ctx, r, since) })
	}
	for _, actor := range []vocab.ID{asks, friend, asked} {
		h.posts(old, actor, "letter", map[string]any{"to": aliceID})
	}
	if _, err := c.Prune(t.Context(), h.u, db.Pruning{Me: aliceID, Before: time.Now().Add(-180 * day), Deliveries: db.DeliveryRetention{Now: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	left := h.left()
	for actor, stays := range map[vocab.ID]bool{asks: false, friend: true, asked: true} {
		if slices.Contains(left, "object "+string(actor)+"/letter") != stays {
			t.Errorf("the letter of %s stays: %t, want %t", actor, !stays, stays)
		}
	}
	read(t, c, h.u, func(ctx context.Context, tx *db.Tx) error {
		waiting, err := tx.OffersOf(ctx, asks)
		if err != nil || len(waiting) != 1 || waiting[0].Type != db.CloseFriendOf {
			t.Errorf("waiting are %+v, %v; want the Offer of four weeks ago", waiting, err)
		}
		for _, actor := range []vocab.ID{friend, asked} {
			if r, err := tx.Relationship(ctx, db.FriendOf, actor); err != nil || r == nil {
				t.Errorf("%s: %+v, %v; want it kept", actor, r, err)
			}
		}
		return nil
	})
}
