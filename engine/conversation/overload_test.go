package conversation_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// stall makes every transaction on the conversation wait in PostgreSQL until the function free is
// called: another connection holds the lock of the conversation's row.
func (s *scene) stall(t *testing.T) (free func()) {
	t.Helper()
	return dbtest.Hold(t, dbtest.SQL(t, s.store, s.user), `SELECT FROM mls_conversations WHERE id = $1 FOR UPDATE`, s.at.ID)
}

// line holds the requests that wait for a conversation, in the order in which the conversation
// accepted them.
type line struct {
	*scene
	contents [][]byte
	answers  []chan error
	accepted []*conversation.Accepted
}

// add makes a request for a message or a commit, and returns once the request waits.
func (l *line) add(content []byte, ask func() (conversation.Accepted, error)) {
	l.Helper()
	answer, accepted := make(chan error, 1), new(conversation.Accepted)
	l.contents, l.answers, l.accepted = append(l.contents, content), append(l.answers, answer), append(l.accepted, accepted)
	go func() {
		a, err := ask()
		*accepted = a
		answer <- err
	}()
	for l.registry.Waiting(l.at) < len(l.contents) {
		if len(answer) > 0 {
			l.Fatalf("request %d does not wait: %v", len(l.contents), <-answer)
		}
		runtime.Gosched()
	}
}

// addMessage adds a message of bob.
func (l *line) addMessage() {
	l.Helper()
	message := l.group.Message()
	l.add(message, func() (conversation.Accepted, error) { return l.send(l.bob, message) })
}

// addCommit adds a commit of alice. The line's group is in the next epoch then.
func (l *line) addCommit() {
	l.Helper()
	r, next := l.request(l.alice, l.group, mlstest.Change{})
	l.group = next
	l.add(r.Message, func() (conversation.Accepted, error) { return l.registry.Commit(l.Context(), l.at, r) })
}

// wantInOrder fails unless all requests of the line succeed, and the log has them with numbers in
// the order of the line, after its first entry.
func (l *line) wantInOrder() {
	l.Helper()
	for n, answer := range l.answers {
		if err := <-answer; err != nil || l.accepted[n].Seq != int64(n)+2 {
			l.Errorf("request %d is answered number %d, %v", n, l.accepted[n].Seq, err)
		}
	}
	log := l.log()
	if len(log) != 1+len(l.contents) {
		l.Fatalf("%d entries, want %d", len(log), 1+len(l.contents))
	}
	for n, content := range l.contents {
		if e := log[n+1]; e.Seq != int64(n)+2 || !slices.Equal(e.Content, content) {
			l.Errorf("number %d of the log is not request %d", e.Seq, n)
		}
	}
}

// Row 17: the database is slow, and requests fill the mailbox. One more is refused at once. All
// others are done later, in the order in which they came, messages and commits alike.
func TestRow17AFullMailboxRefusesTheNewest(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	l, free := &line{scene: s}, s.stall(t)
	for n := range 256 {
		if n == 100 || n == 180 {
			l.addCommit()
		} else {
			l.addMessage()
		}
	}
	newest := s.group.Message()
	for range 20 {
		_, err := s.send(s.bob, newest)
		s.wantRefused("one too many", err, fault.RateLimited, "mls_busy")
		if fault.Of(err).RetryAfter <= 0 {
			t.Error("the refusal does not say when to try again")
		}
	}
	free()
	l.wantInOrder()
	if a, err := s.send(s.bob, newest); err != nil || a.Seq != 258 || a.Replayed {
		t.Errorf("the refused message, sent again: %+v, %v", a, err)
	}
}

// Row 17: as many conversations as may be live have work. Another one is refused, while the live
// ones go on to take requests. Nothing that was accepted is lost, and then there is room again.
func TestRow17OneLiveConversationTooManyIsRefused(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	free := make(chan struct{})
	g.set(func() error { <-free; return nil })
	message := s.group.Message()
	ask := func(ctx context.Context) error {
		_, err := s.registry.Send(ctx, conversation.Place{Host: s.user, ID: uuid.New()}, conversation.Message{Caller: bobID, Content: message})
		return err
	}
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range conversation.MaxLive - 1 {
		wg.Go(func() {
			if err := ask(ctx); fault.KindOf(err) != fault.Busy {
				t.Errorf("a caller that left: %v", err)
			}
		})
	}
	for s.registry.CountLive() < conversation.MaxLive-1 {
		runtime.Gosched()
	}
	l := &line{scene: s}
	l.addMessage()
	err := ask(t.Context())
	s.wantRefused("one too many", err, fault.RateLimited, "mls_busy")
	if fault.Of(err).RetryAfter <= 0 {
		t.Error("the refusal does not say when to try again")
	}
	if n := s.metrics()["lightweb_mls_overload_total"]; n != 1 {
		t.Errorf("%g refusals are counted, want 1", n)
	}
	l.addMessage()
	if n := s.registry.DropIdle(); n != conversation.MaxLive { // none of them is idle
		t.Errorf("%d conversations are live, want %d", n, conversation.MaxLive)
	}
	leave()
	wg.Wait()
	close(free)
	l.wantInOrder()
	for s.registry.DropIdle() == conversation.MaxLive { // until one is idle
		runtime.Gosched()
	}
	s.wantRefused("another one, of which there is no row", ask(t.Context()), fault.NotFound, "no_conversation")
}

// Row 17: a conversation that is dropped whenever it is idle loses no message, and takes those of
// each sender in their order.
func TestIdleConversationsEndBetweenMessages(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := int64(0)
			for range 50 {
				a, err := s.send(s.bob, s.group.Message())
				if err != nil || a.Seq <= last {
					t.Errorf("after number %d: %+v, %v", last, a, err)
				}
				last = a.Seq
				s.registry.DropIdle()
			}
		})
	}
	wg.Wait()
	log := s.log()
	for n, e := range log {
		if e.Seq != int64(n)+1 {
			t.Errorf("entry %d has number %d", n, e.Seq)
		}
	}
	if len(log) != 1+200 {
		t.Errorf("%d entries, want 201", len(log))
	}
	for s.registry.DropIdle() > 0 { // the last worker ends
		runtime.Gosched()
	}
	if _, known := s.registry.Epoch(s.at); known {
		t.Error("an idle conversation is still live")
	}
}

// Row 17: the engine stops while requests wait. New ones are refused, and all that were accepted
// are done, although the time for the stop is over.
func TestRow17WhatWasAcceptedIsDoneWhenTheEngineStops(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	l, free := &line{scene: s}, s.stall(t)
	for range 3 {
		l.addMessage()
		l.addCommit()
	}
	s.stopLate(t)
	_, err := s.send(s.bob, s.group.Message())
	s.wantRefused("a new request", err, fault.Unavailable, "mls_closing")
	closed := make(chan error)
	go func() { closed <- s.registry.Close(t.Context()) }()
	free()
	l.wantInOrder()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// stopLate begins to close the registry while requests wait. The time for the stop is over already.
func (s *scene) stopLate(t *testing.T) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.registry.Close(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Close returns %v while requests wait", err)
	}
}

// Row 17: the engine stops while requests wait and the database fails. All are answered, and
// nothing is done by halves.
func TestRow17WhatCannotBeDoneIsAnsweredWhenTheEngineStops(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	free := make(chan struct{})
	g.set(func() error {
		<-free
		return fault.New(fault.Unavailable, "the database does not answer")
	})
	l := &line{scene: s}
	for range 3 {
		l.addMessage()
		l.addCommit()
	}
	s.stopLate(t)
	closed := make(chan error)
	go func() { closed <- s.registry.Close(t.Context()) }()
	close(free)
	for n, answer := range l.answers {
		if err := <-answer; fault.KindOf(err) != fault.Unavailable {
			t.Errorf("request %d is answered %v", n, err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if v := s.view(); v.Epoch != 1 || v.LastSeq != 1 || len(s.log()) != 1 {
		t.Errorf("the conversation is %+v with %d entries, want it unchanged", v, len(s.log()))
	}
}
