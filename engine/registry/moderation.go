package registry

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Moderation lists what a user does not want to see. Muting does not change relationships, and
// nobody is told of it.
type Moderation struct {
	MutedActors   []vocab.ID `json:"muted_actors"`   // at most 1000
	MutedDomains  []string   `json:"muted_domains"`  // at most 1000; each includes its subdomains
	MutedKeywords []string   `json:"muted_keywords"` // at most 200, of 1 to 100 characters

	compiled *mutes // nil: nothing is muted
}

// Limits on the lists of a Moderation.
const (
	maxMutedActors   = 1000
	maxMutedDomains  = 1000
	maxMutedKeywords = 200
	maxMutedKeyword  = 100 // characters
)

// validateMutes returns an error if m is not valid. It replaces nil lists by empty ones, and
// compiles m for use.
func (m *Moderation) validateMutes() error {
	if m.MutedActors == nil {
		m.MutedActors = []vocab.ID{}
	}
	if m.MutedDomains == nil {
		m.MutedDomains = []string{}
	}
	if m.MutedKeywords == nil {
		m.MutedKeywords = []string{}
	}
	for _, l := range []struct {
		key     string
		n, most int
	}{{"moderation.muted_actors", len(m.MutedActors), maxMutedActors}, {"moderation.muted_domains", len(m.MutedDomains), maxMutedDomains},
		{"moderation.muted_keywords", len(m.MutedKeywords), maxMutedKeywords}} {
		if l.n > l.most {
			return badMember(l.key, " has %d entries: at most %d are taken", l.n, l.most)
		}
	}
	for n, id := range m.MutedActors {
		if _, err := vocab.ParseID(string(id)); err != nil {
			return badMember(fmt.Sprintf("moderation.muted_actors[%d]", n), ": %.60q is not the URI of an actor", id)
		}
	}
	for n, d := range m.MutedDomains {
		if _, err := readMuted(d); err != nil {
			return badMember(fmt.Sprintf("moderation.muted_domains[%d]", n), ": %.60q is not a domain", d)
		}
	}
	for n, k := range m.MutedKeywords {
		key := fmt.Sprintf("moderation.muted_keywords[%d]", n)
		if length := utf8.RuneCountInString(k); length < 1 || length > maxMutedKeyword {
			return badMember(key, " has %d characters: 1 to %d are taken", length, maxMutedKeyword)
		}
		if strings.Trim(k, " #\t\n") == "" || !isPrintable(k) {
			return badMember(key, ": %.60q is no word", k)
		}
	}
	m.compiled = m.compileMutes()
	return nil
}

// readMuted returns a muted domain in the form that domains have in ids. "*.example.org" and
// "example.org" give the same result. A port is refused, because a mute is for all ports.
func readMuted(domain string) (string, error) {
	host, err := readDomain(strings.TrimPrefix(domain, "*."))
	if err == nil && strings.Contains(domain, ":") {
		err = badConfig("%.60q has a port", domain)
	}
	return host, err
}
