package vocab

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/lightweb/lightweb/engine/fault"
)

// MaxID is the longest id taken, in bytes. It keeps every id within what a PostgreSQL index row
// can hold.
const MaxID = 1024

// ID is the URI that names an object, activity, actor or collection, in canonical form: two ids
// are of one thing if and only if they are equal. Only ParseID makes one out of words from
// outside.
type ID string

// Public addresses everybody (ActivityPub §5.6). Parsing turns its short forms into this one.
const Public ID = "https://www.w3.org/ns/activitystreams#Public"

// ParseID returns s as an id: an absolute http or https URI of at most MaxID bytes, without user
// info, whose host is a name that can be compared or an IP literal. Scheme, host and port are
// brought to their canonical form, the rest stays as written. Whether plain http is allowed is for
// the one who fetches it.
func ParseID(s string) (ID, error) {
	if plainOrigin(s) > 0 {
		return ID(s), nil
	}
	if _, _, err := parseAnyURI(s); err != nil {
		return "", err
	}
	id := ID(s).Canonical()
	if len(id) > MaxID { // A-labels are longer than the letters they stand for
		return "", fault.New(fault.Invalid, "an id must have 1 to 1024 bytes")
	}
	return id, nil
}

// IDOf is ParseID for text that may be no id: such text is returned as it is, and no object is
// stored under it.
func IDOf(s string) ID {
	if id, err := ParseID(s); err == nil {
		return id
	}
	return ID(s)
}

// parseURI returns scheme and authority of an id in canonical form: lower case, A-labels, no
// default port.
func parseURI(s string) (scheme, authority string, err error) {
	if n := plainOrigin(s); n > 0 {
		scheme, authority, _ = strings.Cut(s[:n], "://")
		return scheme, authority, nil
	}
	return parseAnyURI(s)
}

// plainOrigin returns the length of the origin of an id that is already canonical, which nearly
// all ids are: an activity compares many. It returns 0 for all others.
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

// plainBytes are the bytes that have no special meaning after the authority of a URI (RFC 3986
// §3.3, §3.4).
var plainBytes = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/?#") {
		is[c] = true
	}
	return is
}()

// parseAnyURI is parseURI for ids in whatever form.
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

// isUnsafeInURI reports whether a character would make an id read as another one: controls,
// spaces, characters that browsers or headers read in their own way, and those that turn the
// direction of writing (RFC 3987 §4.1).
func isUnsafeInURI(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(`\"<>`, r)
}

// isPort reports whether a port is written in its only spelling.
func isPort(p string) bool {
	if p == "" {
		return true
	}
	n, err := strconv.ParseUint(p, 10, 16)
	return err == nil && n > 0 && p[0] != '0'
}

// canonicalHost returns the host of u in comparable form, empty when it is none.
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
		if !isLabel(label) { // an empty last one, too: a trailing dot would slip past a block list
			return ""
		}
	}
	return name
}

// isLabel reports whether s can stand between the dots of a host name (RFC 1123 §2.1). The
// underscore is not in the rules, but in names that are in use.
func isLabel(s string) bool {
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// Host returns the authority of id in lower case, as A-labels, without a default port. Block
// lists, limits and the memory of hosts are keyed by it. It is empty for an id that ParseID would
// refuse.
func (id ID) Host() string {
	_, authority, _ := parseURI(string(id)) // empty on an error, as promised
	return authority
}

// Origin returns scheme and authority of id in canonical form (RFC 6454), such as
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

// SameOrigin reports whether both ids were issued by the same server (FEP-fe34). Ids without an
// origin never match.
func (id ID) SameOrigin(other ID) bool {
	o := id.Origin()
	return o != "" && o == other.Origin()
}

// Canonical returns id in canonical form, which ParseID has given it: origin in canonical form,
// the rest as written.
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

// Document returns id without its fragment: what is asked for when id is fetched.
func (id ID) Document() ID {
	d, _, _ := strings.Cut(string(id), "#")
	return ID(d)
}
