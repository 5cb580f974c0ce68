package actor

import (
	"strings"
	"testing"
)

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	l := newLRU[int](4, 100, func(s string) int { return len(s) })
	for i := range 1000 {
		l.put(i, "x")
	}
	if len(l.at) != 4 || l.order.Len() != 4 || l.weight != 4 {
		t.Errorf("%d entries in the map, %d in order, weight %d; want 4", len(l.at), l.order.Len(), l.weight)
	}
	l.get(996)
	l.put(1000, "y")
	if _, ok := l.get(996); !ok {
		t.Error("what was used last is forgotten")
	}
	if _, ok := l.get(997); ok {
		t.Error("what was used least is still there")
	}
	l.put(1001, strings.Repeat("z", 99))
	if len(l.at) != 2 || l.weight != 100 {
		t.Errorf("%d entries of weight %d, want the large one and one beside it", len(l.at), l.weight)
	}
	l.put(1002, strings.Repeat("z", 101))
	if _, ok := l.get(1002); ok || l.weight > 100 {
		t.Error("what weighs more than all may is remembered")
	}
	l.put(1, "a")
	l.put(1, "bc")
	if v := l.getOrPut(1, "d"); v != "bc" || l.weight != 2 {
		t.Errorf("entry %q, weight %d; want the one that was put last", v, l.weight)
	}
	if v := l.getOrPut(2, "d"); v != "d" {
		t.Errorf("new entry %q", v)
	}
	l.drop(1)
	l.drop(1)
	if _, ok := l.get(1); ok || l.weight != 1 {
		t.Error("what was dropped is there")
	}
}
