package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxServerFile is the size of the largest policy file that is read or written, in bytes. Such a
// file has room for a million domains.
const maxServerFile = 64 << 20

// MaxComment is the length of the longest comment on a domain or actor, in characters.
const MaxComment = 500

// IsComment reports whether the policy can hold words as a comment.
func IsComment(words string) bool {
	return utf8.RuneCountInString(words) <= MaxComment && isPrintable(words)
}

// Server is the policy of the whole instance. Domains are in the form that vocab.ID.Host
// returns, and actors in canonical form.
type Server struct {
	BlockedDomains  []string          `json:"blocked_domains"`  // nothing is received or sent
	AllowedDomains  []string          `json:"allowed_domains"`  // if federation.mode is allowlist, only these are permitted
	SuspendedActors []vocab.ID        `json:"suspended_actors"` // nothing is received from them or delivered to them
	Comments        map[string]string `json:"comments"`         // notes of the operator, by domain or actor
}

func decodeServer(data []byte) (Server, error) {
	var s Server
	if len(data) > 0 {
		if err := decodeStrictly(data, &s); err != nil {
			return Server{}, err
		}
	}
	return s.canonicalServer()
}

// canonicalServer returns s with its domains and actors in canonical form, sorted and without
// repeats. No list in it is nil, so that none is null in JSON.
func (s Server) canonicalServer() (Server, error) {
	var err error
	if s.BlockedDomains, err = readEach("blocked_domains", s.BlockedDomains, readDomain); err != nil {
		return Server{}, err
	}
	if s.AllowedDomains, err = readEach("allowed_domains", s.AllowedDomains, readDomain); err != nil {
		return Server{}, err
	}
	if s.SuspendedActors, err = readEach("suspended_actors", s.SuspendedActors, readActor); err != nil {
		return Server{}, err
	}
	written := s.Comments
	s.Comments = make(map[string]string, len(written))
	for about, words := range written {
		about, err := readSubject(about)
		if err != nil {
			return Server{}, fmt.Errorf("comments: %w", err)
		}
		if !IsComment(words) {
			return Server{}, badConfig("comments: that on %s has more than %d characters, or one that cannot be shown", about, MaxComment)
		}
		s.Comments[about] = words
	}
	return s, nil
}

// clone returns a copy that may be changed.
func (s Server) clone() Server {
	return Server{slices.Clone(s.BlockedDomains), slices.Clone(s.AllowedDomains), slices.Clone(s.SuspendedActors), maps.Clone(s.Comments)}
}

func readEach[T ~string](key string, written []T, read func(T) (T, error)) ([]T, error) {
	out := make([]T, 0, len(written))
	for i, w := range written {
		c, err := read(w)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", key, i, err)
		}
		out = append(out, c)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// readSubject returns a domain or actor in its canonical form.
func readSubject(s string) (string, error) {
	if strings.Contains(s, "://") {
		id, err := readActor(vocab.ID(s))
		return string(id), err
	}
	return readDomain(s)
}

func readActor(written vocab.ID) (vocab.ID, error) {
	id, err := vocab.ParseID(string(written))
	if err != nil {
		return "", fault.New(fault.Config, fmt.Sprintf("%.100q is not the id of an actor", written)).WithHint("write the whole id, such as https://example.org/users/bob")
	}
	return id.Canonical(), nil
}

// maxDomain is the length of the longest name that DNS can hold (RFC 1035 §2.3.4), with a port.
const maxDomain = 253 + len(":65535")

// readDomain returns d in the form that vocab.ID.Host returns: lower case, with A-labels.
func readDomain(d string) (string, error) {
	wrong := fault.New(fault.Config, fmt.Sprintf("%.60q is not a domain", d)).WithHint("write the name alone, such as example.org")
	if d == "" || len(d) > maxDomain || strings.ContainsAny(d, "/?#@*,") {
		return "", wrong
	}
	id, err := vocab.ParseID("https://" + d + "/")
	if err != nil {
		return "", wrong
	}
	return id.Host(), nil
}
