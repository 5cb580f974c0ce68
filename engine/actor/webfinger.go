package actor

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// instanceName is the name of the instance actor, which no user can have.
const instanceName = "instance"

// serviceRel is the relation of a link to a server-level actor (FEP-d556).
const serviceRel = "https://www.w3.org/ns/activitystreams#Service"

// pageRel is the relation of a link to the page about a user.
const pageRel = "http://webfinger.net/rel/profile-page"

const (
	maxResource = 2048 // bytes of the resource that WebFinger is asked for
	maxUserPart = 255  // bytes before the @ of a handle
)

// handle is user@host. host is in canonical form, with a port only if it is not the default one.
type handle struct{ user, host string }

func (h handle) String() string { return h.user + "@" + h.host }

// isSame reports whether both handles name the same account. The case of the user names does not
// matter, because servers ignore it.
func (h handle) isSame(other handle) bool {
	return h.host == other.host && strings.EqualFold(h.user, other.user)
}

// parseHandle reads user@host, @user@host and acct:user@host (RFC 7565). It drops a port that is
// the default one of scheme.
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

// notInHandle reports whether r is not allowed in the user name of a handle. Letters, marks,
// digits, the other unreserved characters of RFC 3986, and + are allowed.
func notInHandle(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._~+", r)
}

// WebFinger returns the user that resource names and the document to serve for it (RFC 7033).
// The user is the zero Username for the instance. The fault is Invalid when resource is neither
// a URI nor a handle, and NotFound when it does not belong to this server. The name of the user
// is well-formed, but the caller must check that the user exists.
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

// pageOwner returns the user whose page has the address id.
func (l *Local) pageOwner(id vocab.ID) (u vocab.Username, ok bool) {
	name, ok := strings.CutPrefix(string(id.Canonical()), l.origin+"/@")
	if !ok || !l.pages {
		return u, false
	}
	u, err := vocab.ParseUsername(name)
	return u, err == nil
}

// decodeResource checks resource and removes a second percent-encoding, because some peers
// encode it twice.
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

// userOfHandle returns the user of the handle h, or the zero Username if h is a handle of the
// instance.
func (a Addresses) userOfHandle(h handle) (u vocab.Username, ok bool) {
	name := strings.ToLower(h.user)
	if h.host != a.host {
		return u, false
	}
	if name == instanceName || name == a.host {
		return u, true
	}
	u, err := vocab.ParseUsername(name)
	return u, err == nil
}

func (a Addresses) schemeOf() string {
	scheme, _, _ := strings.Cut(a.origin, "://")
	return scheme
}

// buildJRD returns a JSON Resource Descriptor (RFC 7033 §4.4). It has a self link for each of
// the two media types of ActivityPub, because some peers look for one and some for the other.
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
