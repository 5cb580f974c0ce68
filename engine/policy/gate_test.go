package policy

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestGateFollowsItsLists(t *testing.T) {
	var blocked, allowed []string
	g := NewGate(func() ([]string, []string) { return blocked, allowed }, Open)
	check := func(host string, want bool) {
		t.Helper()
		if err := g.Check(host); (err == nil) != want {
			t.Errorf("Check(%q) = %v, want allowed: %v", host, err, want)
		}
	}
	check("evil.example", true)
	blocked = []string{"evil.example"}
	check("evil.example", false)
	check("a.evil.example:443", false)
	blocked = []string{"wicked.example"} // as many entries as before
	check("evil.example", true)
	check("wicked.example", false)
	blocked = nil
	check("wicked.example", true)
}

func TestGateCompilesOnlyWhatChanged(t *testing.T) {
	blocked := []string{"evil.example"}
	g := NewGate(func() ([]string, []string) { return blocked, nil }, Open)
	first := g.domains()
	if g.domains() != first {
		t.Error("the same list was compiled twice")
	}
	blocked = []string{"evil.example"}
	if g.domains() != first {
		t.Error("an equal list was compiled again")
	}
	blocked = []string{"evil.example", "wicked.example"}
	if g.domains() == first {
		t.Error("a longer list was not compiled")
	}
}

func TestGateRefusesInOneVoice(t *testing.T) {
	blocked := NewGate(func() ([]string, []string) { return []string{"a.example"}, nil }, Open).Check("a.example")
	unlisted := NewGate(func() ([]string, []string) { return nil, nil }, Allowlist).Check("a.example")
	for _, err := range []error{blocked, unlisted} {
		if fault.KindOf(err) != fault.Forbidden {
			t.Errorf("Check = %v, want Forbidden", err)
		}
		if strings.Contains(fault.Public(err), "block") {
			t.Errorf("the public words %q tell that there is a block", fault.Public(err))
		}
	}
	if fault.Public(blocked) != fault.Public(unlisted) {
		t.Errorf("MOD-02b: %q differs from %q", fault.Public(blocked), fault.Public(unlisted))
	}
}

func TestGateIsSafeWhileListsChange(t *testing.T) {
	var list atomic.Pointer[[]string]
	list.Store(&[]string{"evil.example"})
	g := NewGate(func() ([]string, []string) { return *list.Load(), nil }, Open)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				list.Store(&[]string{"evil.example", fmt.Sprintf("h%d.example", i)})
				if g.Check("evil.example") == nil {
					t.Error("a blocked host got in while the list changed")
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkGateCheck(b *testing.B) {
	blocked := make([]string, 100_000)
	for i := range blocked {
		blocked[i] = fmt.Sprintf("h%d.example", i)
	}
	g := NewGate(func() ([]string, []string) { return blocked, nil }, Open)
	for b.Loop() {
		if g.Check("social.good.example") != nil {
			b.Fatal("refused")
		}
	}
}
