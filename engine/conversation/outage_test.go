package conversation_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// Row 19: the host's PostgreSQL fails in each of these ways. Requests are answered that the host is
// unavailable or busy (both are 503), the conversation stays as it was, and the same requests
// succeed once PostgreSQL works again.
func TestRow19ADatabaseThatIsDownChangesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks func(*testing.T, *scene, *gate) (mend func())
		kind   fault.Kind
	}{
		"no connection is accepted":                {refuseConnections, fault.Unavailable},
		"the connection ends before each commit":   {endConnections, fault.Unavailable},
		"each transaction cannot be serialized":    {failSerialization, fault.Busy},
		"all connections to the database are held": {holdConnections, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := gated(t)
			r, _ := s.request(s.alice, s.group, mlstest.Change{})
			message, before := s.group.Message(), s.written(t)
			mend := c.breaks(t, s, g)
			for range 2 {
				if _, err := s.registry.Commit(t.Context(), s.at, r); fault.KindOf(err) != c.kind {
					t.Errorf("a commit: %v", err)
				}
				if _, err := s.send(s.bob, message); fault.KindOf(err) != c.kind {
					t.Errorf("a message: %v", err)
				}
			}
			mend()
			dbtest.AwaitUsable(t, s.store, s.user)
			if after := s.written(t); after != before {
				t.Errorf("the database had %s, and has %s", before, after)
			}
			a, err := s.registry.Commit(t.Context(), s.at, r)
			if err != nil || a.Replayed || a.Epoch != 2 || a.Seq != 2 {
				t.Errorf("the commit, once it is mended: %+v, %v", a, err)
			}
			if a, err := s.send(s.bob, message); err != nil || a.Replayed || a.Seq != 3 {
				t.Errorf("the message, once it is mended: %+v, %v", a, err)
			}
			if v := s.view(); v.Epoch != 2 || v.LastSeq != 3 || len(s.log()) != 3 {
				t.Errorf("the conversation is %+v with %d entries", v, len(s.log()))
			}
		})
	}
}

// written describes what requests have written to the host's database: the conversation and the
// numbers of the rows that a commit or a message adds. It is read over a connection of its own.
func (s *scene) written(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(dbtest.Rows(t, dbtest.DatabaseOf(t, s.store, s.user), `SELECT epoch, last_seq, generation, term, status, md5(group_info), (SELECT count(*) FROM mls_log), (SELECT count(*) FROM idempotency_keys),
		(SELECT count(*) FROM event_outbox), (SELECT count(*) FROM deliveries) FROM mls_conversations`))
}

// refuseConnections makes PostgreSQL refuse connections to the host's database, and ends those that
// are open.
func refuseConnections(t *testing.T, s *scene, _ *gate) (mend func()) {
	database, server := dbtest.DatabaseOf(t, s.store, s.user), dbtest.Database(t, "postgres")
	dbtest.RefuseConnections(t, server, database)
	return func() { dbtest.AllowConnections(t, server, database) }
}

// endConnections ends the engine's connections when each transaction has done its work, so that
// its COMMIT fails.
func endConnections(t *testing.T, s *scene, g *gate) (mend func()) {
	on := dbtest.SQL(t, s.store, s.user)
	g.setWithin(func() { dbtest.EndConnections(t, on) })
	return func() { g.within.Store(nil) }
}

// failSerialization makes PostgreSQL refuse each entry of a log as it refuses a transaction that
// it cannot serialize. The engine tries five times.
func failSerialization(t *testing.T, s *scene, g *gate) (mend func()) {
	heal := dbtest.FailInserts(t, dbtest.SQL(t, s.store, s.user), "mls_log", "40001")
	tries := 0
	g.setWithin(func() { tries++ })
	return func() {
		g.within.Store(nil)
		if tries != 4*5 {
			t.Errorf("four requests were tried %d times, want 20", tries)
		}
		heal()
	}
}

// holdConnections holds all connections that the pool has for the host's database. The engine
// waits ten seconds for one; here its transactions have less time.
func holdConnections(t *testing.T, s *scene, g *gate) (mend func()) {
	g.patience.Store(int64(50 * time.Millisecond))
	free := make(chan struct{})
	var held, holders sync.WaitGroup
	for range 4 {
		held.Add(1)
		holders.Go(func() {
			if err := s.store.Read(t.Context(), s.user, func(context.Context, *user.Tx) error { held.Done(); <-free; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	held.Wait()
	return func() {
		close(free)
		holders.Wait()
		g.patience.Store(0)
	}
}

// Row 19: another transaction and that of a commit wait for each other. PostgreSQL ends the one of
// the commit. The engine runs it again, and the commit is accepted once.
func TestRow19ACommitThatLosesADeadlockIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	other := dbtest.Session(t, dbtest.DatabaseOf(t, s.store, s.user))
	exec := func(query string, args ...any) {
		if _, err := other.Exec(t.Context(), query, args...); err != nil {
			t.Error(err)
		}
	}
	exec(`SET deadlock_timeout = '1min'`) // so that the engine's transaction is the one that ends
	exec(`BEGIN`)
	exec(`LOCK TABLE mls_log IN EXCLUSIVE MODE`)
	tries, done := 0, make(chan struct{})
	g.setWithin(func() {
		if tries++; tries > 1 {
			return
		}
		go func() {
			defer close(done)
			exec(`SELECT FROM mls_conversations WHERE id = $1 FOR UPDATE`, s.at.ID)
			exec(`COMMIT`)
		}()
	})
	r, _ := s.request(s.alice, s.group, mlstest.Change{})
	a, err := s.registry.Commit(t.Context(), s.at, r)
	if err != nil || a.Replayed || a.Epoch != 2 || a.Seq != 2 || tries != 2 {
		t.Errorf("after %d tries: %+v, %v", tries, a, err)
	}
	<-done
	if v := s.view(); v.Epoch != 2 || len(s.log()) != 2 {
		t.Errorf("the conversation is %+v with %d entries", v, len(s.log()))
	}
}
