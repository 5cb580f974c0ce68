package engine_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Fixtures F10 and F11 are plaintexts of messages: a Note without a Create, with an mls: id, and
// an attachment packed with gzip. A member elsewhere reads them byte for byte. The servers treat
// their ciphertext as any other message. They store nothing else of them.
func TestF10F11WhatIsInAMessageIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	devices := enginetest.StartDevices(t)
	a, b := enginetest.StartTwo(t)
	alice, carol := takeSeat(t, devices, a.CreateUser(t, "alice"), "alice's"), takeSeat(t, devices, b.CreateUser(t, "carol"), "carol's")
	r := &room{seats: []*seat{alice, carol}}
	r.allAreAdded(t)
	packed := base64.StdEncoding.EncodeToString(packedText(t, "a file that nobody opens on its way"))
	said := []string{
		`{"type":"Create","object":{"type":"Note","content":"as others say it"}}`,
		`{"@context":"https://www.w3.org/ns/activitystreams","id":"mls://m/01J9Z3","type":"Note","content":"a Note alone"}`,
		`{"id":"mls://m/01J9Z4", "type":"Note","content":"","attachment":[{"type":"Document","name":"notes.txt","mediaType":"text/plain","encoding":"gzip","content":"` + packed + `"}]}`,
	}
	for _, way := range [][2]*seat{{alice, carol}, {carol, alice}} {
		from, to := way[0], way[1]
		began := from.conversation(t).LastSeq
		sent := map[string]bool{}
		for _, words := range said {
			message := from.encrypt(t, words)
			last := from.send(t, message)
			sent[message] = true
			r.allHear(t, last.Seq)
		}
		to.expectHeard(t, said...)
		for _, s := range r.seats {
			entries := s.log(t, began)
			for _, e := range entries {
				if !sent[e.Content] || e.Kind != "application" || e.Epoch != 1 {
					t.Errorf("%s has %+v in the log, want the ciphertext as it was sent", s.name, e)
				}
			}
			if len(entries) != len(said) {
				t.Errorf("%s has %d entries in the log, want %d", s.name, len(entries), len(said))
			}
		}
	}
	for _, s := range r.seats {
		if len(holders(t, s.user, s.group)) == 0 {
			t.Error("nothing is found that is stored")
		}
		for _, secret := range []string{"as others say it", "a Note alone", "mls://m/01J9Z", "notes.txt", packed, "a file that nobody opens"} {
			if where := holders(t, s.user, secret); len(where) > 0 {
				t.Errorf("at %s %q is stored in %q", s.name, secret, where)
			}
		}
	}
}

func packedText(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// holders returns the tables of a user's database that contain a text: plain, in JSON, as bytes or
// in base64.
func holders(t *testing.T, u *enginetest.User, text string) (tables []string) {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{text, strings.Trim(string(quoted), `"`), hex.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(text))}
	rows, err := u.Home.SQL(t, "lightweb_"+u.Name).QueryContext(t.Context(), `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
		AND (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %I t, unnest(%L::text[]) f WHERE position(f IN t::text) > 0', table_name, $1::text[]), false, true, '')))[1]::text <> '0'`, forms)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tables
}
