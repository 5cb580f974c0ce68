package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// assist dispatches an action as an LLM engine does.
func (d *desk) assist(token uuid.UUID, action string, params vocab.Doc) error {
	_, err := d.Dispatch(d.t.Context(), Dispatch{User: d.alice, Token: token, Assistant: true, Action: pipeline.Action{Name: action, Params: params.JSON()}})
	return err
}

func TestAnAssistantWritesInPrivateOnlyToThoseTheUserTalksWith(t *testing.T) {
	t.Parallel()
	d := town(t)
	token := uuid.Must(uuid.NewV7())
	friends := string(d.group("friends", bob))
	d.must("Like", vocab.Doc{"objectId": bobsPost})
	for _, c := range []struct {
		name, action string
		params       vocab.Doc
		code         string // if empty, the action is permitted
	}{
		{"a message to a follower that the user does not follow", "SendMessage", vocab.Doc{"recipientUri": carol, "content": "Hello"}, "stranger"},
		{"a message to a stranger", "SendMessage", vocab.Doc{"recipientUri": bob, "content": "Hello"}, "stranger"},
		{"a direct note to a stranger", "CreateNote", vocab.Doc{"content": "Hello", "visibility": "direct", "to": []any{bob}}, "stranger"},
		{"a note to a stranger alone", "CreateNote", vocab.Doc{"content": "Hello", "to": []any{bob}}, "stranger"},
		{"a public note that names a stranger", "CreateNote", vocab.Doc{"content": "Hello", "visibility": "public", "to": []any{bob}}, ""},
		{"a note to followers that names a stranger", "CreateNote", vocab.Doc{"content": "Hello", "visibility": "followers", "to": []any{bob}}, "stranger"},
		{"a note to a group of strangers that the user has chosen", "CreateNote", vocab.Doc{"content": "Hello", "to": []any{friends}}, ""},
		{"a note to a group that names a stranger", "CreateNote", vocab.Doc{"content": "Hello", "to": []any{friends, carol}}, "stranger"},
		{"an answer to a stranger, for a group", "CreateNote", vocab.Doc{"content": "Hello", "to": []any{friends}, "inReplyTo": bobsPost}, "stranger"},
		{"a note to followers", "CreateNote", vocab.Doc{"content": "Hello", "visibility": "followers"}, ""},
		{"a public note", "CreateNote", vocab.Doc{"content": "Hello"}, ""},
		{"an answer to a stranger's public post", "Reply", vocab.Doc{"objectId": bobsPost, "content": "Hello"}, ""},
	} {
		err := d.assist(token, c.action, c.params)
		if got := codeOf(err); got != c.code {
			t.Errorf("%s: code %q, want %q (%v)", c.name, got, c.code, err)
		}
	}
	if _, err := d.dispatch("SendMessage", vocab.Doc{"recipientUri": bob, "content": "Hello"}); err != nil {
		t.Fatalf("the user itself writes to a stranger: %v", err)
	}
	if err := d.assist(token, "SendMessage", vocab.Doc{"recipientUri": bob, "content": "Hello again"}); err != nil {
		t.Errorf("a message to somebody the user has written to: %v, want none", err)
	}
}

// An LLM engine can name only objects and actors that are known here. The engine fetches no other
// address, because an address could contain words that the LLM engine has read.
func TestAnAssistantNamesOnlyWhatIsHere(t *testing.T) {
	t.Parallel()
	d := town(t)
	const evil = "https://evil.example/x?d=the+words+of+a+letter"
	d.world.person(t, "evil.example", "mallory", false)
	d.world.post(evil, "https://evil.example/users/mallory", public)
	bobby := d.user("bobby")
	asked, sent := d.world.asked, d.sent()
	d.world.objectAsked = func() { t.Error("an object was asked for") }
	for _, c := range []struct {
		action string
		params vocab.Doc
		at     string
	}{
		{"Like", vocab.Doc{"objectId": evil}, "/params/objectId"},
		{"Dislike", vocab.Doc{"objectId": evil}, "/params/objectId"},
		{"Boost", vocab.Doc{"objectId": evil}, "/params/objectId"},
		{"Reply", vocab.Doc{"objectId": evil, "content": "x"}, "/params/objectId"},
		{"CreateNote", vocab.Doc{"content": "x", "inReplyTo": evil}, "/params/inReplyTo"},
		{"CreateNote", vocab.Doc{"content": "x", "to": []any{evil}}, "/params/to/0"},
		{"CreateNote", vocab.Doc{"content": "x", "cc": []any{"@the-words@evil.example"}}, "/params/cc/0"},
		{"CreateNote", vocab.Doc{"content": "x", "cc": []any{"https://evil.example/users/mallory"}}, "/params/cc/0"},
		{"CreateNote", vocab.Doc{"content": "x", "to": []any{here + "/users/bobby"}}, "/params/to/0"},
		{"SendMessage", vocab.Doc{"content": "x", "recipientUri": evil}, "/params/recipientUri"},
		{"SendMessage", vocab.Doc{"content": "x", "recipientUri": "@mallory@evil.example"}, "/params/recipientUri"},
		{"Like", vocab.Doc{"objectId": here + "/users/" + bobby.String() + "/objects/1"}, "/params/objectId"},
	} {
		err := d.assist(d.token, c.action, c.params)
		if e := fault.Of(err); e == nil || e.Code != "not_known_here" || e.Kind != fault.Forbidden || e.Pointer != c.at {
			t.Errorf("%s of %v: %v, want not_known_here at %s", c.action, c.params, err, c.at)
		}
	}
	if d.world.asked != asked || d.sent() != sent {
		t.Errorf("%d actors were asked for and %d activities sent, want none", d.world.asked-asked, d.sent()-sent)
	}
	d.world.objectAsked = nil
	d.must("Like", vocab.Doc{"objectId": evil}) // the user's own programs may still name it
	if err := d.assist(d.token, "Reply", vocab.Doc{"objectId": evil, "content": "x"}); err != nil {
		t.Errorf("an answer to what the user likes: %v", err)
	}
	if err := d.assist(d.token, "CreateNote", vocab.Doc{"content": "x", "visibility": "public", "cc": []any{"@Mallory@evil.example"}}); err != nil {
		t.Errorf("a note that names an actor the user has here: %v", err)
	}
}

// A refused action counts towards the limit as much as a successful one.
func TestAnAssistantsAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	d := town(t)
	var last *fault.Error
	for n := range policy.Attempts.Hourly + 1 {
		if last = fault.Of(d.assist(d.token, "Like", vocab.Doc{"objectId": "https://evil.example/x"})); last.Code != "not_known_here" && n < policy.Attempts.Hourly {
			t.Fatalf("attempt %d: %v", n+1, last)
		}
	}
	if last.Code != "assistant_limit" || last.RetryAfter < 58*time.Minute || last.RetryAfter > time.Hour+time.Minute {
		t.Errorf("attempt 61 is refused as %q, and may be repeated after %s; want assistant_limit, and until the hour has passed", last.Code, last.RetryAfter)
	}
	left, err := d.AttemptQuotas(t.Context(), d.alice, d.token)
	if err != nil || len(left) != 2 {
		t.Fatalf("there is left %+v, %v", left, err)
	}
	hour, day := left[0], left[1]
	if hour.Left != 0 || hour.Limit != 60 || hour.Reset <= 0 || hour.Reset > time.Hour+time.Minute || day.Left != 440 || day.Limit != 500 || day.Reset <= 23*time.Hour {
		t.Errorf("there is left %+v", left)
	}
	if other, err := d.AttemptQuotas(t.Context(), d.alice, uuid.New()); err != nil || other[0].Left != 60 || other[1].Left != 500 || other[0].Reset != 0 {
		t.Errorf("another token has left %+v, %v", other, err)
	}
}

func TestAnAssistantDoesSixtyActionsAnHour(t *testing.T) {
	t.Parallel()
	d := town(t)
	token := uuid.Must(uuid.NewV7())
	for n := range policy.Attempts.Hourly {
		if err := d.assist(token, "CreateNote", vocab.Doc{"content": "Hello"}); err != nil {
			t.Fatalf("action %d: %v", n+1, err)
		}
	}
	before := d.sent()
	err := d.assist(token, "CreateNote", vocab.Doc{"content": "Hello"})
	if codeOf(err) != "assistant_limit" || fault.Of(err).RetryAfter <= 0 || d.sent() != before {
		t.Errorf("action 61: %v, %d activities more; want it refused with a time to wait, and nothing stored", err, d.sent()-before)
	}
	if err := d.assist(uuid.Must(uuid.NewV7()), "CreateNote", vocab.Doc{"content": "Hello"}); err != nil {
		t.Errorf("an action by another token: %v", err)
	}
	d.clock.Add((time.Hour + time.Minute).Milliseconds())
	if err := d.assist(token, "CreateNote", vocab.Doc{"content": "Hello"}); err != nil {
		t.Errorf("an action an hour later: %v", err)
	}
}

func codeOf(err error) string {
	if e := fault.Of(err); e != nil {
		return e.Code
	}
	return ""
}

// A message waits among the requests. The LLM engine cannot use the message or its author.
func TestAnAssistantNamesNothingThatWaits(t *testing.T) {
	t.Parallel()
	d := town(t)
	stranger := d.world.person(t, "evil.example", "mallory", false)
	letter, create := stranger.ID+"/notes/1", stranger.ID+"/creates/1"
	d.write(func(ctx context.Context, tx *user.Tx) error {
		note := vocab.Doc{"id": string(letter), "type": "Note", "attributedTo": string(stranger.ID), "content": "psst", "to": []any{string(d.Local.ID(d.alice))}}
		if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: letter, Author: stranger.ID, Published: d.Now(), Raw: note.JSON()}); err != nil {
			return err
		}
		err := tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: create, Direction: user.Inbound, Type: vocab.Create, Actor: stranger.ID, Object: letter, Published: d.Now(),
			Raw: vocab.Doc{"id": string(create), "type": vocab.Create, "actor": string(stranger.ID), "object": string(letter)}.JSON()})
		if err != nil {
			return err
		}
		return tx.Requests.Add(ctx, user.Request{Activity: create, Actor: stranger.ID, Host: "evil.example"}, d.Now())
	})
	check := func(code string) {
		t.Helper()
		for _, name := range []string{string(stranger.ID), "@mallory@evil.example"} {
			if _, err := d.FindActor(t.Context(), d.alice, true, name); codeOf(err) != code {
				t.Errorf("%s is found: %v, want %q", name, err, code)
			}
		}
		for _, id := range []vocab.ID{letter, create} {
			if err := d.assist(d.token, "Like", vocab.Doc{"objectId": string(id)}); codeOf(err) != code {
				t.Errorf("Like of %s: %v, want %q", id, err, code)
			}
		}
	}
	check("not_known_here")
	if _, err := d.FindActor(t.Context(), d.alice, false, string(stranger.ID)); err != nil {
		t.Errorf("the user itself finds the stranger: %v", err)
	}
	d.must("AcceptRequest", vocab.Doc{"activityId": string(create)})
	check("")
}
