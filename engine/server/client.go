package server

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// clients tells from which client a request comes.
type clients struct {
	trusted []netip.Prefix // proxies that say for which client they ask
	log     *slog.Logger

	untrusted, untrustedFar sync.Once // the log says once that a proxy is not trusted
}

// clientOf returns what a request is counted under: the address it comes from, and of IPv6 the
// network of 64 bits, all of whose addresses are one client's. Proxies say which client they ask
// for, and only trusted ones are believed: the client is the last address in X-Forwarded-For that
// is none of theirs.
func (s *clients) clientOf(r *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // zero, and so counted together, for what has no address
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

// warnUntrusted tells the operator once that requests come through what may be a proxy of theirs:
// once for an address nearby, and once for any other, since any stranger can send the header.
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

// networkOf returns the addresses that are taken for those of one client.
func networkOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // zero for no address
	return p
}

func isAmong(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
