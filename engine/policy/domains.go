// Package policy decides which servers and actors may talk to this server, and how often.
package policy

import (
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Mode decides about hosts that are on no list.
type Mode uint8

// The modes.
const (
	Open      Mode = iota // every host that is not blocked may talk to us
	Allowlist             // only hosts that are allowed, and not blocked, may talk to us
)

// Domains is a compiled policy. A domain on a list matches itself and all domains below it. A
// host on both lists is blocked. The zero Domains allows every well-formed host.
type Domains struct {
	blocked, allowed map[string]bool
	mode             Mode
}

// NewDomains compiles a policy from lists of domains or IP addresses. *.example.org means the
// same as example.org. Entries that cannot be a host are ignored.
func NewDomains(blocked, allowed []string, mode Mode) *Domains {
	return &Domains{domainSet(blocked), domainSet(allowed), mode}
}

// IsAllowed reports whether host, with or without a port, may talk to us and be contacted. It is
// false for a name that cannot be a host.
func (d *Domains) IsAllowed(host string) bool {
	name := normalizeDomain(host)
	if name == "" || matchDomain(d.blocked, name) != "" {
		return false
	}
	return d.mode == Open || matchDomain(d.allowed, name) != ""
}

// Blocking returns the blocked domain that equals host or is above it, or an empty string if there
// is none.
func (d *Domains) Blocking(host string) string { return matchDomain(d.blocked, normalizeDomain(host)) }

// RegistrableDomain returns the domain that the owner of host has registered: the public suffix
// with one label before it. That domain is the key of limits, so that many subdomains of one owner
// share one limit. IP literals and single labels such as localhost:8080 are returned as they are,
// with their port. They occur only where addresses outside the public internet are allowed.
func RegistrableDomain(host string) string {
	name := normalizeDomain(host)
	if name == "" || isAddress(name) || !strings.Contains(name, ".") {
		return host
	}
	registered, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil { // the name is itself a public suffix
		return name
	}
	return registered
}

// maxName is the length of the longest name in the DNS (RFC 1035 §2.3.4). It limits the work that
// a hostile name can cause.
const maxName = 253

func domainSet(list []string) map[string]bool {
	names := make(map[string]bool, len(list))
	for _, entry := range list {
		if name := normalizeDomain(strings.TrimPrefix(strings.TrimSpace(entry), "*.")); name != "" {
			names[name] = true
		}
	}
	return names
}

// matchDomain returns the longest domain in names that equals the parameter name or is above it,
// or an empty string if there is none.
func matchDomain(names map[string]bool, name string) string {
	if len(names) == 0 || isAddress(name) && !names[name] {
		return ""
	}
	for found := name != ""; found; _, name, found = strings.Cut(name, ".") {
		if names[name] {
			return name
		}
	}
	return ""
}

// normalizeDomain returns host in the form in which hosts are compared: A-labels in lower case,
// or an IP address in canonical form, without port, brackets or trailing dots. The result is empty
// if host cannot be the name of a host.
func normalizeDomain(host string) string {
	if isPlain(host) {
		return host
	}
	return normalizeAny(host)
}

// isPlain reports whether host is in normalized form already. Nearly all hosts are in that form,
// and every request checks a few hosts, so isPlain is a fast path.
func isPlain(host string) bool {
	letters, last := false, byte('.')
	for i := range len(host) {
		c := host[i]
		if isForeign(rune(c)) || c == '.' && last == '.' {
			return false
		}
		letters = letters || c >= 'a' && c <= 'z'
		last = c
	}
	return letters && last != '.' && len(host) <= maxName && !strings.Contains(host, "xn--")
}

// normalizeAny is normalizeDomain without the fast path.
func normalizeAny(host string) string {
	if len(host) > 4*maxName {
		return ""
	}
	name := strings.TrimSpace(host)
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		name = name[1 : len(name)-1]
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().String()
	}
	name = strings.ToLower(name)
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	}
	name = strings.TrimRight(name, ".")
	if len(name) > maxName || strings.Contains(name, "..") || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, isForeign) {
		return ""
	}
	if addr, err := netip.ParseAddr(name); err == nil { // an address whose digits idna has mapped to ASCII
		return addr.Unmap().String()
	}
	return name
}

// isForeign reports whether r cannot be in a host name. An underscore is allowed, because some
// host names in use have one.
func isForeign(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}
