package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxServerFile is the largest policy read, in bytes: room for some hundred thousand domains.
const maxServerFile = 16 << 20

// Server is the policy of the whole instance. Domains are written as vocab.ID.Host returns them.
type Server struct {
	BlockedDomains []string `json:"blocked_domains"` // neither heard nor contacted
	AllowedDomains []string `json:"allowed_domains"` // the only ones, when federation.mode is allowlist
}

func decodeServer(data []byte) (Server, error) {
	var s Server
	if len(data) > 0 {
		if err := decode(data, &s); err != nil {
			return Server{}, err
		}
	}
	return s.canonical()
}

// canonical returns s with its domains in canonical form, sorted, each once, and never null in JSON.
func (s Server) canonical() (Server, error) {
	var err error
	if s.BlockedDomains, err = domains("blocked_domains", s.BlockedDomains); err != nil {
		return Server{}, err
	}
	if s.AllowedDomains, err = domains("allowed_domains", s.AllowedDomains); err != nil {
		return Server{}, err
	}
	return s, nil
}

func domains(key string, written []string) ([]string, error) {
	out := make([]string, 0, len(written))
	for i, d := range written {
		c, err := domain(d)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", key, i, err)
		}
		out = append(out, c)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// maxDomain is the longest name that DNS can hold (RFC 1035 §2.3.4), with a port.
const maxDomain = 253 + len(":65535")

// domain returns d as vocab.ID.Host would: lower case, A-labels. Peers on an unusual port are other peers.
func domain(d string) (string, error) {
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
