package server

import (
	"fmt"
	"testing"

	"github.com/lightweb/lightweb/engine/policy"
)

func TestBodiesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	b := newBodies(policy.Bodies, 1<<20)
	const most = 64 << 20
	take := func(client string) (n int64) {
		for b.Take(client, 64<<10) {
			n += 64 << 10
		}
		return n
	}
	if n := take("slow"); n != most*3/4 {
		t.Errorf("PAR-01: one client holds %d bytes, want three quarters of all when nobody else sends", n)
	}
	if n := take("other"); n != most*3/32 {
		t.Errorf("PAR-01: another client holds %d bytes, want three quarters of what is left above the last eighth", n)
	}
	for n := range 10 {
		if !b.Take(fmt.Sprint("honest ", n), 128<<10) {
			t.Errorf("PAY-02: nothing is left for a body of honest client %d", n)
		}
	}
	if large := newBodies(policy.Bodies, 64<<20); !large.Take("1", 64<<20) {
		t.Error("one body that may be sent is not taken")
	}
}
