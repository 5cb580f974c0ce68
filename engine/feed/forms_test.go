package feed_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// main returns the main feed. It reads the feed from the database.
func (f *fixture) main() string {
	f.Helper()
	p, err := feed.New(f.cached.Database, f.gate, f.reads, local{}).Page(f.Context(), f.alice, feed.Main, "", feed.MaxLimit)
	if err != nil {
		f.Fatal(err)
	}
	return string(p.JSON())
}

// forms returns two numbers: that of all stored forms, and that of the stored forms that contain a
// text.
func (f *fixture) forms(text string) (all, holding int) {
	f.Helper()
	err := dbtest.SQL(f.T, f.store, f.alice).QueryRowContext(f.Context(),
		`SELECT count(*), count(*) FILTER (WHERE strpos(form, $1) > 0) FROM shown_forms`, text).Scan(&all, &holding)
	if err != nil {
		f.Fatal(err)
	}
	return all, holding
}

// received stores every activity in testdata/activities, and the activity's object if it has an
// id. It returns the number of activities.
func (f *fixture) received() (activities int) {
	f.Helper()
	err := filepath.WalkDir("../../testdata/activities", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d, err := vocab.ParseDoc(raw)
		if err != nil {
			return nil
		}
		ref, _ := d.Ref("object")
		if object := d.Sub("object"); object != nil && ref.ID != "" {
			f.object(ref.ID, string(object.JSON()))
		}
		f.create(fmt.Sprint("received", activities), string(raw), ref.ID)
		activities++
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return activities
}

// A page that is made of stored forms has the same bytes as the page that is made of the
// documents.
func TestAPageOfKeptFormsIsThatOfTheDocuments(t *testing.T) {
	t.Parallel()
	for _, languages := range [][]string{nil, {"de", "en"}} {
		f := newFixture(t)
		f.reads.languages = languages
		n := f.received()
		want := f.main() // the first read makes the shown forms of objects that have none
		for range 2 {
			if d := cmp.Diff(want, f.main()); d != "" {
				t.Error("page (-made +kept):\n", d)
			}
		}
		if all, _ := f.forms(""); all <= n || n < 20 {
			t.Errorf("%d forms are kept of %d activities and their objects", all, n)
		}
	}
}

// Processes of one version share the stored forms. So a change of the code that changes how items
// are shown must also change the version of the forms.
func TestFormsChangeWithTheirVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.received()
	sum := sha256.New()
	p, err := feed.New(f.cached.Database, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, "", feed.MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range p.Items {
		i.ID = uuid.Nil
		shown, err := vocab.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(shown)
	}
	if got := feed.Form + " " + hex.EncodeToString(sum.Sum(nil)[:8]); got != "3 6534919c732ec296" {
		t.Errorf("version and digest of the forms are %q; set both anew when items are shown otherwise", got)
	}
}

// After a change of a document, the next reader sees the change, and no form with the old words is
// stored.
func TestNoKeptFormOutlivesAChange(t *testing.T) {
	t.Parallel()
	const bob, words = "https://peer.example/users/bob", "first words"
	note := func(content string) json.RawMessage {
		return json.RawMessage(`{"id":"https://peer.example/notes/1","type":"Note","attributedTo":"` + bob + `","to":"` + bob + `/followers","content":"` + content + `"}`)
	}
	now := start.Add(time.Hour)
	bobCalled := func(fields string) *vocab.Actor { return dbtest.ActorOf(t, bob, fields) }
	for _, tt := range []struct {
		name string
		stay bool // whether the words of the post stay
		work func(context.Context, *user.Tx) error
	}{
		{"an edit", false, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Replace(ctx, "https://peer.example/notes/1", note("second"), json.RawMessage(`{}`), now)
			return err
		}},
		{"other counts", false, func(ctx context.Context, tx *user.Tx) error {
			return tx.Objects.Recount(ctx, "https://peer.example/notes/1", note("counted"))
		}},
		{"a deletion", false, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Bury(ctx, user.Grave{URI: "https://peer.example/notes/1", Author: bob, Tombstone: json.RawMessage(`{"type":"Tombstone"}`)}, now)
			return err
		}},
		{"a withdrawal", true, func(ctx context.Context, tx *user.Tx) error {
			return tx.Activities.Remove(ctx, user.Owned{ID: "https://peer.example/create", Actor: bob})
		}},
		{"another name of the author", true, func(ctx context.Context, tx *user.Tx) error {
			return tx.Actors.Save(ctx, bobCalled(`,"name":"Robert"`), now)
		}},
		{"another collection of followers", true, func(ctx context.Context, tx *user.Tx) error {
			return tx.Actors.Save(ctx, bobCalled(`,"followers":"`+bob+`/followers"`), now)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.write(func(ctx context.Context, tx *user.Tx) error {
				if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: "https://peer.example/notes/1", Published: start, Raw: note(words), Readable: json.RawMessage(`{}`)}); err != nil {
					return err
				}
				return tx.Actors.Save(ctx, bobCalled(`,"name":"Bob"`), start)
			})
			f.receive("create", "Create", "https://peer.example/notes/1", "x", start)
			before := f.main()
			if all, holding := f.forms(words); all != 2 || holding != 1 || f.main() != before {
				t.Fatalf("%d forms are kept, %d of them of the words; want 2 and 1", all, holding)
			}
			f.write(tt.work)
			if _, holding := f.forms(words); (holding > 0) != tt.stay {
				t.Errorf("%d kept forms hold the words that were", holding)
			}
			after := f.main()
			if after == before {
				t.Errorf("the next reader sees what was before: %s", after)
			}
			if d := cmp.Diff(after, f.main()); d != "" {
				t.Error("page (-made +kept):\n", d)
			}
		})
	}
}

// While a slow reader makes forms, their revision changes. The reader does not store its forms,
// and does not wait for the writer of the change.
func TestASlowReaderKeepsNoFormOfAnOldRevision(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.posts(1)
	keep := func(words string, change func(*user.FeedLine)) {
		t.Helper()
		f.write(func(ctx context.Context, tx *user.Tx) error {
			lines, err := tx.Feed.ListLines(ctx, nil, 1)
			if err != nil {
				return err
			}
			change(&lines[0])
			return tx.Feed.KeepForms(ctx, feed.Form+" ", []user.Form{{FeedLine: lines[0], Activity: words, Object: words}})
		})
	}
	keep("old", func(l *user.FeedLine) { l.Revision, l.ObjectRevision = "3", "3" })
	if all, _ := f.forms(""); all != 0 {
		t.Errorf("%d forms of an old revision are kept", all)
	}
	writer, err := dbtest.Session(t, dbtest.DatabaseOf(t, f.store, f.alice)).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Exec(t.Context(), `UPDATE objects SET raw = raw`); err != nil {
		t.Fatal(err)
	}
	keep("read before", func(*user.FeedLine) {})
	if err := writer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, holding := f.forms("read before"); all != 1 || holding != 1 { // the form of the activity
		t.Errorf("%d forms are kept beside a writer, %d of them new; want 1", all, holding)
	}
	keep("as it is", func(*user.FeedLine) {})
	if all, holding := f.forms("as it is"); all != 2 || holding != 2 {
		t.Errorf("%d forms are kept, %d of them as they are; want 2", all, holding)
	}
}
