package conversation_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// BenchmarkCommit has one commit after the other accepted in one conversation.
func BenchmarkCommit(b *testing.B) {
	s := newScene(b)
	for b.Loop() {
		s.commit(s.alice, mlstest.Change{})
	}
}

// BenchmarkFirstCommit is BenchmarkCommit by a process for each, which knows nothing of the
// conversation.
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
