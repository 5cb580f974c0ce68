package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// asked returns the QuoteRequests that are to be delivered, and their inboxes.
func (d *desk) asked() (requests []vocab.Doc, inboxes []vocab.ID) {
	d.t.Helper()
	for _, row := range d.owed() {
		a, err := vocab.ParseActivity(row.Body)
		if err != nil {
			d.t.Fatal(err)
		}
		if a.Type == vocab.QuoteRequest {
			requests, inboxes = append(requests, a.Doc), append(inboxes, row.Inbox)
		}
	}
	return requests, inboxes
}

func TestWhatIsQuotedIsNamedInEveryForm(t *testing.T) {
	t.Parallel()
	for action, params := range map[string]map[string]any{
		"CreateNote": {"content": "see"}, "CreateArticle": {"title": "On bob", "content": "see"}, "Reply": {"objectId": bobsPost, "content": "see"},
	} {
		d := town(t)
		d.owed()
		params["quote"] = bobsPost
		o := d.made(action, params)
		for _, name := range []string{"quote", "quoteUrl", "_misskey_quote"} {
			if o.Text(name) != bobsPost {
				t.Errorf("%s: %s is %q", action, name, o.Text(name))
			}
		}
		if want := `<p class="quote-inline">RE: <a href="` + bobsPost + `">` + bobsPost + `</a></p><p>see</p>`; o.Text("content") != want || o.Sub("source").Text("content") != "see" {
			t.Errorf("%s: the content is %s", action, o.Text("content"))
		}
		requests, inboxes := d.asked()
		if len(requests) != 1 || inboxes[0] != bob+"/inbox" {
			t.Fatalf("%s: bob is asked by %v at %v", action, requests, inboxes)
		}
		if r := requests[0]; r.Text("object") != bobsPost || r.Text("instrument") != o.Text("id") || r.Text("actor") != string(me) {
			t.Errorf("%s: bob is asked by %s", action, r.JSON())
		}
		changed := d.made("UpdateObject", map[string]any{"objectId": o.Text("id"), "content": "look"})
		if changed.Text("quote") != bobsPost || !strings.HasPrefix(changed.Text("content"), `<p class="quote-inline">`) || !strings.HasSuffix(changed.Text("content"), "<p>look</p>") {
			t.Errorf("%s: with other words it is %s", action, changed.JSON())
		}
	}
}

// The engine sends no QuoteRequest to an author who may not read the quoting post. It sends none
// for a quote of the user's own post.
func TestWhoIsAskedForAQuote(t *testing.T) {
	t.Parallel()
	d := town(t)
	own := string(d.note(map[string]any{"content": "hi"}))
	for name, c := range map[string]struct {
		params map[string]any
		want   int
	}{
		"in public":              {map[string]any{"quote": bobsPost}, 1},
		"for followers":          {map[string]any{"quote": bobsPost, "visibility": "followers"}, 0},
		"in private to another":  {map[string]any{"quote": bobsPost, "to": []string{dan}}, 0},
		"in private to bob":      {map[string]any{"quote": bobsPost, "to": []string{bob}}, 1},
		"of the user's own post": {map[string]any{"quote": own}, 0},
	} {
		d.owed()
		c.params["content"] = "see"
		d.must("CreateNote", c.params)
		if requests, _ := d.asked(); len(requests) != c.want {
			t.Errorf("%s: %d are asked, want %d", name, len(requests), c.want)
		}
	}
}

func TestWhatIsNotQuoted(t *testing.T) {
	t.Parallel()
	d := town(t)
	secret := string(d.note(map[string]any{"content": "hi", "visibility": "direct", "to": []string{bob}}))
	quoting := func(id string) map[string]any { return map[string]any{"content": "see", "quote": id} }
	d.refused("CreateNote", quoting(secret), fault.Forbidden, "not_public")
	d.refused("CreateNote", quoting("https://p.example/notes/none"), fault.NotFound, "")
	d.refused("CreateNote", quoting("bob's post"), fault.Unprocessable, "invalid_parameter")
	d.must("Block", map[string]any{"actorUri": bob})
	d.refused("CreateNote", quoting(bobsPost), fault.Conflict, "blocked")
}

func TestALLMEngineQuotesOnlyWhatIsHere(t *testing.T) {
	t.Parallel()
	d := town(t)
	article := d.world.article(bob)
	before := d.world.asked
	if err := d.assist(d.token, "CreateNote", vocab.Doc{"content": "see", "quote": article}); err == nil || fault.Of(err).Code != "not_known_here" {
		t.Errorf("it quotes what is not here: %v", err)
	}
	if d.world.asked != before {
		t.Error("another server was asked for it")
	}
}

// A revoked quote authorization is deleted. Everybody who may know it gets the Delete.
func TestAQuoteIsRevoked(t *testing.T) {
	t.Parallel()
	d := town(t)
	own := d.note(map[string]any{"content": "hi", "visibility": "public"})
	stamp, quote := me+"/objects/019c8052-5f00-5000-8000-000000000001", "https://p.example/notes/quote"
	d.write(func(ctx context.Context, tx *user.Tx) error {
		o, err := vocab.ObjectOf(vocab.Stamp{Author: me, Quoting: vocab.ID(quote), Quoted: own}.Doc(stamp, bob))
		if err == nil {
			_, err = tx.Objects.Add(ctx, handler.Stored(o, d.Now()))
		}
		return err
	})
	d.refused("RevokeQuote", naming("https://p.example/notes/other"), fault.NotFound, "not_quoted")
	d.owed()
	a := d.must("RevokeQuote", naming(quote))
	if a.Object != stamp || a.Type != vocab.Delete {
		t.Fatalf("it is a %s of %s", a.Type, a.Object)
	}
	var inboxes []string
	for _, row := range d.owed() {
		inboxes = append(inboxes, string(row.Inbox))
	}
	for _, want := range []string{bob + "/inbox", dan + "/inbox"} {
		if !slices.Contains(inboxes, want) {
			t.Errorf("%s is not told: %v", want, inboxes)
		}
	}
	d.refused("RevokeQuote", naming(quote), fault.NotFound, "not_quoted")
}

// tellsAll is a function for handler.Received that permits every event.
func tellsAll(string) bool { return true }

// approve lets bob approve the quote in a note of alice's.
func (d *desk) approve(note vocab.ID) error {
	d.t.Helper()
	return d.approveBy(note, "https://p.example/stamps/1")
}

// approveBy lets bob approve with a quote authorization under the given id.
func (d *desk) approveBy(note, id vocab.ID) error {
	d.t.Helper()
	stamp, err := vocab.ObjectOf(vocab.Stamp{Author: bob, Quoting: note, Quoted: bobsPost}.Doc(id, me))
	if err != nil {
		d.t.Fatal(err)
	}
	return d.answerQuote(note, vocab.Doc{"type": vocab.Accept, "result": string(stamp.ID)}, map[vocab.ID]*vocab.Object{stamp.ID: stamp})
}

// answerQuote handles bob's answer to the QuoteRequest of a note.
func (d *desk) answerQuote(note vocab.ID, answer vocab.Doc, fetched map[vocab.ID]*vocab.Object) error {
	d.t.Helper()
	return d.c.Write(d.t.Context(), d.alice, func(ctx context.Context, tx *user.Tx) error {
		request, err := tx.Activities.Latest(ctx, vocab.QuoteRequest, me, note)
		if err != nil || request == nil {
			return fmt.Errorf("bob was asked by %v, %w", request, err)
		}
		answer["id"], answer["actor"], answer["object"] = "https://p.example/answers/1", bob, string(request.URI)
		a, err := vocab.ParseActivity(answer.JSON())
		if err != nil {
			return err
		}
		now := d.Now()
		_, err = d.Handlers.Lookup(a).Received(ctx, tx, &handler.Received{User: d.alice, Me: me, Activity: a, Actor: d.world.actors[bob], Fetched: fetched, Named: true, Now: now, Applied: now, Tells: tellsAll})
		return err
	})
}

// toldOfApproval lets bob approve. It returns the inboxes that get the Update.
func (d *desk) toldOfApproval(note vocab.ID) (inboxes []string) {
	d.t.Helper()
	d.owed()
	if err := d.approve(note); err != nil {
		d.t.Fatal(err)
	}
	for _, row := range d.owed() {
		inboxes = append(inboxes, string(row.Inbox))
	}
	return inboxes
}

// An approval's Update goes to everybody who has the post. It does not go to actors that have
// since left the followers or the group, because they may not get the newer words.
func TestAnApprovalBringsNewWordsToNobodyWhoIsOut(t *testing.T) {
	t.Parallel()
	for visibility, wants := range map[string]bool{"followers": false, "public": true} {
		d := town(t)
		note := d.note(map[string]any{"content": "@bob@p.example, see", "quote": bobsPost, "visibility": visibility})
		d.must("RejectFollow", map[string]any{"actorUri": dan})
		d.must("UpdateObject", map[string]any{"objectId": string(note), "content": "@bob@p.example, look"})
		if told := d.toldOfApproval(note); slices.Contains(told, dan+"/inbox") != wants || !slices.Contains(told, "https://p.example/inbox") {
			t.Errorf("%s: told are %q", visibility, told)
		}
	}
	d := town(t)
	group := string(d.group("friends", bob, dan))
	note := d.note(map[string]any{"content": "see", "quote": bobsPost, "to": []any{group, bob}})
	d.must("RemoveFromGroup", map[string]any{"name": "friends", "actorUri": dan})
	if told := d.toldOfApproval(note); slices.Contains(told, dan+"/inbox") || !slices.Contains(told, bob+"/inbox") {
		t.Errorf("group: told are %q", told)
	}
}

// Only the first quote authorization counts. Each further one would cost an Update to everybody
// who has the post, and bob can make any number of them.
func TestAQuoteIsApprovedOnce(t *testing.T) {
	t.Parallel()
	d := town(t)
	note := d.note(map[string]any{"content": "see", "quote": bobsPost})
	if told := d.toldOfApproval(note); len(told) == 0 {
		t.Fatal("nobody is told of the first stamp")
	}
	for _, id := range []vocab.ID{"https://p.example/stamps/2", "https://p.example/stamps/1"} {
		if err := d.approveBy(note, id); !errors.Is(err, handler.ErrIgnored) {
			t.Errorf("%s is taken: %v", id, err)
		}
	}
	if again := d.owed(); len(again) > 0 {
		t.Errorf("of further stamps %d inboxes are told", len(again))
	}
	doc, err := vocab.ParseDoc(d.object(note).Raw)
	if err != nil || doc.Text("quoteAuthorization") != "https://p.example/stamps/1" {
		t.Errorf("the post is %s, %v; want it with the first stamp", doc.JSON(), err)
	}
	if second := d.object("https://p.example/stamps/2"); second != nil {
		t.Errorf("the second stamp is stored: %s", second.Raw)
	}
}

// The user sees the words that the user wrote. The engine adds a line for servers that do not
// support quotes, and the user does not see that line.
func TestThePlainTextOfAQuoteIsWhatTheUserWrote(t *testing.T) {
	t.Parallel()
	d := town(t)
	shows := func(note vocab.ID, want string) {
		t.Helper()
		o := d.object(note)
		doc := mustDoc(t, o.Raw)
		if got := vocab.Show(doc, vocab.ReadableOf(doc, o.Readable), nil).Sub("source").Text("content"); got != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
	}
	note := d.note(map[string]any{"content": "see @bob@p.example", "quote": bobsPost})
	shows(note, "see @bob@p.example")
	d.must("UpdateObject", map[string]any{"objectId": string(note), "content": "look @bob@p.example"})
	shows(note, "look @bob@p.example")
	if err := d.approve(note); err != nil {
		t.Fatal(err)
	}
	shows(note, "look @bob@p.example")
}

// An Update that tells of an approval has a published time. Without that time, servers ignore the
// Update when another actor forwards it. The post in it has no updated time, because the post was
// not edited.
func TestAnUpdateThatTellsOfAnApprovalHasATime(t *testing.T) {
	t.Parallel()
	d := town(t)
	note := d.note(map[string]any{"content": "see", "quote": bobsPost})
	if err := d.approve(note); err != nil {
		t.Fatal(err)
	}
	d.write(func(ctx context.Context, tx *user.Tx) error {
		sent, err := tx.Activities.Latest(ctx, vocab.Update, me, note)
		if err != nil || sent == nil {
			return fmt.Errorf("an Update tells of it: %v, %w", sent, err)
		}
		a, err := vocab.ParseActivity(sent.Raw)
		if err != nil || a.Published.IsZero() || a.Object.Doc["updated"] != nil {
			t.Errorf("the Update is %s (%v)", sent.Raw, err)
		}
		return nil
	})
}

// An approval arrives during an edit. It waits until the new words are stored.
func TestAnApprovalLosesNoWordsThatAreJustChanged(t *testing.T) {
	t.Parallel()
	d := town(t)
	note := d.note(map[string]any{"content": "see", "quote": bobsPost})
	approved := make(chan error, 1)
	d.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Lock(ctx, handler.LockName(note)); err != nil {
			return err
		}
		o, err := tx.Objects.Find(ctx, note)
		if err != nil {
			return err
		}
		doc, err := vocab.ParseDoc(o.Raw)
		if err != nil {
			return err
		}
		doc["content"] = "look"
		if _, err := tx.Objects.Replace(ctx, note, doc.JSON(), o.Readable, d.Now()); err != nil {
			return err
		}
		go func() { approved <- d.approve(note) }()
		dbtest.AwaitLock(t, d.c, d.alice, approved)
		return nil
	})
	if err := <-approved; err != nil {
		t.Fatal(err)
	}
	doc, err := vocab.ParseDoc(d.object(note).Raw)
	if err != nil || doc.Text("content") != "look" || doc.Text("quoteAuthorization") == "" {
		t.Errorf("the post is %s, %v; want the new words, approved", doc.JSON(), err)
	}
}

// A Reject arrives during an edit. It stays in force after the edit.
func TestAnEditLosesNoRefusalThatIsJustComing(t *testing.T) {
	t.Parallel()
	d := town(t)
	note := d.note(map[string]any{"content": "see", "quote": bobsPost})
	d.world.handleAsked = func() {
		d.world.handleAsked = nil
		if err := d.answerQuote(note, vocab.Doc{"type": vocab.Reject}, nil); err != nil {
			t.Error(err)
		}
	}
	d.refused("UpdateObject", map[string]any{"objectId": note, "content": "look, @dan@q.example"}, fault.Conflict, "changed_meanwhile")
	d.must("UpdateObject", map[string]any{"objectId": note, "content": "look, @dan@q.example"})
	doc, err := vocab.ParseDoc(d.object(note).Raw)
	if err != nil || !doc.Flag("lwQuoteRefused") {
		t.Errorf("the post is %s, %v; want it refused", doc.JSON(), err)
	}
}
