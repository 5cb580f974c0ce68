package outbox

import (
	"context"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Each action about friends refuses wrong calls with the documented code. A refused call changes
// nothing.
func TestFriendActionsRefuse(t *testing.T) {
	t.Parallel()
	d := town(t)
	shut, shutOut, waits, friend := d.world.person(t, "q.example", "shut", false), d.world.person(t, "q.example", "shutout", false), d.world.person(t, "q.example", "waits", false), d.world.person(t, "q.example", "friend", false)
	d.world.fails["https://gone.example/users/x"] = fault.New(fault.Gone, "the actor was deleted")
	d.offers(shut, user.FriendOf, user.Pending)
	d.must("Block", map[string]any{"actorUri": shut.ID})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Blocks.Add(ctx, user.Block{Actor: shutOut.ID, Direction: user.Inbound, Activity: shutOut.ID + "/blocks/1"}, d.Now())
	})
	first := d.offers(waits, user.FriendOf, user.Pending)
	d.offers(waits, user.CloseFriendOf, user.Pending)
	accepted := d.offers(friend, user.FriendOf, user.Accepted)
	own := d.must("SendFriendRequest", map[string]any{"actorUri": carol, "relationshipType": "friendOf"})
	long := `"https://p.example/` + strings.Repeat("x", 3000) + `"`
	ask := func(actor string) string { return `{"actorUri":"` + actor + `","relationshipType":"friendOf"}` }
	type wrong struct {
		name, params  string
		kind          fault.Kind
		code, pointer string
	}
	actorURI := "/params/actorUri"
	answers := []wrong{
		{"nothing", `{}`, fault.Unprocessable, "invalid_parameter", "/params/offerId"},
		{"both", `{"offerId":"` + string(first) + `","actorUri":"` + string(waits.ID) + `"}`, fault.Unprocessable, "invalid_parameter", "/params/offerId"},
		{"one more parameter", `{"offerId":"` + string(first) + `","actor":"` + bob + `"}`, fault.Unprocessable, "invalid_parameter", "/params/actor"},
		{"wrong type", `{"offerId":7}`, fault.Unprocessable, "invalid_parameter", "/params/offerId"},
		{"too long", `{"offerId":` + long + `}`, fault.Unprocessable, "invalid_parameter", "/params/offerId"},
		{"no id", `{"offerId":"javascript:alert(1)"}`, fault.Unprocessable, "invalid_parameter", "/params/offerId"},
		{"her own Offer", `{"offerId":"` + string(own.URI) + `"}`, fault.NotFound, "no_friend_request", "/params"},
		{"an Offer that is not there", `{"offerId":"https://p.example/offers/9"}`, fault.NotFound, "no_friend_request", "/params"},
		{"what is no Offer", `{"offerId":"` + carol + `/follows/1"}`, fault.NotFound, "no_friend_request", "/params"},
		{"who does not ask", `{"actorUri":"` + bob + `"}`, fault.NotFound, "no_friend_request", "/params"},
		{"who is blocked", `{"actorUri":"` + string(shut.ID) + `"}`, fault.NotFound, "no_friend_request", "/params"},
		{"who asks for two things", `{"actorUri":"` + string(waits.ID) + `"}`, fault.Conflict, "ambiguous_id", actorURI},
		{"nobody", `{"actorUri":"@nobody@p.example"}`, fault.Unprocessable, "no_such_user", actorURI},
	}
	for action, all := range map[string][]wrong{
		"SendFriendRequest": {
			{"nothing", `{}`, fault.Unprocessable, "invalid_parameter", actorURI},
			{"no type", `{"actorUri":"` + bob + `"}`, fault.Unprocessable, "invalid_parameter", "/params/relationshipType"},
			{"one more parameter", `{"actorUri":"` + bob + `","relationshipType":"friendOf","offerId":"x"}`, fault.Unprocessable, "invalid_parameter", "/params/offerId"},
			{"wrong type", `{"actorUri":["` + bob + `"],"relationshipType":"friendOf"}`, fault.Unprocessable, "invalid_parameter", actorURI},
			{"too long", `{"actorUri":` + long + `,"relationshipType":"friendOf"}`, fault.Unprocessable, "invalid_parameter", actorURI},
			{"a follow", `{"actorUri":"` + bob + `","relationshipType":"following"}`, fault.Unprocessable, "invalid_parameter", "/params/relationshipType"},
			{"a type in other capitals", `{"actorUri":"` + bob + `","relationshipType":"friendof"}`, fault.Unprocessable, "invalid_parameter", "/params/relationshipType"},
			{"herself", ask(string(me)), fault.Unprocessable, "invalid_parameter", actorURI},
			{"who is gone", ask("https://gone.example/users/x"), fault.Unprocessable, "no_such_user", actorURI},
			{"nobody", ask("@nobody@p.example"), fault.Unprocessable, "no_such_user", actorURI},
			{"a local nobody", ask(here + "/users/zoe"), fault.Unprocessable, "no_such_user", actorURI},
			{"who is blocked", ask(string(shut.ID)), fault.Conflict, "blocked", actorURI},
			{"who blocks her", ask(string(shutOut.ID)), fault.Forbidden, "blocked_by", actorURI},
			{"who asked first", ask(string(waits.ID)), fault.Conflict, "request_waits", actorURI},
			{"who is a friend", ask(string(friend.ID)), fault.Conflict, "already_friends", actorURI},
		},
		"AcceptFriendRequest": answers,
		"RejectFriendRequest": append(answers, wrong{"who is a friend", `{"offerId":"` + string(accepted) + `"}`, fault.Conflict, "already_friends", "/params"}),
		"RemoveRelationship": {
			{"nothing", `{}`, fault.Unprocessable, "invalid_parameter", actorURI},
			{"no type", `{"actorUri":"` + bob + `"}`, fault.Unprocessable, "invalid_parameter", "/params/relationshipType"},
			{"one more parameter", `{"actorUri":"` + bob + `","relationshipType":"friendOf","x":1}`, fault.Unprocessable, "invalid_parameter", "/params/x"},
			{"wrong type", `{"actorUri":"` + bob + `","relationshipType":{}}`, fault.Unprocessable, "invalid_parameter", "/params/relationshipType"},
			{"too long", `{"actorUri":` + long + `,"relationshipType":"friendOf"}`, fault.Unprocessable, "invalid_parameter", actorURI},
			{"no type of relationship", `{"actorUri":"` + bob + `","relationshipType":"follower"}`, fault.Unprocessable, "invalid_parameter", "/params/relationshipType"},
			{"who is no friend", ask(bob), fault.NotFound, "not_related", actorURI},
			{"another type than that of the friendship", `{"actorUri":"` + string(friend.ID) + `","relationshipType":"closeFriendOf"}`, fault.NotFound, "not_related", actorURI},
			{"who is not followed", `{"actorUri":"` + bob + `","relationshipType":"following"}`, fault.NotFound, "not_following", actorURI},
			{"who is blocked", ask(string(shut.ID)), fault.NotFound, "not_related", actorURI},
			{"nobody", ask("@nobody@p.example"), fault.Unprocessable, "no_such_user", actorURI},
		},
	} {
		for _, c := range all {
			before, sent := d.friendships(), d.sent()
			_, err := d.dispatch(action, c.params)
			if e := fault.Of(err); e == nil || e.Kind != c.kind || e.Code != c.code || e.Pointer != c.pointer {
				t.Errorf("%s of %s: refused with %+v, want kind %d, code %q at %q", action, c.name, e, c.kind, c.code, c.pointer)
			}
			if d.friendships() != before || d.sent() != sent {
				t.Errorf("%s of %s left something", action, c.name)
			}
		}
	}
}

// friendships returns alice's friendships, one per line.
func (d *desk) friendships() string {
	d.t.Helper()
	var all []string
	d.read(func(ctx context.Context, tx *user.Tx) error {
		for _, kind := range user.FriendTypes {
			found, err := tx.Relationships.ListAll(ctx, user.Ties{Type: kind}, nil, 100)
			if err != nil {
				return err
			}
			for _, r := range found {
				all = append(all, strings.Join([]string{r.Type, string(r.Actor), r.Status, r.Direction}, " "))
			}
		}
		return nil
	})
	return strings.Join(all, "\n")
}

// The types of friendship are independent. After an undo or a rejection, a friendship can be
// requested again.
func TestFriendshipsAreIndependent(t *testing.T) {
	t.Parallel()
	d := town(t)
	ask := func(kind string) map[string]any { return map[string]any{"actorUri": bob, "relationshipType": kind} }
	first := d.must("SendFriendRequest", ask("friendOf"))
	d.must("SendFriendRequest", ask("closeFriendOf"))
	want := "friendOf " + bob + " pending outbound\ncloseFriendOf " + bob + " pending outbound"
	if got := d.friendships(); got != want {
		t.Errorf("friendships %s, want %s", got, want)
	}
	undo := d.must("RemoveRelationship", ask("friendOf"))
	if o := mustDoc(t, undo.Raw).Sub("object"); o.Text("id") != string(first.URI) || o.Sub("object").Text("relationship") != "https://lightwebbrowser.org/ns/friendOf" {
		t.Errorf("Undo of %s", o.JSON())
	}
	if got := d.friendships(); got != "closeFriendOf "+bob+" pending outbound" {
		t.Errorf("friendships %s after the Undo of one", got)
	}
	if again := d.must("SendFriendRequest", ask("friendOf")); again.URI == first.URI {
		t.Error("the request is not sent again")
	}
	d.must("Block", map[string]any{"actorUri": bob})
	if got := d.friendships(); got != "" {
		t.Errorf("friendships %s after the Block", got)
	}
	undone := 0
	for _, row := range d.owed() {
		if row.Type == "Undo" && row.Inbox == bob+"/inbox" {
			undone++
		}
	}
	if undone != 3 {
		t.Errorf("%d Undos went to bob, want 3", undone)
	}
}

// An Offer as it is sent names both actors and the type of friendship.
func TestAnOfferNamesBothActors(t *testing.T) {
	t.Parallel()
	d := town(t)
	offer := mustDoc(t, d.must("SendFriendRequest", map[string]any{"actorUri": bob, "relationshipType": "friendOf"}).Raw)
	sameJSON(t, offer.Sub("object").JSON(), vocab.Doc{"type": "Relationship", "subject": string(me), "relationship": "https://lightwebbrowser.org/ns/friendOf", "object": bob}.JSON())
}
