package engine_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// standing returns the states of friendOf and closeFriendOf between a user and an actor, as the
// API shows them.
func standing(t *testing.T, u *enginetest.User, actor string) [2]string {
	t.Helper()
	var found struct {
		Relationship struct{ FriendOf, CloseFriendOf string }
	}
	u.Ask(t, http.MethodGet, "/api/actors?uri="+url.QueryEscape(actor), nil).Decode(t, &found)
	return [2]string{found.Relationship.FriendOf, found.Relationship.CloseFriendOf}
}

// waiting returns the ids of the Offers that wait for a user. The keys are their types.
func waiting(t *testing.T, u *enginetest.User) map[string]string {
	t.Helper()
	var page struct {
		Items []struct{ Type, ActivityURI string }
	}
	u.Ask(t, http.MethodGet, "/api/relationships?direction=received&status=pending", nil).Decode(t, &page)
	offers := map[string]string{}
	for _, i := range page.Items {
		offers[i.Type] = i.ActivityURI
	}
	return offers
}

// awaitIn waits until an activity is in a user's feeds. It returns the feeds that have the
// activity.
func awaitIn(t *testing.T, u *enginetest.User, activity string) (feeds []string) {
	t.Helper()
	enginetest.Eventually(t, "the letter came", func() bool {
		for _, feed := range []string{"main", "requests"} {
			if slices.ContainsFunc(u.Feed(t, feed), func(i enginetest.Item) bool { return i.ActivityURI == activity }) {
				feeds = append(feeds, feed)
			}
		}
		return len(feeds) > 0
	})
	return feeds
}

// Two users of two servers become friends and end the friendship. One asks and the other accepts
// or refuses. Both ask at once. Either of them ends it.
func friendsAreMadeAndLost(t *testing.T, a, b *enginetest.Instance) {
	fay, finn := a.CreateUser(t, "fay"), b.CreateUser(t, "finn")
	between := func(what string, fays, finns [2]string) {
		t.Helper()
		enginetest.Eventually(t, what, func() bool { return standing(t, fay, finn.ID) == fays && standing(t, finn, fay.ID) == finns })
	}
	fay.Do(t, "SendFriendRequest", map[string]any{"actorUri": finn.Handle, "relationshipType": "friendOf"})
	fay.Do(t, "SendFriendRequest", map[string]any{"actorUri": finn.ID, "relationshipType": "lw:closeFriendOf"})
	between("finn is asked for both", [2]string{"sent", "sent"}, [2]string{"received", "received"})
	offers := waiting(t, finn)
	finn.Await(t, "notifications", "the friend request", func(i enginetest.Item) bool { return i.ActivityURI == offers["friendOf"] })
	finn.Do(t, "AcceptFriendRequest", map[string]any{"offerId": offers["friendOf"]})
	finn.Do(t, "RejectFriendRequest", map[string]any{"offerId": offers["closeFriendOf"]})
	between("finn is a friend, and no close one", [2]string{"accepted", "none"}, [2]string{"accepted", "none"})

	letter := finn.Do(t, "SendMessage", map[string]any{"recipientUri": fay.ID, "content": "a friend writes"})
	fay.Await(t, "main", "the letter of a friend", func(i enginetest.Item) bool { return i.ActivityURI == letter.ActivityID })
	fay.Configure(t, `{"permissions":{"insecure_dm":{"any":["closeFriendOf"]}}}`)
	enginetest.Eventually(t, "a friend who is no close one is a stranger", func() bool {
		letter := finn.Do(t, "SendMessage", map[string]any{"recipientUri": fay.ID, "content": "and another one"})
		return slices.ContainsFunc(awaitIn(t, fay, letter.ActivityID), func(feed string) bool { return feed == "requests" })
	})

	finn.Do(t, "SendFriendRequest", map[string]any{"actorUri": fay.ID, "relationshipType": "closeFriendOf"})
	between("fay is asked in turn", [2]string{"accepted", "received"}, [2]string{"accepted", "sent"})
	fay.Do(t, "AcceptFriendRequest", map[string]any{"actorUri": finn.ID})
	between("both are close friends", [2]string{"accepted", "accepted"}, [2]string{"accepted", "accepted"})
	fay.Do(t, "RemoveRelationship", map[string]any{"actorUri": finn.ID, "relationshipType": "closeFriendOf"})
	finn.Do(t, "RemoveRelationship", map[string]any{"actorUri": fay.ID, "relationshipType": "friendOf"})
	between("each ends what the other had asked for", [2]string{"none", "none"}, [2]string{"none", "none"})

	fay.Do(t, "SendFriendRequest", map[string]any{"actorUri": finn.ID, "relationshipType": "friendOf"})
	finn.Try(t, "SendFriendRequest", map[string]any{"actorUri": fay.ID, "relationshipType": "friendOf"}) // the engine refuses it if fay's request has arrived already
	enginetest.Eventually(t, "whoever of them is asked answers", func() bool {
		if offer := waiting(t, finn)["friendOf"]; offer != "" {
			finn.Do(t, "AcceptFriendRequest", map[string]any{"offerId": offer})
		}
		return standing(t, fay, finn.ID)[0] == "accepted" && standing(t, finn, fay.ID)[0] == "accepted"
	})
	fay.Do(t, "Block", map[string]any{"actorUri": finn.ID})
	between("a Block ends it", [2]string{"none", "none"}, [2]string{"none", "none"})
}
