package server_test

import (
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// Row 17: while PostgreSQL holds up a conversation whose mailbox is full, a program is answered 429
// with the time after which to try again. Later the same request succeeds.
func TestRow17AFullMailboxIsAnswered429(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.add(mlstest.NewDevice(string(k.carol.ID), start))
	release := dbtest.Hold(t, dbtest.SQL(t, k.store, k.alice), `SELECT FROM mls_conversations FOR UPDATE`)
	answers := make(chan error)
	ask := func() {
		_, err := k.deps.Conversations.Send(t.Context(), conversation.Place{Host: k.alice, ID: k.id}, conversation.Message{Caller: k.carol.ID, Content: k.group.Message()})
		answers <- err
	}
	const waiting = 256
	for range waiting + 1 {
		go ask()
	}
	if err := <-answers; fault.KindOf(err) != fault.RateLimited { // the others wait
		t.Fatalf("one of %d messages is answered %v", waiting+1, err)
	}
	body := map[string]any{"message": k.group.Message()}
	if r := k.post(k.device.Identity, k.path+"/messages", body).want(t, 429); r.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q, want 1", r.Header.Get("Retry-After"))
	}
	if r := k.submit("/messages", body).want(t, 429); r.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q to a member elsewhere, want 1", r.Header.Get("Retry-After"))
	}
	release()
	for range waiting {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	var a struct{ Seq int64 }
	k.post(k.device.Identity, k.path+"/messages", body).want(t, 201).decode(t, &a)
	if a.Seq != 1+waiting+1 {
		t.Errorf("the message has number %d, want %d", a.Seq, 1+waiting+1)
	}
}
