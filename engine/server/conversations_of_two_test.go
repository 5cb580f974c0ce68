package server_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// pair is alice's conversation with bob, used over HTTP.
type pair struct {
	*talk
	him vocab.ID
}

// shown is a conversation as the client API shows it.
type shown struct {
	ID                     uuid.UUID
	URI                    string
	Mode, Status, GroupID  string
	Partner                vocab.ID
	Epoch                  int64
	Unread                 int
	ReadEntry, ReadSeq     int64
	UpgradedAt, ClosedAt   *time.Time
	Predecessor, Successor string
	Members                []struct{ Actor vocab.ID }
	Items                  []struct {
		Kind       string
		Entry, Seq int64
		Own        bool
		Object     map[string]any
		Content    []byte
	}
	Next string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	f := newFixture(t)
	me := string(f.local.ID(f.alice))
	p := &pair{talk: &talk{fixture: f, device: mlstest.NewDevice(me, start), tokens: map[string]string{me: f.token(f.alice, "read", "write")}}, him: f.local.ID(f.bob)}
	p.group = mlstest.NewGroup(p.device)
	p.outbox.found = &vocab.Actor{ID: p.him}
	return p
}

// make requests a conversation. It fails the test unless the response has the given status.
func (p *pair) make(status int, body map[string]any) (c shown) {
	p.Helper()
	r := p.post(p.device.Identity, "/api/conversations", body).want(p.T, status)
	if status < http.StatusMultipleChoices {
		r.decode(p.T, &c)
		if at := r.Header.Get("Location"); at != "/api/conversations/"+c.ID.String() {
			p.Errorf("it lies at %q", at)
		}
	}
	return c
}

// open begins the conversation, which is not yet encrypted.
func (p *pair) open() shown {
	p.Helper()
	c := p.make(http.StatusCreated, map[string]any{"with": p.him})
	p.id, p.path = c.ID, "/api/conversations/"+c.ID.String()
	return c
}

func (p *pair) read(query string) (c shown) {
	p.Helper()
	p.get(p.path+query, bearerToken(p.tokens[p.device.Identity])).want(p.T, 200).decode(p.T, &c)
	return c
}

// note stores a Note and adds it to the conversation.
func (p *pair) note(text string, isOwn bool) {
	p.Helper()
	_, object := p.fixture.post(p.alice, text, start, p.him)
	p.write(p.alice, func(ctx context.Context, tx *user.Tx) error {
		_, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: p.local.ID(p.alice), Partner: p.him, Object: object, Own: isOwn, At: start})
		return err
	})
}

// refused fails the test unless the API refuses to make a conversation, with the given status and
// code.
func (p *pair) refused(status int, code string, body map[string]any) {
	p.Helper()
	var problem struct{ Error string }
	p.post(p.device.Identity, "/api/conversations", body).want(p.T, status).decode(p.T, &problem)
	if problem.Error != code {
		p.Errorf("%v is refused with %s, want %s", body, problem.Error, code)
	}
}

func TestAConversationIsOpenedWithAnActor(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	c := p.open()
	if c.Mode != "federated" || c.Partner != p.him || c.Status != "active" || c.GroupID != "" || len(c.Members) != 2 {
		t.Errorf("it begins as %+v", c)
	}
	if again := p.make(http.StatusOK, map[string]any{"with": p.him}); again.ID != c.ID {
		t.Errorf("there are two with the same actor: %s and %s", c.ID, again.ID)
	}
	p.outbox.found = &vocab.Actor{ID: p.local.ID(p.alice)}
	p.refused(422, "invalid_parameter", map[string]any{"with": p.device.Identity})
	for _, more := range []map[string]any{{"groupInfo": p.group.Info(p.device)}, {"upgrades": c.ID}, {"predecessor": c.ID}} {
		more["with"] = p.him
		p.refused(422, "invalid_parameter", more)
	}
	p.refused(422, "invalid_parameter", map[string]any{"upgrades": c.ID, "predecessor": c.ID, "groupInfo": p.group.Info(p.device)})
}

// Each entry of a timeline is on one page, newest first. A cursor is valid only for its own
// conversation. The user marks entries as read up to a number. The mark never moves back.
func TestATimelineIsReadInPagesAndMarked(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.open()
	const notes = 53
	for n := range notes {
		p.note(fmt.Sprint("note ", n+1), n == notes-1)
	}
	first := p.read("")
	if len(first.Items) != 50 || first.Next == "" || first.Unread != notes-1 || !first.Items[0].Own || first.Items[0].Object["content"] == nil {
		t.Fatalf("%d items, %d unread, next %q", len(first.Items), first.Unread, first.Next)
	}
	last := p.read("?cursor=" + first.Next)
	if len(last.Items) != notes-50 || last.Next != "" {
		t.Errorf("the last page has %d items, next %q", len(last.Items), last.Next)
	}
	all := append(first.Items, last.Items...)
	for i := 1; i < len(all); i++ {
		if all[i].Entry >= all[i-1].Entry {
			t.Errorf("entry %d stands before %d", all[i-1].Entry, all[i].Entry)
		}
	}

	me := bearerToken(p.tokens[p.device.Identity])
	p.get(p.path+"?cursor=x", me).want(t, 400)
	other := p.make(http.StatusCreated, map[string]any{"groupInfo": p.group.Info(p.device)})
	p.get("/api/conversations/"+other.ID.String()+"?cursor="+first.Next, me).want(t, 400)

	mark := func(body string, status, unread int) {
		t.Helper()
		p.put(p.path+"/read", body, p.tokens[p.device.Identity]).want(t, status)
		if got := p.read("").Unread; got != unread {
			t.Errorf("%d are unread after %s, want %d", got, body, unread)
		}
	}
	tenth := all[len(all)-10].Entry
	mark(fmt.Sprintf(`{"entry":%d}`, tenth), 204, notes-1-10)
	mark(`{"entry":1}`, 204, notes-1-10)
	mark(`{"seq":9}`, 204, notes-1-10)
	mark(`{"entry":-1}`, 422, notes-1-10)
	mark(`{"entry":9000000000}`, 204, 0)
	p.note("one more", false)
	mark(`{}`, 204, 1)
}

// The commit that adds bob encrypts the conversation. The conversation keeps its id and its
// earlier entries. After it is closed, only one conversation may continue it.
func TestAConversationOfTwoIsUpgradedAndContinued(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	c := p.open()
	p.note("in the open", true)
	upgrade := map[string]any{"upgrades": c.ID, "groupInfo": p.group.Info(p.device)}
	p.refused(403, "encryption_not_permitted", upgrade)
	p.befriend(p.alice, user.FriendOf, user.Accepted, user.Inbound, p.him, start)
	if begun := p.make(http.StatusCreated, upgrade); begun.ID != c.ID || begun.Mode != "federated" || begun.GroupID != p.group.ID {
		t.Errorf("the upgrade begins as %+v", begun)
	}
	p.add(mlstest.NewDevice(string(p.him), start))
	p.post(p.device.Identity, p.path+"/messages", map[string]any{"message": p.group.Message()}).want(t, 201)
	got := p.read("")
	kinds := ""
	for _, i := range got.Items {
		kinds += i.Kind + " "
	}
	if got.Mode != "encrypted" || got.UpgradedAt == nil || got.Epoch != 1 || got.URI != c.URI || kinds != "application upgraded commit note " {
		t.Errorf("it becomes %+v with %s", got, kinds)
	}
	p.refused(409, "already_encrypted", upgrade)
	next := map[string]any{"predecessor": c.ID, "groupInfo": mlstest.NewGroup(p.device).Info(p.device)}
	p.refused(409, "conversation_open", next)

	p.write(p.alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Pairs.Close(ctx, p.him, p.local.ID(p.alice), start)
		return err
	})
	if closed := p.read(""); closed.ClosedAt == nil || closed.Status != "closed" || closed.Items[0].Kind != "closed" {
		t.Errorf("it ends as %+v", closed)
	}
	continued := p.make(http.StatusCreated, next)
	if continued.Predecessor != c.URI || continued.Partner != p.him || continued.Mode != "encrypted" || continued.ID == c.ID {
		t.Errorf("it goes on as %+v", continued)
	}
	if before := p.read(""); before.Successor != continued.URI {
		t.Errorf("it is continued by %q, want %q", before.Successor, continued.URI)
	}
	p.refused(409, "successor_exists", map[string]any{"predecessor": c.ID, "groupInfo": mlstest.NewGroup(p.device).Info(p.device)})
}

// alice begins an upgrade, so the engine runs her conversation with her as the host. Then bob's
// upgrade makes bob the host. Requests for the conversation still find it.
func TestAConversationThatGetsAnotherHostIsFound(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	c := p.open()
	p.befriend(p.alice, user.FriendOf, user.Accepted, user.Inbound, p.him, start)
	p.make(http.StatusCreated, map[string]any{"upgrades": c.ID, "groupInfo": p.group.Info(p.device)})
	me, message := p.device.Identity, map[string]any{"message": p.group.Message()}
	for range 2 {
		p.post(me, p.path+"/messages", message).want(t, 422) // bob has not joined the conversation
	}
	theirs := mlstest.NewGroup(mlstest.NewDevice(string(p.him), start))
	uri := p.him + "/conversations/" + vocab.ID(uuid.NewString())
	p.write(p.alice, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Pairs.BeginUpgrade(ctx, c.ID, theirs.ID); err != nil {
			return err
		}
		j := user.JoinedConversation{ID: c.ID, URI: uri, Host: p.him, GroupID: theirs.ID, Status: user.StatusActive, Confirmed: true}
		if err := tx.Joined.Add(ctx, j, start); err != nil {
			return err
		}
		return tx.Pairs.Upgrade(ctx, user.Conversation{ID: c.ID, URI: uri, Host: p.him, GroupID: theirs.ID}, false, start)
	})
	p.get(p.path+"/log", bearerToken(p.tokens[me])).want(t, 200)
}
