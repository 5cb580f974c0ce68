package user_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	post     vocab.ID = bob + "/notes/1"
	headline          = `{"type":"Tombstone"}`
)

func TestADeletedObjectStaysDeletedWheneverItComes(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	_, o, _ := note(bob, 1, now)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if had, err := tx.Objects.Bury(ctx, user.Grave{URI: "https://PEER.example/users/bob/notes/1", Author: bob, Tombstone: []byte(headline)}, now); had || err != nil {
			t.Errorf("BuryObject of what never came = %t, %v", had, err)
		}
		if added, err := tx.Objects.Add(ctx, o); added || err != nil {
			t.Errorf("AddObject after its deletion = %t, %v", added, err)
		}
		if got, err := tx.Objects.Find(ctx, o.URI); got != nil || err != nil {
			t.Errorf("Objects.Find = %v, %v", got, err)
		}
		return nil
	})
}

// PAR-18: inReplyTo may be longer than an index can store. The object is stored nevertheless.
func TestAnObjectIsStoredWhateverItAnswers(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var long []string
	for range 400 {
		long = append(long, "https://peer.example/"+rand.Text())
	}
	for n, parent := range []any{strings.Join(long, ""), long, map[string]any{"type": "Note", "content": strings.Join(long, " ")}} {
		_, o, _ := note(bob, n, now)
		o.Raw = mustJSON(map[string]any{"id": o.URI, "type": "Note", "inReplyTo": parent})
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Add(ctx, o)
			return err
		})
	}
}

func TestAnOlderVersionNeverReplacesAnObject(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	_, o, _ := note(bob, 1, now)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if added, err := tx.Objects.Add(ctx, o); !added || err != nil {
			t.Errorf("Objects.Add = %t, %v", added, err)
		}
		if added, err := tx.Objects.Add(ctx, o); added || err != nil {
			t.Errorf("AddObject again = %t, %v", added, err)
		}
		for _, tt := range []struct {
			after time.Duration // counted from the object's publication
			want  bool
		}{{-time.Hour, false}, {0, true}, {2 * time.Hour, true}, {time.Hour, false}, {2 * time.Hour, true}, {3 * time.Hour, true}} {
			raw := fmt.Appendf(nil, `{"after": %d}`, tt.after)
			if done, err := tx.Objects.Replace(ctx, o.URI, raw, nil, now.Add(tt.after)); done != tt.want || err != nil {
				t.Errorf("ReplaceObject %v after = %t, %v; want %t", tt.after, done, err, tt.want)
			}
		}
		got, err := tx.Objects.Find(ctx, o.URI)
		if err != nil || got.UpdatedAt == nil || !got.UpdatedAt.Equal(now.Add(3*time.Hour)) || got.UpdatedAt.Location() != time.UTC {
			t.Errorf("Objects.Find = %+v, %v", got, err)
		}
		sameJSON(t, got.Raw, fmt.Appendf(nil, `{"after": %d}`, 3*time.Hour))
		if done, err := tx.Objects.Replace(ctx, "https://a.example/none", []byte(`{}`), nil, now); done || err != nil {
			t.Errorf("ReplaceObject of nothing = %t, %v", done, err)
		}
		return nil
	})
}

func TestBuryingAnObjectLeavesNoneOfItsWords(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	carry := func(kind string, n int, object string) user.Activity {
		return user.Activity{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID(fmt.Sprint("https://peer.example/", kind, n)), Direction: user.Inbound, Type: kind, Actor: bob, Object: post, Published: now,
			Raw: []byte(`{"type":"` + kind + `","object":` + object + `}`)}
	}
	words := `{"id":"` + string(post) + `","content":"note 1 in other words"}`
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := addNote(ctx, tx, bob, 1, now); err != nil {
			return err
		}
		for _, a := range []user.Activity{carry("Update", 1, words), carry("Announce", 1, words), carry("Announce", 2, `"`+string(post)+`"`), carry("Update", 2, `[`+words+`]`)} {
			if err := tx.Activities.Add(ctx, a); err != nil {
				return err
			}
			if err := tx.Feed.Add(ctx, user.FeedEntry{ID: uuid.New(), Activity: a.URI, Actor: bob, Published: now}); err != nil {
				return err
			}
		}
		if err := addNote(ctx, tx, bob, 2, now); err != nil {
			return err
		}
		for _, object := range []vocab.ID{post, bob + "/notes/2"} {
			if err := tx.Reactions.Set(ctx, user.Reaction{Object: object, Actor: carol, Kind: user.Review, Type: "Like", Activity: object + "/like"}, now); err != nil {
				return err
			}
		}
		had, err := tx.Objects.Bury(ctx, user.Grave{URI: post, Author: bob, Tombstone: []byte(headline)}, now)
		if !had {
			t.Error("BuryObject says that nothing was stored")
		}
		return err
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if had, err := tx.Objects.Bury(ctx, user.Grave{URI: post, Author: bob, Tombstone: []byte(headline)}, now.Add(time.Hour)); had || err != nil {
			t.Errorf("BuryObject again = %t, %v", had, err)
		}
		o, err := tx.Objects.Find(ctx, post)
		if err != nil || o.DeletedAt == nil || !o.DeletedAt.Equal(now) {
			t.Errorf("Objects.Find = %+v, %v; want it deleted once", o, err)
		}
		sameJSON(t, o.Raw, []byte(headline))
		if done, err := tx.Objects.Replace(ctx, post, []byte(`{}`), nil, now.Add(time.Hour)); done || err != nil {
			t.Errorf("ReplaceObject of a deleted one = %t, %v", done, err)
		}
		if n, err := tx.Reactions.Count(ctx, post, user.Review, "Like"); n != 0 || err != nil {
			t.Errorf("%d reactions are left, %v", n, err)
		}
		if n, err := tx.Reactions.Count(ctx, bob+"/notes/2", user.Review, "Like"); n != 1 || err != nil {
			t.Errorf("%d reactions to another object, %v; want 1", n, err)
		}
		feed, err := tx.Feed.List(ctx, nil, 10)
		for _, item := range feed {
			if item.Type != "Update" && item.Activity != bob+"/notes/2/activity" {
				t.Errorf("the feed still holds %s", item.Activity)
			}
		}
		return err
	})
	for _, table := range []string{"activities", "objects"} {
		var left string
		if err := dbtest.Database(t, database).QueryRowContext(t.Context(), `SELECT coalesce(string_agg(raw::text, ' '), '') FROM `+table+` WHERE uri NOT LIKE '%/notes/2%'`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(left, "note 1") {
			t.Errorf("%s still hold the words: %s", table, left)
		}
	}
}

func TestObjectsOfAnAuthorInEverySpelling(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var want []vocab.ID
	for n, tt := range []struct {
		attributed string
		mine       bool
	}{
		{`"` + string(bob) + `"`, true},
		{`["` + string(carol) + `","` + string(bob) + `"]`, true},
		{`{"type":"Person","id":"` + string(bob) + `"}`, true},
		{`[{"type":"Group","id":"` + string(carol) + `"},{"type":"Person","id":"` + string(bob) + `"}]`, true},
		{`"` + string(carol) + `"`, false},
		{`null`, false},
	} {
		id := vocab.ID(fmt.Sprint("https://peer.example/", n))
		if tt.mine {
			want = append(want, id)
		}
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: id, Published: now, Raw: []byte(`{"attributedTo":` + tt.attributed + `}`)})
			return err
		})
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		got, err := tx.Objects.ListBy(ctx, bob)
		if !slices.Equal(got, want) {
			t.Errorf("Objects.ListBy = %v, want %v", got, want)
		}
		if err != nil {
			return err
		}
		if _, err := tx.Objects.Bury(ctx, user.Grave{URI: want[0], Author: bob, Tombstone: []byte(`{"attributedTo":"` + string(bob) + `"}`)}, now); err != nil {
			return err
		}
		if got, err = tx.Objects.ListBy(ctx, bob); err != nil || !slices.Equal(got, want[1:]) {
			t.Errorf("ObjectsBy after a deletion = %v, want %v", got, want[1:])
		}
		some, err := tx.Objects.FindAll(ctx, []vocab.ID{want[1], "https://a.example/none"})
		if len(some) != 1 || some[0].URI != want[1] {
			t.Errorf("Objects.FindAll = %v", some)
		}
		return err
	})
}

func TestABrokenStoredObjectIsAFaultOfOurs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"type":`, `{"type":"Note"}`, `{"id":"https://peer.example/1","type":["Note",1]}`} {
		o := user.Object{URI: post, Raw: []byte(raw)}
		if got, err := o.Parse(); err == nil || fault.KindOf(err) != fault.Internal || fault.Public(err) != fault.Public(errors.New("")) {
			t.Errorf("Parse of %s = %+v, %v", raw, got, err)
		}
	}
	o := user.Object{URI: post, Raw: []byte(`{"id":"` + string(post) + `","type":"Note","attributedTo":"` + string(bob) + `"}`)}
	if got, err := o.Parse(); err != nil || got.ID != post || got.AttributedTo != bob {
		t.Errorf("Parse = %+v, %v", got, err)
	}
}
