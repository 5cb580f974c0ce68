package vocab

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/lightweb/lightweb/engine/fault"
)

// MaxID is the greatest length of an id that is accepted, in bytes. It ensures that an id fits
// into a row of a PostgreSQL index.
const MaxID = 1024

// ID is the URI of an object, activity, actor or collection, in canonical form. Two ids name the
// same thing if and only if they are equal. Text from other servers becomes an ID only by ParseID,
// or by IDOf, which also accepts text that is no id.
type ID string

// Public is the collection that addresses everybody (ActivityPub §5.6). Parsing replaces its
// short forms by this one.
const Public ID = "https://www.w3.org/ns/activitystreams#Public"

// ParseID returns s as an id. It must be an absolute http or https URI of at most MaxID bytes,
// without user info. The host must be an IP literal or a valid name. ParseID changes scheme,
// host and port to their canonical form, and leaves the rest as written. The code that fetches
// an id decides whether plain http is allowed.
func ParseID(s string) (ID, error) {
	if plainOrigin(s) > 0 {
		return ID(s), nil
	}
	if _, _, err := parseAnyURI(s); err != nil {
		return "", err
	}
	id := ID(s).Canonical()
	if len(id) > MaxID { // A-labels may be longer than the letters that they encode
		return "", fault.New(fault.Invalid, "an id must have 1 to 1024 bytes")
	}
	return id, nil
}

// IDOf is ParseID for text that may be no id. It returns text that is no id unchanged. No object
// is stored under such text.
func IDOf(s string) ID {
	if id, err := ParseID(s); err == nil {
		return id
	}
	return ID(s)
}

// AddressOf is IDOf for what to and cc name. It also accepts the short forms of Public.
func AddressOf(s string) ID {
	if id, err := parseAddress(s); err == nil {
		return id
	}
	return ID(s)
}

// ParseHost returns the host in written, in the form that ID.Host has: with A-labels in lower
// case, and with the port unless it is that of https. The fault is Invalid for text that is no
// host, such as an address.
func ParseHost(written string) (string, error) {
	id, err := ParseID("https://" + written + "/")
	if err != nil || id.Host() == "" || strings.ContainsAny(written, "/?#@") {
		return "", fault.New(fault.Invalid, fmt.Sprintf("%.100q is no host", written))
	}
	return id.Canonical().Host(), nil
}

// parseURI returns the scheme and the authority of an id in canonical form: in lower case, with
// A-labels, and without a default port.
func parseURI(s string) (scheme, authority string, err error) {
	if n := plainOrigin(s); n > 0 {
		scheme, authority, _ = strings.Cut(s[:n], "://")
		return scheme, authority, nil
	}
	return parseAnyURI(s)
}

// plainOrigin returns the length of the origin of an id that is canonical already. It returns 0
// for all other ids, and for canonical ids with unusual characters. It is a fast path, because
// nearly all ids are canonical and many ids are compared for each activity.
func plainOrigin(s string) int {
	rest, secure := strings.CutPrefix(s, "https://")
	if !secure {
		var ok bool
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return 0
		}
	}
	if len(s) > MaxID {
		return 0
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	host, port, ported := strings.Cut(authority, ":")
	if ported && (port == "" || !isPort(port) || secure && port == "443" || !secure && port == "80") || len(host) > 253 {
		return 0
	}
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return 0
		}
	}
	for _, c := range []byte(rest[len(authority):]) {
		if !plainBytes[c] {
			return 0
		}
	}
	return len(s) - len(rest) + len(authority)
}

// plainBytes are the bytes that plainOrigin accepts after the authority of a URI: those that a
// path, query and fragment may have unescaped (RFC 3986 §3.3, §3.4).
var plainBytes = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/?#") {
		is[c] = true
	}
	return is
}()

// parseAnyURI is parseURI without the fast path for canonical ids.
func parseAnyURI(s string) (scheme, authority string, err error) {
	if s == "" || len(s) > MaxID {
		return "", "", fault.New(fault.Invalid, "an id must have 1 to 1024 bytes")
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, isUnsafeInURI) {
		return "", "", fault.New(fault.Invalid, "an id holds a character that no URI may hold")
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "" || u.User != nil {
		return "", "", fault.New(fault.Invalid, "an id must be an absolute https URI")
	}
	host, port := canonicalHost(u), u.Port()
	if host == "" || !isPort(port) || strings.HasSuffix(u.Host, ":") {
		return "", "", fault.New(fault.Invalid, "an id names no valid host")
	}
	if port == "" || u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		return u.Scheme, host, nil
	}
	return u.Scheme, host + ":" + port, nil
}

// isUnsafeInURI reports whether a character could make an id look like another one. That is true
// of control characters, spaces, characters with a special meaning for browsers or in headers, and
// characters that control the direction of writing (RFC 3987 §4.1).
func isUnsafeInURI(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(`\"<>`, r)
}

// isPort reports whether p is a port from 1 to 65535 without leading zeros, or empty.
func isPort(p string) bool {
	if p == "" {
		return true
	}
	n, err := strconv.ParseUint(p, 10, 16)
	return err == nil && n > 0 && p[0] != '0'
}

// canonicalHost returns the host of u in canonical form, or an empty text if u has no valid host.
func canonicalHost(u *url.URL) string {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(name)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return ""
		}
		return "[" + addr.String() + "]"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return ""
		}
		name = ascii
	}
	name = strings.ToLower(name)
	if len(name) > 253 {
		return ""
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) { // an empty last label is refused, too: a host with a trailing dot would evade a block list
			return ""
		}
	}
	return name
}

// isLabel reports whether s is a label of a host name (RFC 1123 §2.1) in lower case. It also
// accepts underscores, because names in use have them, and hyphens at either end. That RFC
// allows neither.
func isLabel(s string) bool {
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// Host returns the authority of id in lower case, with A-labels and without a default port. It
// is the key of block lists, limits and stored hosts. It is empty for an id that ParseID would
// refuse.
func (id ID) Host() string {
	_, authority, _ := parseURI(string(id)) // empty on an error
	return authority
}

// Origin returns the scheme and the authority of id in canonical form (RFC 6454), such as
// https://example.org. It is empty for an id that ParseID would refuse.
func (id ID) Origin() string {
	if n := plainOrigin(string(id)); n > 0 {
		return string(id[:n])
	}
	scheme, authority, err := parseURI(string(id))
	if err != nil {
		return ""
	}
	return scheme + "://" + authority
}

// SameOrigin reports whether both ids have the same origin, which means that the same server
// issued them (FEP-fe34). It is false for ids without an origin.
func (id ID) SameOrigin(other ID) bool {
	o := id.Origin()
	return o != "" && o == other.Origin()
}

// Canonical returns id with its origin in canonical form and the rest as written. An id that
// ParseID returned has this form already.
func (id ID) Canonical() ID {
	if plainOrigin(string(id)) > 0 {
		return id
	}
	origin := id.Origin()
	_, rest, _ := strings.Cut(string(id), "://")
	if i := strings.IndexAny(rest, "/?#"); origin != "" && i >= 0 {
		return ID(origin + rest[i:])
	}
	if origin != "" {
		return ID(origin)
	}
	return id
}

// Same reports whether both ids name the same thing.
func (id ID) Same(other ID) bool {
	return id == other || id.Canonical() == other.Canonical()
}

// Document returns id without its fragment. The result is the address from which id is fetched.
func (id ID) Document() ID {
	d, _, _ := strings.Cut(string(id), "#")
	return ID(d)
}
