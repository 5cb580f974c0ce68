package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/vocab"
)

// receiveAnswer stores an answer in u's database. The parameter author names the answer's author,
// to the object that it answers, and audience its recipients.
func (f *fixture) receiveAnswer(u vocab.Username, to, author vocab.ID, name, content string, at time.Time, audience ...vocab.ID) vocab.ID {
	f.Helper()
	id := vocab.ID(author.Origin() + "/notes/" + name)
	named := make([]any, len(audience))
	for i, a := range audience {
		named[i] = string(a)
	}
	note := vocab.Doc{"id": string(id), "type": "Note", "attributedTo": string(author), "content": content, "inReplyTo": string(to), "to": named, "published": at.Format(time.RFC3339)}
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Published: at, Raw: note.JSON()}); err != nil {
			return err
		}
		return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: id + "/create", Direction: user.Inbound, Type: "Create", Actor: author, Object: id, Published: at,
			Raw: vocab.Doc{"id": string(id + "/create"), "type": "Create", "actor": string(author), "to": named, "object": note}.JSON()})
	})
	return id
}

func TestThePageOfAPostShowsItsPublicThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages, func(d *server.Deps) { d.PageSize = 10 })
	enemy, _ := f.remote("https://peer.example/users/enemy")
	f.block(f.alice, enemy.ID)
	dan := f.user("dan")
	public := vocab.Public
	_, root := f.post(f.alice, "the root", start, public)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	first := f.receiveAnswer(f.alice, root, f.carol.ID, "1", `<p onclick="evil()">first answer</p><script>evil()</script><img src="https://img.example/t.png">`, at(1), public)
	f.receiveAnswer(f.alice, root, f.carol.ID, "2", "<p>in private</p>", at(2), f.local.ID(f.alice))
	f.receiveAnswer(f.alice, root, enemy.ID, "3", "<p>of an enemy</p>", at(3), public)
	f.receiveAnswer(f.alice, root, "https://blocked.example/users/x", "4", "<p>of a blocked host</p>", at(4), public)
	f.receiveAnswer(f.alice, first, f.local.ID(dan), "5", "<p>of dan</p>", at(5), public)
	f.receiveAnswer(f.alice, first, f.local.ID(f.bob), "6", "<p>of bob</p>", at(6), public)
	f.state(dan, instance.UserSuspended)
	r := f.get(f.pageOf(root)).want(t, 200)
	r.holds(t, []string{"the root", "first answer", "of bob", "@bob@example.org", `content="article"`, `href="` + string(root) + `"`},
		[]string{"in private", "of an enemy", "blocked host", "of dan", "<script", "evil", "img.example"})
	if before, _, _ := strings.Cut(string(r.body), "first answer"); !strings.Contains(before, "the root") {
		t.Error("the answer stands before the post")
	}

	// The page of alice's answer shows the posts above it, up to the first post that is not
	// public.
	hidden := f.receiveAnswer(f.alice, root, f.carol.ID, "hidden", "<p>a hidden link</p>", at(7), f.local.ID(f.alice))
	behind := f.receiveAnswer(f.alice, hidden, f.carol.ID, "behind", "<p>behind it</p>", at(7), public)
	secret := f.receiveAnswer(f.alice, "", f.carol.ID, "secret", "<p>carol's secret</p>", at(8), f.local.ID(f.alice))
	for parent, shows := range map[vocab.ID][2][]string{
		first:                                    {{"the root", "first answer", "an answer"}, {"Answers another post", "of an enemy"}},
		behind:                                   {{"behind it", "an answer"}, {"the root", "a hidden link"}},
		secret:                                   {{"an answer", "Answers another post"}, {"carol's secret"}},
		vocab.ID(enemy.ID.Origin() + "/notes/3"): {{"an answer", "Answers another post"}, {"of an enemy"}},
	} {
		own := f.local.NewObjectID(f.alice)
		f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: own, Published: at(9), Raw: vocab.Doc{"id": string(own), "type": "Note", "attributedTo": string(f.local.ID(f.alice)),
				"content": "<p>an answer</p>", "inReplyTo": string(parent), "to": []any{string(public)}}.JSON()})
			return err
		})
		f.get(f.pageOf(own)).want(t, 200).holds(t, shows[0], shows[1])
	}
}

// Each answer of a long thread is on exactly one of its pages.
func TestTheAnswersOfAThreadArePaged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, root := f.post(f.alice, "the root", start, vocab.Public)
	for n := range 7 {
		f.receiveAnswer(f.alice, root, f.carol.ID, fmt.Sprint("a", n), fmt.Sprintf("<p>answer-%d.</p>", n), start.Add(time.Duration(n+1)*time.Minute), vocab.Public)
	}
	seen, pages := "", 0
	for next := f.pageOf(root); next != "" && pages < 20; pages++ {
		body := string(f.get(next).want(t, 200).body)
		for n := range 7 {
			if strings.Contains(body, fmt.Sprintf("answer-%d.", n)) {
				seen += fmt.Sprint(n)
			}
		}
		_, next, _ = strings.Cut(body, `rel="next" href="`)
		next, _, _ = strings.Cut(next, `"`)
	}
	if seen != "0123456" || pages < 4 {
		t.Errorf("%d pages show the answers %s", pages, seen)
	}
}

// A quote authorization has no page, because only servers read it.
func TestAStampHasNoPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, quoted := f.post(f.alice, "quoted", start, vocab.Public)
	stamp := f.local.NewObjectID(f.alice)
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		raw := vocab.Stamp{Author: f.local.ID(f.alice), Quoting: vocab.ID(f.carol.ID.Origin() + "/notes/q"), Quoted: quoted}.Doc(stamp, f.carol.ID).JSON()
		_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: stamp, Published: start, Raw: raw})
		return err
	})
	f.get(f.pageOf(stamp)).want(t, 404)
	f.get(strings.TrimPrefix(string(stamp), origin), header("Accept", "text/html, */*;q=0.8")).want(t, 200).holds(t, []string{"QuoteAuthorization"}, nil)
}

// When the author of a quoted post approves the quote, the quoting post gets an Update. The page
// does not show the quoting post as changed then.
func TestAnApprovedQuoteIsNotShownAsChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, post := f.post(f.alice, "see", start, vocab.Public)
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		o, err := tx.Objects.Find(ctx, post)
		if err == nil {
			_, err = tx.Objects.Replace(ctx, post, o.Raw, o.Readable, start.Add(time.Hour))
		}
		return err
	})
	f.get(f.pageOf(post)).want(t, 200).holds(t, []string{"see"}, []string{"changed"})
}
