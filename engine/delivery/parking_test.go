package delivery

import "testing"

func TestDeliveriesAreAskedBackOnce(t *testing.T) {
	t.Parallel()
	p, bob := newParking(), userNamed(t, "bob")
	if !p.addParked("a.example", alice) || p.addParked("a.example", alice) {
		t.Error("that a user has parked deliveries is news once")
	}
	p.addWaiting("a.example", bob)
	if owners := p.askAllBack("a.example"); len(owners) != 2 || !owners[alice] || !owners[bob] {
		t.Errorf("deliveries of %v are asked back, want alice's and bob's", owners)
	}
	if owners := p.askAllBack("a.example"); len(owners) != 1 || !owners[alice] {
		t.Errorf("deliveries of %v are asked back again, want alice's, which are parked still", owners)
	}
	p.removeParked("a.example", alice)
	if len(p.parked) != 0 {
		t.Errorf("%v are parked, want none", p.parked)
	}
	mayCome := false
	take := func() int { return len(p.takeAsked(alice, func(string) bool { return mayCome })) }
	if n := take(); n != 0 || !p.isAsked(alice) {
		t.Errorf("%d hosts although none may be sent anything", n)
	}
	mayCome = true
	if n, again := take(), take(); n != 1 || again != 0 || p.isAsked(alice) {
		t.Errorf("%d hosts, then %d, want one once", n, again)
	}
}
