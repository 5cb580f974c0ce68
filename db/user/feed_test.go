package user_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAFeedItemBringsItsActivityAndObject(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	a, o, f := note(bob, 1, now)
	lone := user.FeedEntry{ID: uuid.Must(uuid.NewV7()), Activity: bob + "/boost", Actor: bob, Published: now.Add(-time.Hour)}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := addNote(ctx, tx, bob, 1, now); err != nil {
			return err
		}
		again := f
		again.ID = uuid.New()
		if err := tx.Feed.Add(ctx, again); err != nil { // changes nothing, because the feed has the activity
			return err
		}
		if err := tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: lone.Activity, Direction: user.Inbound, Type: "Announce", Actor: bob, Object: "https://a.example/unknown", Published: now, Raw: []byte(`{}`)}); err != nil {
			return err
		}
		return tx.Feed.Add(ctx, lone)
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		items, err := tx.Feed.List(ctx, nil, 10)
		if err != nil || len(items) != 2 {
			t.Fatalf("Feed.List = %v, %v; want two", items, err)
		}
		if i := items[0]; i.Activity != a.URI || i.Actor != bob || i.Type != "Create" || !i.Published.Equal(now) {
			t.Errorf("item %+v", i)
		}
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(a.Raw, &whole); err != nil {
			return err
		}
		delete(whole, "object") // the object is stored in its own row, and returned in Object
		sameJSON(t, items[0].Raw, mustJSON(whole))
		sameJSON(t, items[0].Object, o.Raw)
		if items[1].FeedEntry != lone || items[1].Object != nil {
			t.Errorf("item without a stored object %+v, want %+v", items[1], lone)
		}
		one, err := tx.Feed.Find(ctx, items[0].ID)
		if err != nil || one == nil || one.Activity != a.URI {
			t.Errorf("Feed.Find = %+v, %v", one, err)
		}
		if none, err := tx.Feed.Find(ctx, uuid.New()); none != nil || err != nil {
			t.Errorf("FeedByID of nothing = %+v, %v", none, err)
		}
		return nil
	})
}

func TestNotificationsAreWhatOthersDoTowardsTheUser(t *testing.T) {
	t.Parallel()
	const me vocab.ID = "https://here.example/users/al_ce"
	const mine, theirs vocab.ID = me + "/objects/1", bob + "/notes/1"
	c, u := alice(t)
	for n, tt := range []struct {
		name   string
		about  vocab.ID
		a      string // type of the activity, and its direction
		fields string
		object string
		want   bool
	}{
		{name: "a Follow of the user", a: "Follow", about: me, want: true},
		{name: "a Follow of somebody else", a: "Follow", about: carol},
		{name: "an Accept of the user's Follow", a: "Accept", about: me + "/activities/1", want: true},
		{name: "an Accept of a Follow without an id", a: "Accept", want: true},
		{name: "a Like of the user's object", a: "Like", about: mine, want: true},
		{name: "a Like of another's", a: "Like", about: theirs},
		{name: "a Like of one whose name a pattern would match", a: "Like", about: "https://here.example/users/alice/objects/1"},
		{name: "a Like of one whose name begins with the user's", a: "Like", about: me + "x/objects/1"},
		{name: "a Dislike of the user's object", a: "Dislike", about: mine, want: true},
		{name: "an Announce of the user's object", a: "Announce", about: mine, want: true},
		{name: "an Announce of another's", a: "Announce", about: theirs},
		{name: "an Offer to the user", a: "Offer", fields: `"to":"` + string(me) + `"`, want: true},
		{name: "an Offer that names nobody", a: "Offer"},
		{name: "an Undo", a: "Undo", about: me},
		{name: "a Create that names the user in to", a: "Create", fields: `"to":["https://x.example/","` + string(me) + `"]`, want: true},
		{name: "a Create to the user alone, unlisted", a: "Create", fields: `"to":"` + string(me) + `"`, want: true},
		{name: "a Create that names the user in cc", a: "Create", fields: `"cc":["` + string(me) + `"]`, want: true},
		{name: "a Create that names the user in audience", a: "Create", fields: `"audience":"` + string(me) + `"`, want: true},
		{name: "a Create for everybody", a: "Create", fields: `"to":["` + string(vocab.Public) + `"]`},
		{name: "a reply to the user", a: "Create", object: `"inReplyTo":"` + string(mine) + `"`, want: true},
		{name: "a reply to several", a: "Create", object: `"inReplyTo":["` + string(theirs) + `","` + string(mine) + `"]`, want: true},
		{name: "a reply to the user's embedded object", a: "Create", object: `"inReplyTo":{"id":"` + string(mine) + `"}`, want: true},
		{name: "a reply to another", a: "Create", object: `"inReplyTo":"` + string(theirs) + `"`},
		{name: "a reply to null", a: "Create", object: `"inReplyTo":null`},
		{name: "a quote of the user", a: "Create", object: `"quote":"` + string(mine) + `"`, want: true},
		{name: "a quote of the user's embedded object", a: "Create", object: `"quote":{"id":"` + string(mine) + `"}`, want: true},
		{name: "a quote as quoteUrl", a: "Create", object: `"quoteUrl":"` + string(mine) + `"`, want: true},
		{name: "a quote as quoteUri", a: "Create", object: `"quoteUri":"` + string(mine) + `"`, want: true},
		{name: "a quote as Misskey says it", a: "Create", object: `"_misskey_quote":"` + string(mine) + `"`, want: true},
		{name: "a quote as a link", a: "Create", object: `"tag":[{"type":"Mention","href":"` + string(bob) + `"},{"rel":"https://misskey-hub.net/ns#_misskey_quote","href":"` + string(mine) + `"}]`, want: true},
		{name: "another link to the user's object", a: "Create", object: `"tag":{"type":"Link","href":"` + string(mine) + `"}`},
		{name: "a quote of another", a: "Create", object: `"quote":"` + string(theirs) + `"`},
		{name: "a QuoteRequest", a: "QuoteRequest", about: theirs, want: true},
		{name: "a Create of the user's own", a: "Create outbound", fields: `"to":["` + string(me) + `"]`},
	} {
		uri := vocab.ID(fmt.Sprintf("https://peer.example/%d", n))
		kind, direction := tt.a, user.Inbound
		if kind == "Create outbound" {
			kind, direction = "Create", user.Outbound
		}
		at := now.Add(time.Duration(n) * time.Second)
		row := uuid.Must(uuid.NewV7())
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if kind == "Create" {
				tt.about = uri + "/object"
				if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: tt.about, Published: at, Raw: []byte(`{` + tt.object + `}`)}); err != nil {
					return err
				}
			}
			return tx.Activities.Add(ctx, user.Activity{ID: row, URI: uri, Direction: direction, Type: kind, Actor: bob, Object: tt.about, Published: at, Raw: []byte(`{` + tt.fields + `}`)})
		})
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			items, err := tx.Feed.ListNotifications(ctx, me, nil, 1)
			if got := len(items) == 1 && items[0].Activity == uri; got != tt.want {
				t.Errorf("%s: notified %t, want %t", tt.name, got, tt.want)
			}
			if err != nil {
				return err
			}
			one, err := tx.Feed.FindActivity(ctx, me, row, true)
			if got := one != nil; got != tt.want {
				t.Errorf("%s: found by its id %t, want %t", tt.name, got, tt.want)
			}
			return err
		})
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Feed.ListNotifications(ctx, me, nil, 100)
		var paged []user.FeedItem
		for place := (*user.Place)(nil); err == nil; {
			var page []user.FeedItem
			if page, err = tx.Feed.ListNotifications(ctx, me, place, 3); len(page) == 0 {
				break
			}
			paged = append(paged, page...)
			place = &user.Place{At: page[len(page)-1].Published, ID: page[len(page)-1].ID}
		}
		if !slices.EqualFunc(all, paged, func(a, b user.FeedItem) bool { return a.ID == b.ID }) {
			t.Errorf("%d notifications, %d in pages", len(all), len(paged))
		}
		return err
	})
}

// A quote of the user's post brings two activities: a QuoteRequest and a Create. Only the first of
// them to arrive is a notification.
func TestAQuoteIsOneNotification(t *testing.T) {
	t.Parallel()
	const me vocab.ID = "https://here.example/users/alice"
	for _, kinds := range [][2]string{{"QuoteRequest", "Create"}, {"Create", "QuoteRequest"}} {
		c, u := alice(t)
		for n, kind := range kinds {
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: bob + "/notes/1", Published: now, Raw: []byte(`{"quote":"` + me + `/objects/1"}`)}); err != nil {
					return err
				}
				return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: bob + vocab.ID(fmt.Sprintf("/%d", n)), Direction: user.Inbound, Type: kind, Actor: bob,
					Object: bob + "/notes/1", Published: now, Raw: []byte(`{"to":["` + me + `"]}`)})
			})
		}
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			items, err := tx.Feed.ListNotifications(ctx, me, nil, 10)
			if len(items) != 1 || items[0].Type != kinds[0] {
				t.Errorf("of %v the user is notified of %v", kinds, items)
			}
			return err
		})
	}
}

// Notifications about an object end when its author or the user deletes the object.
func TestNotificationsAboutADeletedObjectEnd(t *testing.T) {
	t.Parallel()
	const me vocab.ID = "https://here.example/users/alice"
	const mine, theirs, other vocab.ID = me + "/objects/1", bob + "/notes/1", bob + "/notes/2"
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, o := range []vocab.ID{mine, theirs, other} {
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: o, Published: now, Raw: []byte(`{"type":"Note"}`)}); err != nil {
				return err
			}
			kind := []string{"Like", "Create", "Create"}[n]
			err := tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: o + "/" + vocab.ID(kind), Direction: user.Inbound, Type: kind, Actor: bob,
				Object: o, Published: now, Raw: []byte(`{"to":["` + string(me) + `"],"object":{"id":"` + string(o) + `"}}`)})
			if err != nil {
				return err
			}
		}
		return nil
	})
	told := func(want ...vocab.ID) {
		t.Helper()
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			var got []vocab.ID
			items, err := tx.Feed.ListNotifications(ctx, me, nil, 10)
			for _, i := range items {
				got = append(got, i.ObjectURI)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("told of %q, want %q", got, want)
			}
			return err
		})
	}
	told(mine, theirs, other)
	for n, o := range []vocab.ID{mine, theirs} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Bury(ctx, user.Grave{URI: o, Author: []vocab.ID{me, bob}[n], Tombstone: []byte(`{"type":"Tombstone"}`)}, now)
			return err
		})
	}
	told(other)
}
