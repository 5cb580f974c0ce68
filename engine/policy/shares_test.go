package policy

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// paidByAddress returns the payer of a request from an address, in the form that the server uses.
func paidByAddress(addr netip.Addr) string {
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return PayerOf(PaidByAddress(context.Background(), p))
}

// inNetwork returns the payer that stands for the nth address of a /48 network.
func inNetwork(network, n int) string {
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8, byte(network >> 8), byte(network)}
	binary.BigEndian.PutUint16(b[6:], uint16(n))
	b[15] = 1
	return paidByAddress(netip.AddrFrom16(b))
}

// PAY-02, CLI-05: the addresses of one network share one budget, even if each of them takes as
// much as it can. A client of another network still gets something. So does the neighbour of a
// single greedy address.
func TestANetworkIsOnePayer(t *testing.T) {
	for _, b := range Budgets() {
		if b.Payer != Address || b.Pool == 0 && b.Per == "" {
			continue
		}
		t.Run(b.Bounds, func(t *testing.T) {
			take, taken := taker(b), 0
			exhaust := func(addresses int, payer func(n int) string) {
				for refused, n := 0, 0; refused < addresses; n++ {
					if refused++; take(payer(n % addresses)) {
						if taken, refused = taken+1, 0; taken > 1<<20 {
							t.Fatal("they have no bound")
						}
					}
				}
			}
			exhaust(10_000, func(n int) string { return inNetwork(0, n) })
			exhaust(10, func(n int) string { return paidByAddress(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})) })
			if !take(paidByAddress(netip.MustParseAddr("198.51.100.1"))) {
				t.Errorf("two networks took %d, and nothing is left for the client of another one", taken)
			}
		})
	}
}

func TestManyNetworksLeaveRoom(t *testing.T) {
	for _, b := range Budgets() {
		if b.Payer != Address || b.Pool < 64 {
			continue
		}
		t.Run(b.Bounds, func(t *testing.T) {
			pool := b.NewPool()
			for network := range 10 {
				for unit := max(1, b.Pool/64); unit >= max(1, b.Pool/10_000); unit /= 2 { // first as much as they can take at once, then the rest in smaller units
					for n := range 300 {
						for pool.Take(inNetwork(network, n), unit) {
						}
					}
				}
			}
			if left := b.Pool - pool.Used(); left < b.Pool/16 {
				t.Errorf("ten networks left %d of %d", left, b.Pool)
			}
			for n := range 10 {
				if !pool.Take(inNetwork(100+n, 0), max(1, b.Pool/5000)) {
					t.Errorf("honest network %d is refused with %d of %d left", n, b.Pool-pool.Used(), b.Pool)
				}
			}
		})
	}
}

// Any sequence of takes and gives occurs. Payers never hold more than the pool. When everything is
// given back, no payer is remembered.
func TestNoSequenceOfTakesExceedsThePool(t *testing.T) {
	t.Parallel()
	payers := []string{"", "domain a.example", "domain b.example", inNetwork(0, 0), inNetwork(0, 1), inNetwork(0, 0x100), inNetwork(1, 0),
		"address 192.0.2.1/32", "address 192.0.2.2/32", "address 198.51.100.1/32", "address invalid Prefix"}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.Int64Range(1, 300).Draw(t, "all")
		p, held, sum := NewPool(all), map[string]int64{}, int64(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			payer := rapid.SampledFrom(payers).Draw(t, "payer")
			n := rapid.Int64Range(0, all+1).Draw(t, "n")
			if rapid.Bool().Draw(t, "gives") {
				p.Give(payer, n)
				n = -min(n, held[payer])
			} else if !p.Take(payer, n) {
				n = 0
			}
			held[payer] += n
			if sum += n; sum > all || p.Used() != sum {
				t.Fatalf("%d of %d are used, want %d", p.Used(), all, sum)
			}
			if most := p.FairShare(); most > all-sum || most < min(all-sum, 1) {
				t.Fatalf("a newcomer may have %d of the %d that are left", most, all-sum)
			} else if most > 0 && !p.mayTake("domain new.example", float64(most), p.size) {
				t.Fatalf("a newcomer is promised %d of the %d that are left, and refused", most, all-sum)
			}
		}
		for payer, n := range held {
			p.Give(payer, n)
		}
		if p.Used() != 0 || len(p.payers) != 0 || len(p.networks) != 0 || p.root.holders != 0 {
			t.Fatalf("at the end %d are used, and %d payers, %d networks and %d holders remembered", p.Used(), len(p.payers), len(p.networks), p.root.holders)
		}
	})
}

func TestNeighboursAreServedBesideOneGreedyAddress(t *testing.T) {
	t.Parallel()
	for greedy, neighbours := range map[string][]string{
		"192.0.2.1":         {"192.0.2.2", "192.0.2.3"},
		"2001:db8:1:1::1":   {"2001:db8:1:2::1", "2001:db8:1:101::1"},
		"2001:db8:1:1ff::1": {"2001:db8:1:1fe::1", "2001:db8:1::1"},
	} {
		p := NewPool(1000)
		for p.Take(paidByAddress(netip.MustParseAddr(greedy)), 1) {
		}
		if n := p.Used(); n < 660 || n > 720 {
			t.Errorf("%s alone took %d of 1,000, want about two thirds", greedy, n)
		}
		for _, a := range neighbours {
			if !p.Take(paidByAddress(netip.MustParseAddr(a)), 1) {
				t.Errorf("%s is refused beside %s", a, greedy)
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	for _, tt := range []struct{ name, payer string }{{"domain", "peer.example"}, {"IPv4", "address 192.0.2.1/32"}, {"IPv6", inNetwork(0, 0)}} {
		for _, others := range []int{0, 10_000} {
			b.Run(fmt.Sprintf("%s beside %d", tt.name, others), func(b *testing.B) {
				p := NewPool(1 << 30)
				for n := range others {
					p.Take(inNetwork(1+n, n), 1)
				}
				for b.Loop() {
					p.Take(tt.payer, 1)
					p.Give(tt.payer, 1)
				}
			})
		}
	}
}
