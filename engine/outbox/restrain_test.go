package outbox

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// assist dispatches as the LLM engine does.
func (d *desk) assist(token uuid.UUID, action string, params vocab.Doc) error {
	_, err := d.Dispatch(d.t.Context(), Dispatch{User: d.alice, Token: token, Assistant: true, Action: pipeline.Action{Name: action, Params: params.JSON()}})
	return err
}

func TestAnAssistantWritesInPrivateOnlyToThoseTheUserTalksWith(t *testing.T) {
	t.Parallel()
	d := town(t)
	token := uuid.Must(uuid.NewV7())
	friends := string(d.group("friends", bob))
	for _, c := range []struct {
		name, action string
		params       vocab.Doc
		code         string // empty: it may
	}{
		{"a message to a follower whom the user does not follow", "SendMessage", vocab.Doc{"recipientUri": carol, "content": "Hello"}, "stranger"},
		{"a message to a stranger", "SendMessage", vocab.Doc{"recipientUri": bob, "content": "Hello"}, "stranger"},
		{"a direct note to a stranger", "CreateNote", vocab.Doc{"content": "Hello", "visibility": "direct", "to": []any{bob}}, "stranger"},
		{"a note to followers that names a stranger", "CreateNote", vocab.Doc{"content": "Hello", "visibility": "followers", "to": []any{bob}}, "stranger"},
		{"a note to a group of strangers, whom the user has chosen", "CreateNote", vocab.Doc{"content": "Hello", "to": []any{friends}}, ""},
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

func TestAnAssistantDoesSixtyActionsAnHour(t *testing.T) {
	t.Parallel()
	d := town(t)
	token := uuid.Must(uuid.NewV7())
	for n := range assistantHourly {
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
