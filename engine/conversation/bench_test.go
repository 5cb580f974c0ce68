package conversation_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// BenchmarkCommit measures commits to one conversation, one after another.
func BenchmarkCommit(b *testing.B) {
	s := newScene(b)
	for b.Loop() {
		s.commit(s.alice, mlstest.Change{})
	}
}

// BenchmarkFirstCommit measures commits as BenchmarkCommit does. Each commit goes to a new process
// that has not loaded the conversation.
func BenchmarkFirstCommit(b *testing.B) {
	s := newScene(b)
	d := s.registry.Deps
	d.Metrics = nil
	for b.Loop() {
		s.registry = conversation.NewRegistry(d)
		s.commit(s.alice, mlstest.Change{})
	}
}

// BenchmarkMessage lets many clients at once send messages to one conversation.
func BenchmarkMessage(b *testing.B) {
	s := newScene(b).withBob()
	b.SetParallelism(32) // 32 clients for each processor
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.registry.Send(b.Context(), s.at, conversation.Message{Caller: bobID, Content: s.group.Message()}); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkKnown measures three things. The first is the memory and the goroutines of 100,000
// conversations that are only stored. The second is the same for 1,000 live conversations that
// have just received messages. The third is the time to read the epoch of a live conversation.
func BenchmarkKnown(b *testing.B) {
	const known, busy = 100_000, 1000
	s := newScene(b)
	d := s.registry.Deps
	d.Metrics = nil
	s.registry = conversation.NewRegistry(d)
	if _, err := s.send(s.alice, s.group.Message()); err != nil { // opens the database, and loads the first conversation
		b.Fatal(err)
	}
	empty, _ := measureHeap()
	database := dbtest.SQL(b, s.store, s.user)
	_, err := database.Exec(`
		WITH c AS (INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at)
			SELECT id, $1 || '/conversations/' || id, 'encrypted', $1, 'urn:uuid:' || id, now() FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, $2)) AS ids RETURNING id),
		m AS (INSERT INTO mls_conversations (id, status, group_info, updated_at) SELECT id, 'active', '', now() FROM c)
		INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq) SELECT id, $1, 'admin', 0 FROM c`, aliceID, known)
	if err != nil {
		b.Fatal(err)
	}
	var ids []uuid.UUID
	rows, err := database.Query(`SELECT id FROM mls_conversations WHERE group_info = '' LIMIT $1`, busy)
	if err != nil {
		b.Fatal(err)
	}
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil || len(ids) != busy {
		b.Fatal(len(ids), err)
	}
	quiet, before := measureHeap()
	for _, id := range ids {
		g := mlstest.NewGroupWith("urn:uuid:"+id.String(), s.alice)
		at := conversation.Place{Host: s.user, ID: id}
		if _, err := s.registry.Send(b.Context(), at, conversation.Message{Caller: aliceID, Content: g.Message()}); err != nil {
			b.Fatal(err)
		}
	}
	live, after := measureHeap()
	n := 0
	for b.Loop() {
		if _, isKnown := s.registry.Epoch(conversation.Place{Host: s.user, ID: ids[n%busy]}); !isKnown {
			b.Fatal("not known")
		}
		n++
	}
	b.ReportMetric((quiet-empty)/known, "B/known")
	b.ReportMetric((live-quiet)/busy, "B/live")
	b.ReportMetric(float64(after-before), "goroutines")
}

// measureHeap collects the garbage. It then returns the number of bytes in use and of goroutines.
func measureHeap() (bytes float64, goroutines int) {
	runtime.GC()
	runtime.GC() // the second collection also frees the content of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), runtime.NumGoroutine()
}

// BenchmarkHundredAtOnce lets 100 clients at once work on one conversation. Each sends a message,
// or repeats a commit until it is accepted.
func BenchmarkHundredAtOnce(b *testing.B) {
	for name, ask := range map[string]func(*scene, *mlstest.Group){
		"messages": func(s *scene, g *mlstest.Group) {
			if _, err := s.send(s.alice, g.Message()); err != nil {
				s.Error(err)
			}
		},
		"commits": (*scene).commitInTheEnd,
	} {
		b.Run(name, func(b *testing.B) {
			s := newScene(b)
			for b.Loop() {
				s.group.Epoch = uint64(s.view().Epoch)
				var wg sync.WaitGroup
				for range 100 {
					g := *s.group
					wg.Go(func() { ask(s, &g) })
				}
				wg.Wait()
			}
		})
	}
}
