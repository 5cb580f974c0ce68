package foreign

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Limits on a list.
const (
	maxList    = 64 << 20 // bytes
	MaxEntries = 10_000   // accounts or domains
)

// List is a list of accounts or domains.
type List struct {
	Kind    Kind
	Entries []string // accounts such as alice@example.org, or domains, without repeats
}

// ReadList reads a list with an account or a domain on each line. The first line may name
// columns, as in Mastodon's lists of followed or muted accounts. The fault is Invalid, with the
// line, if a line is not valid, and TooLarge if the list exceeds the limits.
func ReadList(path string) (List, error) {
	f, err := openFile(path)
	if err != nil {
		return List{}, err
	}
	defer f.Close()
	return readList(f, nil)
}

// readList reads a list. The parameter head holds the first bytes of the list, which the caller
// has read already, and r has the rest.
func readList(r io.Reader, head []byte) (List, error) {
	data, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head), r), maxList+1))
	if err != nil {
		return List{}, fmt.Errorf("read list: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > maxList || bytes.Count(data, []byte("\n")) > MaxEntries+1:
		return List{}, fault.New(fault.TooLarge, fmt.Sprintf("the list has more than %d lines", MaxEntries)).WithHint("divide it, and import a part when the one before is done")
	case !utf8.Valid(data) || bytes.ContainsRune(data, 0):
		return List{}, fault.New(fault.Invalid, "the file is neither an archive nor a list of accounts or domains")
	}
	return parseList(csv.NewReader(bytes.NewReader(data)))
}

func parseList(c *csv.Reader) (l List, err error) {
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	seen := map[string]bool{}
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return List{}, fault.Wrap(fault.Invalid, "the list is malformed: "+err.Error(), err)
		}
		if l.Kind == "" {
			if l.Kind = kindOf(cells); l.Kind != Domains && l.Kind != Accounts {
				continue // a line of column names is no entry
			}
		}
		entry, err := l.Kind.parseEntry(strings.TrimSpace(cells[0]))
		if err != nil {
			line, _ := c.FieldPos(0)
			return List{}, fault.Wrap(fault.Invalid, fmt.Sprintf("line %d of the list: %s", line, fault.Public(err)), err).WithHint("mend or remove it; nothing was changed")
		}
		if !seen[entry] {
			seen[entry] = true
			l.Entries = append(l.Entries, entry)
		}
	}
	if l.Kind == "" {
		return List{}, fault.New(fault.Invalid, "the list is empty")
	}
	return l, nil
}

// kindOf returns the kind of a list by its first line.
func kindOf(cells []string) Kind {
	has := func(name string) bool {
		return slices.ContainsFunc(cells, func(cell string) bool { return strings.EqualFold(strings.TrimSpace(cell), name) })
	}
	switch {
	case has("Account address") && has("Hide notifications"):
		return Mutes
	case has("Account address"):
		return Following
	case strings.Contains(cells[0], "@"):
		return Accounts
	}
	return Domains
}

func (k Kind) parseEntry(s string) (string, error) {
	if k == Domains {
		return policy.ParseDomain(s)
	}
	user, host, is := strings.Cut(strings.TrimPrefix(s, "@"), "@")
	id, err := vocab.ParseID("https://" + host + "/")
	if !is || user == "" || len(s) > maxHandle || err != nil || strings.ContainsAny(host, "/?#@") || strings.ContainsFunc(user, isOutsideNames) {
		return "", fault.New(fault.Invalid, fmt.Sprintf("%.60q is not an account such as alice@example.org", s))
	}
	return user + "@" + id.Host(), nil
}

// maxHandle is the greatest length of an account, in bytes.
const maxHandle = 512

func isOutsideNames(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._~+", r)
}
