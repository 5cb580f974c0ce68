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

// guard keeps requests on the public internet and in the addresses that were allowed beside it. A
// URL is judged before it is used, and every address it resolves to when it is dialed: what was
// resolved earlier proves nothing.
type guard struct {
	allow     []netip.Prefix
	allowHTTP bool
	ports     []uint16 // at public addresses
	public    *ssrf.Guardian
	timeout   time.Duration
	resolver  *net.Resolver // nil for the system's
}

func newGuard(cfg Config) *guard {
	g := &guard{allow: cfg.AllowAddresses, allowHTTP: cfg.AllowHTTP, ports: []uint16{443}, timeout: cfg.Timeout}
	if cfg.AllowHTTP {
		g.ports = append(g.ports, 80)
	}
	g.public = ssrf.New(ssrf.WithPorts(g.ports...))
	return g
}

// refuse returns the guard's error. Its public words do not tell a peer what its URL resolved to
// here.
func refuse(format string, args ...any) error {
	return fault.Wrap(fault.Forbidden, "the address may not be contacted", fmt.Errorf(format, args...)).
		WithHint("addresses beyond the public internet are allowed by federation.allow_addresses, plain http by federation.allow_http")
}

// url returns id as the URL to request, its host as it will be sent and signed. Where only the
// address can tell whether a host is allowed, dial has the last word.
func (g *guard) url(id vocab.ID) (*url.URL, error) {
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
		return nil, refuse("plain http to %s", u.Host)
	}
	name := u.Hostname()
	if addr, err := netip.ParseAddr(name); err == nil {
		if !g.allowed(addr.Unmap()) {
			return nil, refuse("an address in place of a name: %s (%s)", addr, g.class(addr.Unmap()))
		}
		return u, nil
	}
	if endsInNumber(name) {
		return nil, refuse("an address in disguise: %s", name)
	}
	if len(g.allow) > 0 {
		return u, nil
	}
	if !isPublicName(name) {
		return nil, refuse("no name of the public internet: %s", name)
	}
	if u.Port() != "" { // vocab.ID.Host leaves out the scheme's own
		return nil, refuse("port %s of %s", u.Port(), name)
	}
	return u, nil
}

// dial connects to one of the addresses that address resolves to, of those that pass.
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
		Control:  func(network, address string, _ syscall.RawConn) error { return g.check(network, address, public) },
	}
	return d.DialContext(ctx, network, address)
}

// check judges an address as it is dialed. Unless the name it came from is public, only allowed
// addresses pass.
func (g *guard) check(network, address string, public bool) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return refuse("%s is no address that is dialed over %s", address, network)
	}
	addr := to.Addr().Unmap()
	if g.allowed(addr) {
		return nil
	}
	if err := g.public.SafeAddr(addr); err != nil {
		return refuse("%s address: %w", g.class(addr), err)
	}
	if !public {
		return refuse("a public address under a name that is none: %s", address)
	}
	if !slices.Contains(g.ports, to.Port()) {
		return refuse("port of a public address: %s", address)
	}
	return nil
}

func (g *guard) allowed(addr netip.Addr) bool {
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// reserved are the names below which the public DNS has nothing (RFC 6761, 6762, 7686, 8375, 9476;
// .internal by ICANN).
var reserved = []string{"localhost", "local", "internal", "onion", "alt", "home.arpa"}

// isPublicName tells whether name can be one of the public DNS.
func isPublicName(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return strings.Contains(name, ".") && !endsInNumber(name) && !slices.ContainsFunc(reserved, func(top string) bool {
		return strings.HasSuffix(name, "."+top)
	})
}

// endsInNumber tells whether name is one that some resolvers take for an IPv4 address, such as
// 2130706433, 0x7f.1 or 0177.0.0.1 (WHATWG URL §3.5): no top level domain is a number.
func endsInNumber(name string) bool {
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

// classes name the networks that refusals are about. Whether an address is refused is not decided
// by them.
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

// class names the kind of addr, for the operator who reads why something was refused.
func (g *guard) class(addr netip.Addr) string {
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
