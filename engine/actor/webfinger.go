package actor

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// instanceName is the name of the instance actor: no user can have it.
const instanceName = "instance"

// serviceRel is how a server-level actor is linked to (FEP-d556).
const serviceRel = "https://www.w3.org/ns/activitystreams#Service"

// pageRel is how the page about a user is linked to.
const pageRel = "http://webfinger.net/rel/profile-page"

const (
	maxResource = 2048 // bytes of what WebFinger is asked about
	maxUserPart = 255  // bytes before the @ of a handle
)

// handle is user@host. host is in canonical form, with a port if that is unusual.
type handle struct{ user, host string }

func (h handle) String() string { return h.user + "@" + h.host }

// isSame reports whether both name the same account: servers take the names of users in either
// case.
func (h handle) isSame(other handle) bool {
	return h.host == other.host && strings.EqualFold(h.user, other.user)
}

// parseHandle reads user@host, @user@host and acct:user@host (RFC 7565). scheme decides which port
// is the usual one.
func parseHandle(s, scheme string) (handle, error) {
	bad := fault.New(fault.Invalid, "that is not a handle such as @alice@example.org")
	if len(s) >= 5 && strings.EqualFold(s[:5], "acct:") {
		s = s[5:]
	}
	user, host, ok := strings.Cut(strings.TrimPrefix(s, "@"), "@")
	if !ok || user == "" || len(user) > maxUserPart || !utf8.ValidString(user) || strings.ContainsFunc(user, notInHandle) ||
		strings.ContainsAny(host, "/?#@") {
		return handle{}, bad
	}
	id, err := vocab.ParseID(scheme + "://" + host + "/")
	if err != nil {
		return handle{}, bad
	}
	return handle{user, id.Host()}, nil
}

// notInHandle tells characters that stand in no name: all but letters, digits and RFC 3986's other
// unreserved ones.
func notInHandle(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._~+", r)
}

// WebFinger answers who resource is (RFC 7033): a user, or nobody for the instance, with the
// document to serve. The fault is Invalid for what no URI or handle looks like, NotFound for what
// is not ours. Whether there is such a user is the caller's to find out; nothing but a well-formed
// name is passed on.
func (l *Local) WebFinger(resource string) (vocab.Username, vocab.Doc, error) {
	s, err := decodeResource(resource)
	if err != nil {
		return vocab.Username{}, nil, err
	}
	var u vocab.Username
	known := false
	if id, err := vocab.ParseID(s); err == nil {
		u, known = l.Owner(id)
		if !known {
			u, known = l.pageOwner(id)
		}
		known = known || id.Same(l.InstanceID()) || strings.TrimSuffix(string(id.Canonical()), "/") == l.origin // FEP-d556
	} else if h, err := parseHandle(s, l.schemeOf()); err == nil {
		u, known = l.userOfHandle(h)
	} else if before, _, found := strings.Cut(s, ":"); !found || before == "" || strings.EqualFold(before, "acct") {
		return vocab.Username{}, nil, fault.New(fault.Invalid, "the resource is neither a URI nor a handle")
	}
	if !known {
		return vocab.Username{}, nil, fault.New(fault.NotFound, "there is no such resource")
	}
	if u.IsZero() {
		d := l.buildJRD(instanceName, l.InstanceID(), l.origin+"/")
		d["links"] = append(d["links"].([]any), linkTo(serviceRel, vocab.ActivityJSON, l.InstanceID()))
		return u, d, nil
	}
	if !l.pages {
		return u, l.buildJRD(u.String(), l.ID(u)), nil
	}
	d := l.buildJRD(u.String(), l.ID(u), l.Page(u))
	d["links"] = append(d["links"].([]any), linkTo(pageRel, "text/html", vocab.ID(l.Page(u))))
	return u, d, nil
}

// pageOwner returns the user about whose page this is the address.
func (l *Local) pageOwner(id vocab.ID) (u vocab.Username, ok bool) {
	name, ok := strings.CutPrefix(string(id.Canonical()), l.origin+"/@")
	if !ok || !l.pages {
		return u, false
	}
	u, err := vocab.ParseUsername(name)
	return u, err == nil
}

// decodeResource returns resource as it was meant: some peers encode what is encoded already.
func decodeResource(resource string) (string, error) {
	bad := fault.New(fault.Invalid, "the resource is missing or malformed")
	if resource == "" || len(resource) > maxResource {
		return "", bad
	}
	s, err := url.PathUnescape(resource)
	if err != nil || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", bad
	}
	return s, nil
}

// userOfHandle returns the user of that handle, nobody for the instance.
func (l *Local) userOfHandle(h handle) (u vocab.Username, ok bool) {
	name := strings.ToLower(h.user)
	if h.host != l.host {
		return u, false
	}
	if name == instanceName || name == l.host {
		return u, true
	}
	u, err := vocab.ParseUsername(name)
	return u, err == nil
}

func (l *Local) schemeOf() string {
	scheme, _, _ := strings.Cut(l.origin, "://")
	return scheme
}

// buildJRD returns a JSON Resource Descriptor (RFC 7033 §4.4): self in both media types, since
// peers look for either.
func (l *Local) buildJRD(name string, id vocab.ID, aliases ...any) vocab.Doc {
	return vocab.Doc{
		"subject": "acct:" + name + "@" + l.host,
		"aliases": append([]any{string(id)}, aliases...),
		"links":   []any{linkTo("self", vocab.ActivityJSON, id), linkTo("self", vocab.MediaType, id)},
	}
}

func linkTo(rel, mediaType string, id vocab.ID) vocab.Doc {
	return vocab.Doc{"rel": rel, "type": mediaType, "href": string(id)}
}
