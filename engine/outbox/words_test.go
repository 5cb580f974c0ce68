package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// holding returns the columns of alice's database and of the instance database that contain a
// word.
func (d *desk) holding(word string) (found []string) {
	d.t.Helper()
	for name, sql := range map[string]*sql.DB{"user": dbtest.SQL(d.t, d.c, d.alice), "instance": dbtest.InstanceSQL(d.t, d.c, d.alice)} {
		columns := pairs(d.t, sql, `SELECT quote_ident(table_name), quote_ident(column_name) FROM information_schema.columns
			WHERE table_schema = 'public' ORDER BY 1, 2`)
		if len(columns) < 20 {
			d.t.Fatalf("the %s database has %d columns", name, len(columns))
		}
		for _, c := range columns {
			if n := pairs(d.t, sql, fmt.Sprintf(`SELECT '', count(*)::text FROM %[1]s WHERE strpos(%[2]s::text, '%[3]s') > 0
				OR strpos(%[2]s::text, encode('%[3]s', 'hex')) > 0`, c[0], c[1], word)); n[0][1] != "0" {
				found = append(found, name+" "+c[0]+"."+c[1])
			}
		}
	}
	slices.Sort(found)
	return found
}

// pairs returns the rows of a query with two text columns.
func pairs(t *testing.T, db *sql.DB, query string) (all [][2]string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var r [2]string
		if err := rows.Scan(&r[0], &r[1]); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// written posts a note with a word, and stores the word wherever it can occur. Servers echo it
// when they accept and when they refuse the note. The note has an idempotency key, a group's
// Announce and a Like.
func (d *desk) written(word string) vocab.ID {
	d.t.Helper()
	r, err := d.keyed("a key", "CreateNote", map[string]any{"content": word, "summary": word, "tags": []string{word}, "visibility": "public", "quote": bobsPost})
	if err != nil {
		d.t.Fatal(err)
	}
	note := d.activity(r.ActivityID).Object
	d.must("Like", map[string]any{"objectId": note})
	d.must("Boost", map[string]any{"objectId": note})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		raw := func(kind string, object any) []byte {
			return vocab.Doc{"id": bob + "/" + kind, "type": kind, "actor": bob, "object": object}.JSON()
		}
		embedded := vocab.Doc{"id": string(note), "type": "Note", "content": word}
		for _, a := range []user.Activity{
			{URI: bob + "/Announce", Object: r.ActivityID, Raw: raw("Announce", vocab.Doc{"id": string(r.ActivityID), "type": "Create", "object": embedded})},
			{URI: bob + "/Like", Object: note, Raw: raw("Like", embedded)},
		} {
			a.ID, a.Direction, a.Type, a.Actor, a.Published = uuid.New(), user.Inbound, strings.TrimPrefix(string(a.URI), bob+"/"), bob, d.Now()
			if err := tx.Activities.Add(ctx, a); err != nil {
				return err
			}
		}
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		rows, err := tx.Deliveries.Claim(ctx, "test", now, time.Hour, user.ClaimBounds{Most: 100})
		if err != nil {
			return err
		}
		for _, r := range rows {
			o := user.Outcome{Delivery: r.ID, Status: user.DeliveryDelivered, Spent: true}
			if r.Type == "Create" {
				o.HTTPStatus, o.Headers = 202, "server: "+word
			}
			if r.Host == "q.example" && r.Type == "Create" {
				o.Status, o.HTTPStatus, o.Answer = user.DeliveryFailed, 400, []byte("refused: "+word)
			}
			if _, err := tx.Deliveries.Finish(ctx, "test", []user.Outcome{o}, now); err != nil {
				return err
			}
		}
		return nil
	})
	if got := d.holding(word); len(got) < 4 {
		d.t.Fatalf("the word is in %q only: the test proves nothing", got)
	}
	return note
}

func TestDeletedWordsAreNowhere(t *testing.T) {
	t.Parallel()
	d := town(t)
	note := d.written("firstmarker")
	d.must("UpdateObject", map[string]any{"objectId": note, "content": "secondmarker"})
	d.must("DeleteObject", map[string]any{"objectId": note})
	for _, word := range []string{"firstmarker", "secondmarker"} {
		if got := d.holding(word); len(got) > 0 {
			t.Errorf("%s is in %q after the post was deleted", word, got)
		}
	}
}

func TestEditedWordsAreNowhere(t *testing.T) {
	t.Parallel()
	d := town(t)
	note := d.written("firstmarker")
	for _, word := range []string{"secondmarker", "thirdmarker"} {
		d.must("UpdateObject", map[string]any{"objectId": note, "content": word, "summary": "", "tags": []string{}})
	}
	for _, word := range []string{"firstmarker", "secondmarker"} {
		if got := d.holding(word); len(got) > 0 {
			t.Errorf("%s is in %q after the post was edited", word, got)
		}
	}
	if got := d.holding("thirdmarker"); len(got) < 3 {
		t.Errorf("the present word is in %q only", got)
	}
}

// A Create that is sent again has the current words, and only the last edit is sent.
func TestRetriedCreateHasThePresentWords(t *testing.T) {
	t.Parallel()
	d := town(t)
	create := d.must("CreateNote", map[string]any{"content": "firstmarker", "visibility": "followers"})
	d.exec(`UPDATE deliveries SET status = 'failed', attempts = 6, tried = true WHERE host = 'q.example'`)
	d.must("UpdateObject", map[string]any{"objectId": create.Object, "content": "secondmarker"})
	d.exec(`UPDATE deliveries SET status = 'failed', attempts = 6, tried = true WHERE host = 'q.example'`)
	d.must("UpdateObject", map[string]any{"objectId": create.Object, "content": "thirdmarker"})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Deliveries.Requeue(ctx, user.DeliveryChoice{States: []string{user.DeliveryFailed}}, true, 0, 100, d.Now())
		return err
	})
	sent := map[string][]string{}
	for _, r := range d.owed() {
		doc := mustDoc(t, r.Body)
		d.checkProof(doc)
		sent[r.Host] = append(sent[r.Host], r.Type+" "+doc.Sub("object").Sub("source").Text("content"))
		if r.Type == "Create" && r.Activity != create.URI {
			t.Errorf("the Create is %s, want %s", r.Activity, create.URI)
		}
	}
	want := []string{"Create thirdmarker", "Update thirdmarker"}
	for _, host := range []string{"p.example", "q.example"} {
		if !slices.Equal(sent[host], want) {
			t.Errorf("%s is sent %q, want %q", host, sent[host], want)
		}
	}
}

// A follower who left before an edit gets neither the edit nor a Create with the new words.
func TestFormerFollowerIsOwedNoEditedWords(t *testing.T) {
	t.Parallel()
	d := town(t)
	create := d.must("CreateNote", map[string]any{"content": "firstmarker", "visibility": "followers"})
	d.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Relationships.End(ctx, user.Follower, dan, time.Now())
		return err
	})
	d.must("UpdateObject", map[string]any{"objectId": create.Object, "content": "secondmarker"})
	if got := d.waiting(); len(got) != 2 || slices.Contains(got, dan+"/inbox") {
		t.Errorf("owed to %q, want the other follower's inbox twice", got)
	}
}

func TestDeleteWithdrawsWhatWasNeverTried(t *testing.T) {
	t.Parallel()
	const create = `type = 'Create'`
	for _, c := range []struct {
		// the state of the delivery of the Create to dan's server
		name, visibility, state string
		dan                     []string
	}{
		{"never tried", "followers", `status = 'pending'`, nil},
		{"never tried, its host inactive", "followers", `status = 'parked'`, nil},
		{"never tried, and given up", "followers", `status = 'failed'`, nil},
		{"never tried, of a public post that its server may have fetched", "public", `status = 'pending'`, []string{"Delete"}},
		{"being tried", "followers", `lease_owner = 'serve another', next_at = '2030-01-01'`, []string{"Delete"}},
		{"tried by a process that is gone", "followers", `tried = true`, []string{"Delete"}},
		{"tried in vain", "followers", `attempts = 1, tried = true`, []string{"Delete"}},
		{"tried in vain, and then reset", "followers", `attempts = 0, tried = true`, []string{"Delete"}},
		{"given up", "followers", `status = 'failed', attempts = 6, tried = true`, []string{"Delete"}},
		{"delivered", "followers", `status = 'delivered', attempts = 1, tried = true`, []string{"Delete"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			note := d.must("CreateNote", map[string]any{"content": "firstmarker", "visibility": c.visibility}).Object
			d.exec(`UPDATE deliveries SET ` + c.state + ` WHERE host = 'q.example'`)
			d.must("DeleteObject", map[string]any{"objectId": note})
			if n := d.measured(`SELECT count(*) FROM delivery_jobs WHERE ` + create + ` AND body <> ''`); n > 0 {
				t.Error("the words are stored")
			}
			d.exec(`UPDATE deliveries SET lease_owner = NULL, status = 'delivered' WHERE lease_owner IS NOT NULL`) // ends the attempt
			d.write(func(ctx context.Context, tx *user.Tx) error {
				_, err := tx.Deliveries.Requeue(ctx, user.DeliveryChoice{States: []string{user.DeliveryFailed, user.DeliveryParked}}, true, 0, 100, d.Now())
				return err
			})
			var dan []string
			for _, r := range d.owed() {
				if r.Host == "q.example" {
					dan = append(dan, r.Type)
				}
			}
			if !slices.Equal(dan, c.dan) {
				t.Errorf("dan's server gets %q, want %q", dan, c.dan)
			}
		})
	}
}
