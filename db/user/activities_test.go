package user_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestOneOfManyConcurrentClaimsWins(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var ids []vocab.ID
	for n := range 20 {
		ids = append(ids, vocab.ID(fmt.Sprintf("https://peer.example/%d", n)))
	}
	var won atomic.Int64
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			mine := slices.Clone(ids)
			if n%2 == 0 {
				slices.Reverse(mine)
			}
			var fresh map[user.Owned]bool
			write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
				fresh, err = tx.Activities.Claim(ctx, by(bob, mine...))
				return err
			})
			won.Add(int64(len(fresh)))
		})
	}
	all.Wait()
	if n := won.Load(); n != int64(len(ids)) {
		t.Errorf("%d claims were won of %d ids", n, len(ids))
	}
}

func TestClaimCountsAnIDOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for _, tt := range []struct {
		name      string
		ids, want []vocab.ID
	}{
		{"nothing", nil, nil},
		{"one", []vocab.ID{"https://a.example/1"}, []vocab.ID{"https://a.example/1"}},
		{"one that is taken", []vocab.ID{"https://a.example/1"}, nil},
		{"twice in one call", []vocab.ID{"https://a.example/2", "https://a.example/2"}, []vocab.ID{"https://a.example/2"}},
		{"two spellings in one call", []vocab.ID{"https://A.example:443/3", "https://a.example/3"}, []vocab.ID{"https://A.example:443/3"}},
		{"another spelling of a taken one", []vocab.ID{"HTTPS://a.example/2"}, nil},
		{"paths are not folded", []vocab.ID{"https://a.example/x", "https://a.example/X"}, []vocab.ID{"https://a.example/X", "https://a.example/x"}},
	} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			fresh, err := tx.Activities.Claim(ctx, by(bob, tt.ids...))
			var got []vocab.ID
			for id := range fresh {
				got = append(got, id.ID)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: Activities.Claim(%v) = %v, want %v", tt.name, tt.ids, got, tt.want)
			}
			return err
		})
	}
}

func TestAnActivityComesBackAsItWasStored(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	a, _, _ := note(bob, 1, now)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Activities.Add(ctx, a); err != nil {
			return err
		}
		other := a
		other.ID, other.Type = uuid.New(), "Delete"
		return tx.Activities.Add(ctx, other) // changes nothing, because the URI is stored
	})
	intransitive := user.Activity{ID: uuid.New(), URI: bob + "/travel", Direction: user.Outbound, Type: "Travel", Actor: bob, Published: now, Raw: []byte(`{"a": 1}`)}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Activities.Add(ctx, intransitive) })
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, want := range []user.Activity{a, intransitive} {
			got, err := tx.Activities.Find(ctx, want.URI)
			if err != nil {
				return err
			}
			sameJSON(t, got.Raw, want.Raw)
			got.Raw, want.Raw = nil, nil
			if d := cmp.Diff(want, *got); d != "" {
				t.Error(d)
			}
		}
		if got, err := tx.Activities.Find(ctx, "https://nowhere.example/"); got != nil || err != nil {
			t.Errorf("an unknown activity is %v, %v", got, err)
		}
		return nil
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := addNote(ctx, tx, carol, 1, now); err != nil {
			return err
		}
		if err := tx.Activities.Remove(ctx, user.Owned{ID: carol + "/notes/1/activity", Actor: carol}); err != nil {
			return err
		}
		if got, err := tx.Activities.Find(ctx, carol+"/notes/1/activity"); got != nil || err != nil {
			t.Errorf("a removed activity is %v, %v", got, err)
		}
		if feed, err := tx.Feed.List(ctx, nil, 10); len(feed) != 0 || err != nil {
			t.Errorf("the feed holds %v, %v", feed, err)
		}
		return nil
	})
}

func sameJSON(t *testing.T, got, want json.RawMessage) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Error(d)
	}
}

func TestTheLatestActivityAboutAnObject(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	add := func(uri vocab.ID, kind string, actor vocab.ID) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: uri, Direction: user.Outbound, Type: kind, Actor: actor, Object: carol, Published: now, Raw: []byte(`{}`)})
		})
	}
	add("https://a.example/1", "Follow", bob)
	add("https://a.example/2", "Follow", bob)
	add("https://a.example/3", "Block", bob)
	add("https://a.example/4", "Follow", carol)
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if a, err := tx.Activities.Latest(ctx, "Follow", bob, carol); err != nil || a == nil || a.URI != "https://a.example/2" {
			t.Errorf("Activities.Latest = %+v, %v", a, err)
		}
		if a, err := tx.Activities.Latest(ctx, "Follow", bob, bob); err != nil || a != nil {
			t.Errorf("LatestActivity about nothing = %+v, %v", a, err)
		}
		return nil
	})
}

func TestPagesHoldEveryRowOnceWhateverIsAddedMeanwhile(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var want []uuid.UUID
	add := func(n int, at time.Time) uuid.UUID {
		a, o, f := note(bob, n, at)
		f.ID = a.ID // so that both lists have the same order
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if err := tx.Activities.Add(ctx, a); err != nil {
				return err
			}
			if _, err := tx.Objects.Add(ctx, o); err != nil {
				return err
			}
			return tx.Feed.Add(ctx, f)
		})
		return a.ID
	}
	for n := range 25 { // five rows at each of five times
		want = append(want, add(n, now.Add(time.Duration(n/5)*time.Microsecond)))
	}
	slices.Reverse(want)
	lists := map[string]func(context.Context, *user.Tx, *user.Place) ([]uuid.UUID, []user.Place, error){
		"activities": func(ctx context.Context, tx *user.Tx, p *user.Place) (ids []uuid.UUID, places []user.Place, err error) {
			rows, err := tx.Activities.List(ctx, user.Inbound, []vocab.ID{vocab.Public}, p, 4)
			for _, r := range rows {
				ids, places = append(ids, r.ID), append(places, user.Place{At: r.Published, ID: r.ID})
			}
			return ids, places, err
		},
		"feed": func(ctx context.Context, tx *user.Tx, p *user.Place) (ids []uuid.UUID, places []user.Place, err error) {
			rows, err := tx.Feed.List(ctx, p, 4)
			for _, r := range rows {
				ids, places = append(ids, r.ID), append(places, user.Place{At: r.Published, ID: r.ID})
			}
			return ids, places, err
		},
	}
	extra := 1000
	for name, list := range lists {
		var got []uuid.UUID
		var place *user.Place
		for {
			var ids []uuid.UUID
			var places []user.Place
			read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
				ids, places, err = list(ctx, tx, place)
				return err
			})
			if len(ids) == 0 {
				break
			}
			got = append(got, ids...)
			place = &places[len(places)-1]
			extra++
			add(extra, now.Add(time.Hour)) // newer than all others, so it is on no later page
		}
		got = slices.DeleteFunc(got, func(id uuid.UUID) bool { return !slices.Contains(want, id) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d rows in pages, want %d in order", name, len(got), len(want))
		}
	}
}

func TestActivitiesAreListedForTheirRecipients(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for n, raw := range []string{`{"to":["` + string(vocab.Public) + `"]}`, `{"to":"` + string(vocab.Public) + `"}`, `{"cc":["https://x.example/","` + string(vocab.Public) + `"]}`,
		`{"to":["https://x.example/"]}`, `{}`, `{"bto":["` + string(vocab.Public) + `"]}`} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID(fmt.Sprint("https://a.example/", n)), Direction: user.Outbound, Type: "Create", Actor: bob, Published: now, Raw: []byte(raw)})
		})
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, tt := range []struct {
			direction string
			to        []vocab.ID
			want      int
		}{{user.Outbound, []vocab.ID{vocab.Public}, 3}, {user.Outbound, []vocab.ID{vocab.Public, "https://x.example/"}, 4}, {user.Outbound, []vocab.ID{}, 0},
			{user.Outbound, nil, 6}, {user.Inbound, nil, 0}} {
			rows, err := tx.Activities.List(ctx, tt.direction, tt.to, nil, 10)
			if err != nil || len(rows) != tt.want {
				t.Errorf("Activities.List(%s, to %v) = %d rows, %v; want %d", tt.direction, tt.to, len(rows), err, tt.want)
			}
			if n, err := tx.Activities.Count(ctx, tt.direction, tt.to); err != nil || n != tt.want {
				t.Errorf("Activities.Count(%s, to %v) = %d, %v; want %d", tt.direction, tt.to, n, err, tt.want)
			}
		}
		return nil
	})
}

func TestOnlyWhatIsPublicIsReadForThePublic(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const everybody, friends = `{"type":"Note","to":["` + string(vocab.Public) + `"]}`, `{"type":"Note","to":["https://a.example/followers"]}`
	for _, tt := range []struct {
		name, raw string
		direction string
		deleted   bool
		want      bool
	}{
		{"public", everybody, user.Outbound, false, true},
		{"in cc", strings.Replace(everybody, "to", "cc", 1), user.Outbound, false, true},
		{"PRV-13 for friends", friends, user.Outbound, false, false},
		{"deleted", everybody, user.Outbound, true, true},
		{"PRV-13 for friends, and deleted", friends, user.Outbound, true, false},
		{"deleted, as somebody else says", everybody, user.Inbound, true, false},
	} {
		activity, object := vocab.ID("https://a.example/activities/"+uuid.NewString()), vocab.ID("https://a.example/objects/"+uuid.NewString())
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: object, Published: now, Raw: []byte(tt.raw)}); err != nil {
				return err
			}
			if err := tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: activity, Direction: tt.direction, Type: "Create", Actor: bob,
				Object: object, Published: now, Raw: []byte(tt.raw)}); err != nil || !tt.deleted {
				return err
			}
			_, err := tx.Objects.Bury(ctx, user.Grave{URI: object, Author: bob, Tombstone: []byte(`{"type":"Tombstone"}`)}, now)
			return err
		})
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			o, err := tx.Objects.FindPublic(ctx, object)
			if err != nil || (o != nil) != tt.want {
				t.Errorf("%s: Objects.FindPublic = %v, %v; want one: %t", tt.name, o, err, tt.want)
			}
			a, err := tx.Activities.FindPublic(ctx, activity)
			if want := !strings.Contains(tt.raw, "followers"); err != nil || (a != nil) != want {
				t.Errorf("%s: Activities.FindPublic = %v, %v; want one: %t", tt.name, a, err, want)
			}
			return nil
		})
	}
}
