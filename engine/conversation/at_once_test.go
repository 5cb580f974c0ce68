package conversation_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// One hundred clients of alice each add another actor at the same time. A client whose commit is
// refused applies the missing commits and tries again. Finally every actor is a member, and every
// epoch has one commit. (Rows 1 and 2 of docs/conversations.md, Cases and their tests.)
func TestRow2AHundredAdditionsAtOnceAllSucceedInTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("others commit at once, too")
	}
	t.Parallel()
	const clients = 100
	s := newScene(t)
	var after sync.Map // groups after the commits, by the hashes of the commits
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			added := mlstest.NewDevice(fmt.Sprintf("https://peer.example/users/member%d", n), time.Now())
			for g := s.group; g != nil; {
				message, next := g.Commit(s.alice, mlstest.Change{Add: []*mlstest.Device{added}})
				after.Store(hexHash(message), next)
				_, err := s.registry.Commit(t.Context(), s.at, conversation.Commit{Caller: aliceID, Key: hexHash(message), Message: message,
					GroupInfo: next.Info(s.alice), Welcomes: [][]byte{next.Welcome(added)}})
				g = rebase(t, g, err, &after)
			}
		})
	}
	wg.Wait()
	if v := s.view(); len(v.Members) != clients+1 || v.Epoch != clients {
		t.Errorf("%d members at epoch %d, want %d at %d", len(v.Members), v.Epoch, clients+1, clients)
	}
	s.wantWholeLog(clients)
	var welcomes, recipients int
	if err := dbtest.SQL(t, s.store, s.user).QueryRow("SELECT count(*), count(DISTINCT recipient_uri) FROM mls_welcomes").Scan(&welcomes, &recipients); err != nil {
		t.Fatal(err)
	}
	if welcomes != clients || recipients != clients {
		t.Errorf("%d Welcomes wait for %d actors, want one for each of %d", welcomes, recipients, clients)
	}
}

// rebase returns the group in which a client must repeat its refused commit: the group g after the
// commits that the client missed. If the commit was accepted, rebase returns nil.
func rebase(t *testing.T, g *mlstest.Group, err error, after *sync.Map) *mlstest.Group {
	var conflict *conversation.Conflict
	switch {
	case err == nil:
		return nil
	case fault.KindOf(err) == fault.Busy || fault.KindOf(err) == fault.RateLimited:
		return g
	case !errors.As(err, &conflict):
		t.Errorf("commit: %v", err)
		return nil
	case len(conflict.Missing) == 0:
		t.Errorf("the refusal of epoch %d tells of no commit: %+v", g.Epoch, conflict)
		return nil
	}
	for _, winner := range conflict.Missing {
		next, known := after.Load(hexHash(winner.Content))
		if !known || uint64(winner.Epoch) != g.Epoch {
			t.Errorf("epoch %d misses a commit of epoch %d, which a client made: %v", g.Epoch, winner.Epoch, known)
			return nil
		}
		g = next.(*mlstest.Group)
	}
	return g
}

// wantWholeLog fails unless the log has one commit for each epoch from 0 on, and no other entries.
func (s *scene) wantWholeLog(commits int) {
	s.Helper()
	log := s.log()
	if len(log) != commits || s.view().Epoch != int64(commits) {
		s.Fatalf("%d commits are in the log, and the epoch is %d, want %d", len(log), s.view().Epoch, commits)
	}
	for i, e := range log {
		if e.Epoch != int64(i) || e.Seq != int64(i)+1 {
			s.Fatalf("entry %d has epoch %d and number %d", i, e.Epoch, e.Seq)
		}
	}
}

// Bob sends fifty messages while the host moves its read mark. Messages and marks are stored in
// any order. At the end, exactly the entries after the mark are unread.
func TestFiftySendsAndReadsAtOnceLeaveTheExactUnreadCount(t *testing.T) {
	t.Parallel()
	const sends, last = 50, 31 // last is the host's final read mark; entry 1 is the commit that adds bob
	s := newScene(t).withBob()
	var wg sync.WaitGroup
	for range sends {
		sent := make(chan int64, 1)
		wg.Go(func() {
			a, err := s.send(s.bob, s.group.Message())
			if err != nil {
				t.Error(err)
			}
			sent <- a.Seq
		})
		wg.Go(func() {
			seq := min(<-sent, last)
			if err := s.registry.MarkRead(t.Context(), s.user, s.at.ID, seq, 0); err != nil {
				t.Error(err)
			}
			if h, err := s.registry.Held(t.Context(), s.user, s.at.ID); err != nil || h.ReadSeq < seq || h.Unread > sends+1-int(seq) {
				t.Errorf("read to %d: read to %d with %d unread, %v", seq, h.ReadSeq, h.Unread, err)
			}
		})
	}
	wg.Wait()
	h, err := s.registry.Held(t.Context(), s.user, s.at.ID)
	if err != nil || h.ReadSeq != last {
		t.Fatalf("read to %d, %v, want %d", h.ReadSeq, err, last)
	}
	after := 0
	for _, e := range s.log() {
		if e.Seq > h.ReadSeq {
			after++
		}
	}
	if after != sends+1-last || h.Unread != after {
		t.Errorf("%d are unread, and %d after the mark, want %d", h.Unread, after, sends+1-last)
	}
}
