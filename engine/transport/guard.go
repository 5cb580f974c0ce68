package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// guard restricts requests to the public internet and to the addresses that the operator has
// allowed in addition. It checks each URL before its use. It checks each address only when the
// address is dialed, because the name may have had other addresses before.
type guard struct {
	allow     []netip.Prefix
	allowHTTP bool
	ports     []uint16 // allowed at public addresses
	public    *ssrf.Guardian
	timeout   time.Duration
	resolver  *net.Resolver // nil for the resolver of the system
}

func newGuard(cfg Config) *guard {
	g := &guard{allow: cfg.AllowAddresses, allowHTTP: cfg.AllowHTTP, ports: []uint16{443}, timeout: cfg.Timeout}
	if cfg.AllowHTTP {
		g.ports = append(g.ports, 80)
	}
	g.public = ssrf.New(ssrf.WithPorts(g.ports...))
	return g
}

// refuseAddress returns the guard's error. Its public text does not tell a peer how this server
// resolves the URL.
func refuseAddress(format string, args ...any) error {
	return fault.Wrap(fault.Forbidden, "the address may not be contacted", fmt.Errorf(format, args...)).
		WithHint("addresses beyond the public internet are allowed by federation.allow_addresses, plain http by federation.allow_http")
}

// checkURL returns id as the URL to request, or an error if that URL may not be contacted. The
// host of the URL has the form that is sent and signed. Some hosts can be judged only by their IP
// addresses, which dial checks later.
func (g *guard) checkURL(id vocab.ID) (*url.URL, error) {
	id, err := vocab.ParseID(string(id.Document()))
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(string(id))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "an id must be an absolute https URI", err)
	}
	u.Host = id.Host()
	if u.Scheme == "http" && !g.allowHTTP {
		return nil, refuseAddress("plain http to %s", u.Host)
	}
	name := u.Hostname()
	if addr, err := netip.ParseAddr(name); err == nil {
		if !g.isAllowed(addr.Unmap()) {
			return nil, refuseAddress("an address in place of a name: %s (%s)", addr, g.className(addr.Unmap()))
		}
		return u, nil
	}
	if hasNumericEnd(name) {
		return nil, refuseAddress("an address in disguise: %s", name)
	}
	if len(g.allow) > 0 {
		return u, nil
	}
	if !isPublicName(name) {
		return nil, refuseAddress("no name of the public internet: %s", name)
	}
	if u.Port() != "" { // vocab.ID.Host leaves out the scheme's default port
		return nil, refuseAddress("port %s of %s", u.Port(), name)
	}
	return u, nil
}

// dial connects to the host in address, at one of its IP addresses that checkAddress accepts.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	_, err = netip.ParseAddr(name)
	public := err != nil && isPublicName(name)
	d := net.Dialer{
		Timeout:  g.timeout,
		Resolver: g.resolver,
		Control: func(network, address string, _ syscall.RawConn) error {
			return g.checkAddress(network, address, public)
		},
	}
	return d.DialContext(ctx, network, address)
}

// checkAddress refuses an address that may not be dialed. The parameter public is true if the host
// name can be a name in the public DNS. If it is false, only the addresses in g.allow are
// accepted.
func (g *guard) checkAddress(network, address string, public bool) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return refuseAddress("%s is no address that is dialed over %s", address, network)
	}
	addr := to.Addr().Unmap()
	if g.isAllowed(addr) {
		return nil
	}
	if err := g.public.SafeAddr(addr); err != nil {
		return refuseAddress("%s address: %w", g.className(addr), err)
	}
	if !public {
		return refuseAddress("a public address under a name that is none: %s", address)
	}
	if !slices.Contains(g.ports, to.Port()) {
		return refuseAddress("port of a public address: %s", address)
	}
	return nil
}

func (g *guard) isAllowed(addr netip.Addr) bool {
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// reserved are names under which the public DNS has no entries (RFC 6761, 6762, 7686, 8375,
// 9476; .internal by ICANN).
var reserved = []string{"localhost", "local", "internal", "onion", "alt", "home.arpa"}

// isPublicName reports whether name can be a name in the public DNS.
func isPublicName(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return strings.Contains(name, ".") && !hasNumericEnd(name) && !slices.ContainsFunc(reserved, func(top string) bool {
		return strings.HasSuffix(name, "."+top)
	})
}

// hasNumericEnd reports whether the last label of name is a number. Some resolvers read such a
// name as an IPv4 address, for instance 2130706433, 0x7f.1 or 0177.0.0.1 (WHATWG URL §3.5). No
// top level domain is a number.
func hasNumericEnd(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	digits := "0123456789"
	if hex, found := strings.CutPrefix(last, "0x"); found {
		last, digits = hex, "0123456789abcdef"
		if last == "" {
			return true
		}
	}
	return last != "" && strings.Trim(last, digits) == ""
}

// classes gives names to networks, for the texts of refusals. The names do not affect the
// decision.
var classes = []struct {
	network netip.Prefix
	name    string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b::/32"), "NAT64"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// className returns the name of the kind of addr, for the operator who reads why a request was
// refused.
func (g *guard) className(addr netip.Addr) string {
	for _, c := range classes {
		if c.network.Contains(addr.WithZone("")) {
			return c.name
		}
	}
	if g.public.SafeAddr(addr) == nil {
		return "public"
	}
	return "special-purpose"
}
