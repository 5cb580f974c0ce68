package server

import (
	"net/netip"
	"testing"
)

func TestBodiesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	b := newBodies(1 << 20)
	b.most, b.mostOfOne = 100, 40
	client := func(n byte) netip.Prefix { return network(netip.AddrFrom4([4]byte{192, 0, 2, n})) }
	for _, tt := range []struct {
		name   string
		client byte
		n      int64
		want   bool
	}{
		{"one client", 1, 40, true}, {"more of it", 1, 1, false}, {"another", 2, 40, true}, {"beyond what all may", 3, 21, false}, {"the rest", 3, 20, true}, {"and more", 4, 1, false},
	} {
		if got := b.take(client(tt.client), tt.n); got != tt.want {
			t.Errorf("PAR-01: %s: %t, want %t", tt.name, got, tt.want)
		}
	}
	b.release(client(1), 40)
	b.release(client(2), 40)
	b.release(client(3), 20)
	if b.all != 0 || len(b.clients) != 0 {
		t.Errorf("%d bytes of %v are held at the end", b.all, b.clients)
	}
	if large := newBodies(64 << 20); !large.take(client(1), 64<<20) {
		t.Error("one body that may be sent is not taken")
	}
}
