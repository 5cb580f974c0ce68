package policy

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestGateFollowsItsLists(t *testing.T) {
	var blocked, allowed []string
	g := NewGate(func() Lists { return Lists{Blocked: blocked, Allowed: allowed} }, Open, "")
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
	blocked = []string{"wicked.example"} // the number of entries is the same as before
	check("evil.example", true)
	check("wicked.example", false)
	blocked = nil
	check("wicked.example", true)
}

func TestGateCompilesOnlyWhatChanged(t *testing.T) {
	l := Lists{Blocked: []string{"evil.example"}}
	g := NewGate(func() Lists { return l }, Open, "")
	first := g.currentPolicy()
	if g.currentPolicy() != first {
		t.Error("the same list was compiled twice")
	}
	l.Blocked = []string{"evil.example"}
	again := g.currentPolicy()
	if again.domains != first.domains {
		t.Error("an equal list was compiled again")
	}
	if g.currentPolicy() != again {
		t.Error("an equal list is compared again and again")
	}
	l.Blocked = []string{"evil.example", "wicked.example"}
	if g.currentPolicy().domains == first.domains {
		t.Error("a longer list was not compiled")
	}
}

func TestGateRefusesSuspendedActors(t *testing.T) {
	l := Lists{Suspended: []vocab.ID{"https://good.example/users/bob", "https://good.example/#dan"}}
	g := NewGate(func() Lists { return l }, Open, "us.example")
	for _, tt := range []struct {
		id   vocab.ID
		want bool
	}{
		{"https://good.example/users/bob", false},
		{"https://GOOD.example:443/users/bob", false},
		{"https://good.example/users/bob#main-key", false},
		{"https://good.example/users/bobby", true},
		{"https://good.example/users/bob/notes/1", true},
		{"https://good.example/#dan", false},
		{"https://good.example/#eve", true},
		{"https://other.example/users/bob", true},
		{"no id", false},
	} {
		if err := g.CheckActor(tt.id); (err == nil) != tt.want {
			t.Errorf("CheckActor(%q) = %v, want allowed: %v", tt.id, err, tt.want)
		}
	}
	if err := g.Check("good.example"); err != nil {
		t.Errorf("Check = %v: a suspended actor is not its server", err)
	}
	l = Lists{Blocked: []string{"good.example"}}
	if g.CheckActor("https://good.example/users/bobby") == nil {
		t.Error("an actor of a blocked host was let in")
	}
}

func TestGateLetsOurOwnHostIn(t *testing.T) {
	g := NewGate(func() Lists { return Lists{Blocked: []string{"us.example"}} }, Allowlist, "us.example:8443")
	if err := g.CheckActor("https://us.example:8443/users/alice"); err != nil {
		t.Errorf("CheckActor = %v, want nil: lists are about others", err)
	}
	if g.Check("us.example") == nil {
		t.Error("another port, which is another server, was let in")
	}
}

func TestGateRefusesInOneVoice(t *testing.T) {
	blocked := NewGate(func() Lists { return Lists{Blocked: []string{"a.example"}} }, Open, "").Check("a.example")
	unlisted := NewGate(func() Lists { return Lists{} }, Allowlist, "").Check("a.example")
	suspended := NewGate(func() Lists { return Lists{Suspended: []vocab.ID{"https://a.example/bob"}} }, Open, "").CheckActor("https://a.example/bob")
	for _, err := range []error{blocked, unlisted, suspended} {
		if fault.KindOf(err) != fault.Forbidden {
			t.Errorf("Check = %v, want Forbidden", err)
		}
		if strings.Contains(fault.Public(err), "block") {
			t.Errorf("the public words %q tell that there is a block", fault.Public(err))
		}
		if fault.Public(err) != fault.Public(blocked) {
			t.Errorf("MOD-02b: %q differs from %q", fault.Public(err), fault.Public(blocked))
		}
	}
}

func TestGateIsSafeWhileListsChange(t *testing.T) {
	var list atomic.Pointer[[]string]
	list.Store(&[]string{"evil.example"})
	g := NewGate(func() Lists { return Lists{Blocked: *list.Load()} }, Open, "")
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
	g := NewGate(func() Lists { return Lists{Blocked: blocked} }, Open, "")
	for b.Loop() {
		if g.Check("social.good.example") != nil {
			b.Fatal("refused")
		}
	}
}
