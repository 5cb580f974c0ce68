package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// client returns what a request is counted under: the address it comes from, and of IPv6 the network of 64 bits, all of
// whose addresses are one client's. Of what proxies say of whom they ask for, only that of trusted ones is believed: the
// last address in X-Forwarded-For that is none of theirs.
func (s *Server) client(r *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // zero, and so counted together, for what has no address
	addr := from.Addr().Unmap()
	named := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	if among(s.TrustedProxies, addr) {
		for _, name := range slices.Backward(named) {
			before, err := netip.ParseAddr(strings.TrimSpace(name))
			if err != nil {
				break
			}
			if addr = before.Unmap(); !among(s.TrustedProxies, addr) {
				break
			}
		}
	} else if (addr.IsLoopback() || addr.IsPrivate()) && named[0] != "" {
		s.untrusted.Do(func() {
			s.Log.Warn("proxy not trusted", "address", addr, "hint", "if that is your proxy, name it in trusted_proxies: whoever it asks for is taken for one client")
		})
	}
	return network(addr)
}

// network returns the addresses that are taken for those of one client.
func network(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // zero for no address
	return p
}

func among(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
