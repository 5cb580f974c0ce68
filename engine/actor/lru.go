package actor

import (
	"container/list"
	"sync"
)

// lru is a cache that drops the least recently used values. It limits both the number of its
// entries and the sum of their weights, so that neither many documents of strangers nor large
// ones can fill the memory. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	entries, room int
	weigh         func(V) int // newLRU replaces nil by a weight of 0

	mu     sync.Mutex
	weight int
	order  *list.List // of item[K, V], the most recently used first
	at     map[K]*list.Element
}

type item[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](entries, room int, weigh func(V) int) *lru[K, V] {
	if weigh == nil {
		weigh = func(V) int { return 0 }
	}
	return &lru[K, V]{entries: entries, room: room, weigh: weigh, order: list.New(), at: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(key K) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.at[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(item[K, V]).value, true
}

// put stores v under key, in place of an earlier value.
func (l *lru[K, V]) put(key K, v V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
	l.add(key, v)
}

// getOrPut returns the value under key. If there is none, it stores and returns v.
func (l *lru[K, V]) getOrPut(key K, v V) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.at[key]; ok {
		return e.Value.(item[K, V]).value
	}
	l.add(key, v)
	return v
}

func (l *lru[K, V]) drop(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
}

func (l *lru[K, V]) add(key K, v V) {
	l.at[key] = l.order.PushFront(item[K, V]{key, v})
	l.weight += l.weigh(v)
	for l.order.Len() > l.entries || l.weight > l.room {
		l.remove(l.order.Back().Value.(item[K, V]).key)
	}
}

func (l *lru[K, V]) remove(key K) {
	if e, ok := l.at[key]; ok {
		l.weight -= l.weigh(l.order.Remove(e).(item[K, V]).value)
		delete(l.at, key)
	}
}
