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

// BenchmarkCommit commits to one conversation, one commit after another.
func BenchmarkCommit(b *testing.B) {
	s := newScene(b)
	for b.Loop() {
		s.commit(s.alice, mlstest.Change{})
	}
}

// BenchmarkFirstCommit is BenchmarkCommit with a new process for each commit. The process has not
// loaded the conversation.
func BenchmarkFirstCommit(b *testing.B) {
	s := newScene(b)
	d := s.registry.Deps
	d.Metrics = nil
	for b.Loop() {
		s.registry = conversation.NewRegistry(d)
		s.commit(s.alice, mlstest.Change{})
	}
}

// BenchmarkMessage has 64 clients send messages to one conversation at once.
func BenchmarkMessage(b *testing.B) {
	s := newScene(b).withBob()
	b.SetParallelism(32) // for each processor
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.registry.Send(b.Context(), s.at, conversation.Message{Caller: bobID, Content: s.group.Message()}); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkKnown measures three things: the memory and goroutines for 100,000 conversations that
// are only stored, those for 1,000 live ones that have just received messages, and the time to
// read the epoch of a live conversation.
func BenchmarkKnown(b *testing.B) {
	const known, busy = 100_000, 1000
	s := newScene(b)
	d := s.registry.Deps
	d.Metrics = nil
	s.registry = conversation.NewRegistry(d)
	if _, err := s.send(s.alice, s.group.Message()); err != nil { // opens the database and the first conversation
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

// measureHeap collects the garbage, and returns how many bytes are in use and how many goroutines
// run.
func measureHeap() (bytes float64, goroutines int) {
	runtime.GC()
	runtime.GC() // frees the content of pools, too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), runtime.NumGoroutine()
}

// BenchmarkHundredAtOnce has 100 clients at once send a message to one conversation, or repeat a
// commit to it until the commit is accepted.
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
