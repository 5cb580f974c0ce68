package engine_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// brokenMemory is how many bytes of memory the engine may use for thousands of broken messages
// while they arrive.
const brokenMemory = 64 << 20

// Row 13 of docs/conversations.md, Cases and their tests. Thousands of broken MLS messages are
// sent to every route that accepts messages. They are cut off, have forged lengths, have bytes
// after their end, or are huge. The engine refuses all of them with 4xx, its memory does not grow,
// and the conversation continues in its epoch.
func TestRow13BrokenMessagesAreRefusedOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	host, near := newTalker(s.home, t, "holly"), newTalker(s.home, t, "nora")
	befriend(t, near.user, host.user)
	group := mlstest.NewGroup(host.device)
	host.path = host.want(t, http.StatusCreated, host.user.Ask(t, http.MethodPost, "/api/conversations", map[string]any{"groupInfo": group.Info(host.device)})).Header.Get("Location")
	host.claim(t, near)
	commit, next := group.Commit(host.device, mlstest.Change{Add: []*mlstest.Device{near.device}})
	info, welcome := next.Info(host.device), next.Welcome(near.device)
	body := func(commit, info, welcome []byte) map[string]any {
		return map[string]any{"commit": commit, "groupInfo": info, "welcomes": [][]byte{welcome}}
	}
	kinds := []struct {
		whole  []byte
		signed int // how many of the first bytes the server checks for changes
		path   string
		body   func(broken []byte) map[string]any
	}{
		{commit, len(commit) - tags, host.path + "/commits", func(b []byte) map[string]any { return body(b, info, welcome) }},
		{info, len(info), host.path + "/commits", func(b []byte) map[string]any { return body(commit, b, welcome) }},
		{welcome, 0, host.path + "/commits", func(b []byte) map[string]any { return body(commit, info, b) }},
		{group.Message(), 0, host.path + "/messages", func(b []byte) map[string]any { return map[string]any{"message": b} }},
		{group.Info(host.device), len(group.Info(host.device)), "/api/conversations", func(b []byte) map[string]any { return map[string]any{"groupInfo": b} }},
		{host.device.Package, len(host.device.Package), "/api/keypackages", func(b []byte) map[string]any {
			return map[string]any{"keyPackages": []any{map[string]any{"deviceId": uuid.NewString(), "content": b}}}
		}},
	}
	answers := map[int]int{}
	var mu sync.Mutex
	send := func(kind int, broken []byte) {
		k := kinds[kind]
		a := host.user.AskOnce(t, http.MethodPost, k.path, uuid.NewString(), k.body(broken))
		mu.Lock()
		defer mu.Unlock()
		answers[a.Status]++
		if a.Status < 400 || a.Status >= 500 && !isHuge(broken) || a.Status == http.StatusTooManyRequests {
			t.Errorf("%x at %s is answered %d %s", broken[:min(len(broken), 2000)], k.path, a.Status, a.Body)
		}
	}
	s.floodWithin(brokenMemory, "2,000 broken messages", func() {
		s.at32(2000, func(n int) {
			random := rand.New(rand.NewPCG(13, uint64(n)))
			kind := n % len(kinds)
			send(kind, breakMessage(random, kinds[kind].whole, kinds[kind].signed))
		})
	})
	s.floodWithin(floodMemory, "60 huge messages", func() {
		s.at32(60, func(n int) {
			kind := n % len(kinds)
			send(kind, slices.Concat(kinds[kind].whole, make([]byte, 4<<20)))
		})
	})
	t.Logf("answered %v", answers)
	if c := host.state(t, 0, 0); len(c.Members) != 1 {
		t.Errorf("the conversation has the members %v", c.Members)
	}
	host.want(t, http.StatusCreated, host.user.AskOnce(t, http.MethodPost, host.path+"/commits", uuid.NewString(), body(commit, info, welcome)))
	near.join(t)
}

// tags is the number of bytes at the end of a commit that only members can check: the confirmation
// tag and the membership tag, each with its length (RFC 9420 §6.2).
const tags = 2 * (1 + 32)

// breakMessage returns a message that is cut off, has bytes after its end, or has a forged length.
// The forged length is among the first bytes; the parameter signed says how many.
func breakMessage(random *rand.Rand, whole []byte, signed int) []byte {
	switch random.IntN(4) {
	case 0:
		return slices.Concat(whole, bytes.Repeat([]byte{byte(random.Uint32())}, 1+random.IntN(100)))
	case 1, 2:
		if signed > 4 {
			broken := slices.Clone(whole)
			forged := []uint32{0xbfffffff, 0xffffffff, 0, 0x7fff7fff}
			binary.BigEndian.PutUint32(broken[random.IntN(signed-4):], forged[random.IntN(len(forged))])
			if !bytes.Equal(broken, whole) {
				return broken
			}
		}
	}
	return whole[:random.IntN(len(whole))]
}

// isHuge reports whether a message is so large that the engine may answer 503.
func isHuge(broken []byte) bool { return len(broken) > 1<<20 }
