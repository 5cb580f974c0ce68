package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// reply stores an answer in alice's database. The parameter by names its author, an actor of
// another server, and the parameter to the object that it answers.
func (f *fixture) reply(by vocab.ID, name string, to vocab.ID, at time.Time, audience ...any) vocab.ID {
	f.Helper()
	id := vocab.ID(by.Origin() + "/notes/" + name)
	doc := vocab.Doc{"id": string(id), "type": "Note", "attributedTo": string(by), "content": "hi", "inReplyTo": string(to), "to": audience}
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Published: at, Raw: doc.JSON()})
		return err
	})
	return id
}

// beginThread stores a note of alice's that begins a thread.
func (f *fixture) beginThread(to ...any) vocab.ID {
	f.Helper()
	id := f.local.NewObjectID(f.alice)
	doc := vocab.Doc{"id": string(id), "type": "Note", "attributedTo": string(f.local.ID(f.alice)), "content": "first", "to": to, "context": string(f.local.Thread(id))}
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Published: start, Raw: doc.JSON()})
		return err
	})
	return id
}

func TestAnybodyReadsThePublicAnswersToAPublicObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	everybody, at := string(vocab.Public), func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	enemy, enemyKey := f.remote("https://enemy.example/users/e")
	root := f.beginThread(everybody)
	first := f.reply(f.carol.ID, "1", root, at(1), everybody)
	private := f.reply(f.carol.ID, "2", root, at(2), string(f.local.ID(f.alice)))
	second := f.reply(f.carol.ID, "3", root, at(3), string(f.carol.Followers), everybody)
	f.reply(enemy.ID, "4", root, at(4), everybody)
	f.reply("https://blocked.example/users/b", "5", root, at(5), everybody)
	third := f.reply(f.carol.ID, "6", root, at(6), everybody)
	deep := f.reply(f.carol.ID, "7", first, at(7), everybody)
	f.reply(f.carol.ID, "8", private, at(8), everybody)
	underEnemy := f.reply(f.carol.ID, "9", "https://enemy.example/notes/4", at(9), everybody)
	f.block(f.alice, enemy.ID)
	replies, thread := string(f.local.Replies(root)), string(f.local.Thread(root))
	for name, how := range map[string][]asking{"anybody": nil, "carol": {f.signed(f.carolKey, signature.RFC9421)}, "alice": {bearerToken(f.token(f.alice, "read"))}} {
		if diff := cmp.Diff([]vocab.ID{first, second, third}, f.walk(replies, nil, how...)); diff != "" {
			t.Errorf("%s: replies (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]vocab.ID{root, first, second, third, deep}, f.walk(thread, nil, how...)); diff != "" {
			t.Errorf("%s: the thread, without %s (-want +got):\n%s", name, underEnemy, diff)
		}
	}
	for _, id := range []string{replies, thread} {
		r := f.get(id).want(t, 200)
		if d := r.doc(t); d.Text("id") != id || d.Text("type") != "OrderedCollection" || d.Text("attributedTo") != string(f.local.ID(f.alice)) || d["totalItems"] != nil || d["first"] == nil {
			t.Errorf("%s is %v", id, d)
		}
		if r.Header.Get("Cache-Control") != "public, max-age=60" || r.Header.Get("ETag") == "" {
			t.Errorf("%s has %v", id, r.Header)
		}
		f.get(id, f.signed(enemyKey, signature.RFC9421)).want(t, 403)
		f.get(id, f.signed(f.blockedKey(), signature.RFC9421)).want(t, 403)
		f.get(id+"?cursor=x").want(t, 400)
	}
	// the next request must show no outdated page
	fourth := f.reply(f.carol.ID, "10", root, at(10), everybody)
	if got := f.walk(replies, nil); got[len(got)-1] != fourth {
		t.Errorf("replies are %q, without the new one", got)
	}
}

func TestWhatIsNotPublicHasNoLists(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	private := f.beginThread(string(f.carol.ID))
	_, inOther := f.post(f.alice, "in no thread", start, vocab.Public)
	deleted := f.beginThread(string(vocab.Public))
	f.bury(f.alice, deleted)
	unknown := f.local.NewObjectID(f.alice)
	f.get(string(f.local.Replies(inOther))).want(t, 200)
	for _, id := range []vocab.ID{f.local.Replies(private), f.local.Thread(private), f.local.Thread(inOther), f.local.Replies(deleted), f.local.Replies(unknown), f.local.Thread(unknown),
		f.local.ID(f.alice) + "/objects/x/replies", "https://example.org/users/nobody/objects/" + unknown[len(unknown)-36:] + "/replies"} {
		for _, page := range []string{"", "?page=true"} {
			for name, how := range map[string][]asking{"anybody": nil, "carol": {f.signed(f.carolKey, signature.RFC9421)}, "alice": {bearerToken(f.token(f.alice, "read"))}} {
				r := f.get(string(id)+page, how...).want(t, 404)
				if nothing := f.get(string(f.local.Replies(f.local.NewObjectID(f.alice)))+page, how...); strings.Contains(string(id), "/users/alice/") && !strings.Contains(string(id), "/x/") && r.anonymous() != nothing.anonymous() {
					t.Errorf("%s, asked by %s, differs from what is not there: %s", id, name, r.anonymous())
				}
			}
		}
	}
	secure := newFixture(t, func(d *server.Deps) { d.SecureMode = true })
	root := secure.beginThread(string(vocab.Public))
	secure.get(string(secure.local.Replies(root))).want(t, 401)
	secure.get(string(secure.local.Replies(root)), secure.signed(secure.carolKey, signature.RFC9421)).want(t, 200)
}
