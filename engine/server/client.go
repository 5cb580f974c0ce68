package server

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// clients finds out which client sent a request.
type clients struct {
	trusted []netip.Prefix // proxies whose X-Forwarded-For is believed
	log     *slog.Logger

	untrusted, untrustedFar sync.Once // each logs once that a proxy is not trusted
}

// clientOf returns the network that a request is counted under. The network is the client's IPv4
// address, or the first 64 bits of its IPv6 address, because one client has all addresses of such
// a network. X-Forwarded-For is believed only from a trusted proxy. The client is then the last
// address in that header that is not a trusted proxy.
func (s *clients) clientOf(r *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // connections without an address have the zero address, so they are counted together
	addr := from.Addr().Unmap()
	named := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	if isAmong(s.trusted, addr) {
		for _, name := range slices.Backward(named) {
			before, err := netip.ParseAddr(strings.TrimSpace(name))
			if err != nil {
				break
			}
			if addr = before.Unmap(); !isAmong(s.trusted, addr) {
				break
			}
		}
	} else if named[0] != "" {
		s.warnUntrusted(addr)
	}
	return networkOf(addr)
}

// warnUntrusted warns the operator that requests seem to come through a proxy that is not
// trusted. It warns once for private and loopback addresses, and once for all others, because
// any stranger can send the header.
func (s *clients) warnUntrusted(addr netip.Addr) {
	once := &s.untrustedFar
	if addr.IsLoopback() || addr.IsPrivate() {
		once = &s.untrusted
	}
	once.Do(func() {
		s.log.Warn("proxy not trusted", "address", addr, "setting", "trusted_proxies",
			"hint", "if that is your proxy, name it in trusted_proxies: until then all its clients share the budgets of one address")
	})
}

// networkOf returns the network whose addresses count as one client.
func networkOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // zero if addr is zero
	return p
}

func isAmong(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
