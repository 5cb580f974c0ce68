package user_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
)

func TestThePublicThreadOfAnObject(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, o := range []struct{ name, to, audience, by string }{
			{"root", "", "as:Public", `"` + string(bob) + `"`},
			{"a", "root", "as:Public", `"` + string(carol) + `"`},
			{"b", "root", "https://x.example/followers", `"` + string(carol) + `"`},
			{"c", "a", "as:Public", `[{"type":"Person","id":"` + string(bob) + `"}]`},
			{"d", "b", "as:Public", `"` + string(carol) + `"`},
			{"e", "a", "as:Public", `[{"type":"Group","id":"https://x.example/g"},"https://enemy.example/e"]`},
			{"f", "root", "as:Public", `[{"type":"Person","id":"https://enemy.example/e"}]`},
			{"g", "c", "as:Public", `"` + string(bob) + `"`},
			{"h", "h", "as:Public", `"` + string(bob) + `"`},
			{"i", "", "as:Public", `"` + string(bob) + `"`},
			{"j", "i", "as:Public", `"` + string(bob) + `"`},
			{"k", "f", "as:Public", `"` + string(bob) + `"`},
		} {
			raw := fmt.Sprintf(`{"inReplyTo":%q,"to":[%q],"attributedTo":%s}`, thing(o.to), o.audience, o.by)
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: thing(o.name), Published: now.Add(time.Duration(n) * time.Second), Raw: []byte(raw)}); err != nil {
				return err
			}
		}
		if _, err := tx.Objects.Bury(ctx, user.Grave{URI: thing("i"), Tombstone: []byte(`{"type":"Tombstone"}`)}, now); err != nil {
			return err
		}
		return tx.Blocks.Add(ctx, user.Block{Actor: "https://enemy.example/e", Direction: user.Outbound, Activity: "https://x.example/block"}, now)
	})
	namesIn := func(objects []user.PublicObject) string {
		var names []string
		for _, o := range objects {
			names = append(names, strings.TrimPrefix(string(o.URI), string(thing(""))))
		}
		return strings.Join(names, " ")
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for root, want := range map[string]string{"root": "root a c g", "a": "a c g", "h": "h", "b": "", "i": "", "f": "", "nothing": ""} {
			got, err := tx.Threads.ListPublic(ctx, thing(root), nil, 10)
			if err != nil || namesIn(got) != want {
				t.Errorf("Threads.ListPublic(%s) = %q, %v; want %q", root, namesIn(got), err, want)
			}
		}
		for to, want := range map[string]string{"root": "a", "a": "c", "b": "d", "g": ""} {
			got, err := tx.Threads.ListPublicAnswers(ctx, thing(to), nil, 10)
			if err != nil || namesIn(got) != want {
				t.Errorf("Threads.ListPublicAnswers(%s) = %q, %v; want %q", to, namesIn(got), err, want)
			}
		}
		first, err := tx.Threads.ListPublic(ctx, thing("root"), nil, 2)
		if err != nil || len(first) != 2 {
			t.Fatalf("Threads.ListPublic = %v, %v", first, err)
		}
		rest, err := tx.Threads.ListPublic(ctx, thing("root"), &user.Place{At: first[1].Published, ID: first[1].ID}, 2)
		if err != nil || namesIn(rest) != "c g" || string(rest[0].By) != `{"attributedTo": [{"id": "`+string(bob)+`", "type": "Person"}]}` {
			t.Errorf("the next page = %q, %v", namesIn(rest), err)
		}
		return nil
	})
}

// Anybody may request a page of the answers to a post. So a page reads only a limited number of
// answers.
func TestAPageOfAnswersReadsABoundedNumberOfThem(t *testing.T) {
	t.Parallel()
	const answers, shown = 1500, 1000
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	u := dbtest.User(t, c, "alice")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n := range answers {
			raw := fmt.Sprintf(`{"inReplyTo":%q,"to":["as:Public"],"attributedTo":%q}`, thing("root"), bob)
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: thing(fmt.Sprint(n)), Published: now.Add(-time.Duration(n) * time.Second), Raw: []byte(raw)}); err != nil {
				return err
			}
		}
		return nil
	})
	conn := session(t, databaseOf(t, c, u))
	fetched := func() (n int) { // a session publishes its counts when it ends
		t.Helper()
		c.Close()
		if err := conn.QueryRow(t.Context(), `SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'objects'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		c = open(t, cfg)
		return n
	}
	before := fetched()
	var all []user.PublicObject
	for after, first := (*user.Place)(nil), true; ; first = false {
		var page []user.PublicObject
		read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
			page, err = tx.Threads.ListPublicAnswers(ctx, thing("root"), after, 100)
			return err
		})
		if first {
			if n := fetched() - before; n > shown+len(page) {
				t.Errorf("%d answers were read for a page of %d, want at most %d", n, len(page), shown)
			}
		}
		if len(page) == 0 {
			break
		}
		last := page[len(page)-1]
		all, after = append(all, page...), &user.Place{At: last.Published, ID: last.ID}
	}
	if len(all) != shown || !slices.IsSortedFunc(all, func(a, b user.PublicObject) int { return a.Published.Compare(b.Published) }) {
		t.Errorf("the pages have %d answers, want %d, the oldest first", len(all), shown)
	}

	const unlisted, mostRead = 8000, 5000
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return user.Exec(ctx, tx, fmt.Sprintf(`INSERT INTO objects (id, uri, published, raw)
			SELECT gen_random_uuid(), '%s' || n, now(), '{"inReplyTo":["%s"],"to":["https://us.example/users/alice"]}' FROM generate_series(1, %d) AS n`, thing("private"), thing("letter"), unlisted))
	})
	before = fetched()
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		page, err := tx.Threads.ListPublicAnswers(ctx, thing("letter"), nil, 10)
		if err != nil || len(page) != 0 {
			t.Errorf("%d private answers are listed, %v", len(page), err)
		}
		return err
	})
	if n := fetched() - before; n > mostRead {
		t.Errorf("%d answers were read for an empty page, want at most %d", n, mostRead)
	}
}
