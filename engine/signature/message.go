package signature

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// message is the view of a request that both dialects sign and verify. It is derived in one
// place, so that signing and verifying cannot read the same request in two ways.
type message struct {
	header    http.Header
	method    string
	scheme    string // of the origin
	authority string // of the origin, in lower case, without a default port (RFC 9421 §2.2.3)
	host      string // the Host field as on the wire
	raw       string // the request target as on the wire
	target    string // raw in origin form, that is, path and query, neither decoded nor cleaned
}

// newOutgoing returns the message of a request that will be sent.
func newOutgoing(r *http.Request) (*message, error) {
	u := r.URL
	if u == nil || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the URL is not an absolute http or https URL")
	}
	m := &message{header: r.Header, method: r.Method, scheme: u.Scheme, host: r.Host, raw: u.RequestURI()}
	if m.method == "" {
		m.method = http.MethodGet // as net/http does
	}
	if m.host == "" {
		m.host = u.Host
	}
	if strings.ContainsFunc(m.host, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return nil, fmt.Errorf("host %q is not written in ASCII", m.host) // net/http would send other bytes than those that are signed
	}
	m.authority, m.target = canonicalHost(m.scheme, m.host), m.raw
	return m, checkTarget(m.target)
}

// newIncoming returns the message of a request that was received.
//
// RFC 9421 §2.2.2: @target-uri is the URI as the client knows it. A proxy may have changed
// scheme and address, and anybody can send forwarding headers. So the URI is built from the
// configured origin; checkHost then compares the Host field with that origin.
func newIncoming(r *http.Request, origin string) (*message, error) {
	scheme, host, ok := strings.Cut(origin, "://")
	if !ok || host == "" || strings.ContainsAny(host, "/?#@") {
		return nil, fmt.Errorf("parse signature: origin %q is not scheme://host", origin)
	}
	m := &message{header: r.Header, method: r.Method, scheme: scheme, authority: canonicalHost(scheme, host), host: r.Host, raw: r.RequestURI}
	if m.raw == "" && r.URL != nil {
		m.raw = r.URL.RequestURI()
	}
	m.target = originForm(m.raw)
	return m, nil
}

// checkHost refuses a request that was meant for another host.
func (m *message) checkHost() error {
	if canonicalHost(m.scheme, m.host) != m.authority {
		return refuseFor("wrong_host", "the request is for another host", "Host is %.100q, not %q", m.host, m.authority)
	}
	// net/http moves the Host field to r.Host; HTTP/2 can leave a second Host field in the
	// header.
	if h := m.header["Host"]; len(h) > 1 || len(h) == 1 && !strings.EqualFold(h[0], m.host) {
		return refuse("duplicate_header", "the request has more than one host header")
	}
	return nil
}

// originForm removes scheme and authority from a request target in absolute form (RFC 9112
// §3.2.2). net/http has already made that authority the request's host.
func originForm(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	_, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	i := strings.IndexAny(rest, "/?")
	if i < 0 {
		return "/"
	}
	if rest[i] == '?' {
		return "/" + rest[i:]
	}
	return rest[i:]
}

// checkTarget refuses a target that is not a path, or whose bytes could add a line to the signed
// text.
func checkTarget(target string) error {
	if !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return refuse("bad_target", "the request target is not a path")
	}
	return nil
}

// canonicalHost returns host in lower case without the default port of scheme.
func canonicalHost(scheme, host string) string {
	host = strings.ToLower(host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return host
}

// folding is an obsolete line fold (RFC 9112 §5.2).
var folding = regexp.MustCompile(`[ \t]*\r?\n[ \t]+`)

// fieldValue returns the value of a header field in the form that both dialects sign (RFC 9421
// §2.1, draft-cavage-12 §2.3). The lines of the field are trimmed and joined with ", ". name is
// in lower case.
func (m *message) fieldValue(name string) (string, error) {
	if name == "host" {
		return m.host, nil
	}
	lines := m.header[http.CanonicalHeaderKey(name)]
	if len(lines) == 0 {
		return "", refuse("missing_component", "the signature covers %q, which the request does not have", clip(name))
	}
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		if strings.ContainsAny(line, "\r\n") {
			line = folding.ReplaceAllString(line, " ")
		}
		trimmed[i] = strings.Trim(line, " \t")
		if strings.ContainsAny(trimmed[i], "\r\n") {
			return "", refuse("malformed_field", "the field %q holds a line break", clip(name))
		}
	}
	return strings.Join(trimmed, ", "), nil
}

// checkSingle refuses a field that occurs more than once, because two readers of the request
// could use different lines.
func (m *message) checkSingle(name string) error {
	if len(m.header[name]) > 1 {
		return refuse("duplicate_header", "the request has more than one %s header", strings.ToLower(name))
	}
	return nil
}
