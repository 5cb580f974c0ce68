package policy

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

	"golang.org/x/net/publicsuffix"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of a list of domains that somebody else keeps.
const (
	MaxBlocklist      = 64 << 20 // bytes
	MaxBlocklistLines = 1_000_000
)

// Row is a line of a list of domains.
type Row struct {
	Line     int // in the file, from 1
	Text     string
	Domain   string // as ParseDomain returns it; empty when the line cannot be taken
	Severity string // suspend, silence or noop
	Comment  string // one line
	Err      error  // why the line cannot be taken
}

// ErrObfuscated is of a line that hides a part of its domain behind asterisks, or stands for more
// than one.
var ErrObfuscated = fault.New(fault.Invalid, "a part of the domain is hidden")

// ParseDomain returns what somebody calls a domain in the form in which lists hold it: lower case,
// A-labels, without port; or an IP address, in brackets when it has colons. The fault is Invalid
// for what is none, and for what nobody means to list: one who lists a public suffix such as co.uk
// lists a country.
func ParseDomain(written string) (string, error) {
	bad := func(why string) error {
		return fault.New(fault.Invalid, fmt.Sprintf("%.60q %s", written, why))
	}
	if strings.Contains(written, "*") {
		return "", ErrObfuscated
	}
	name := normalizeDomain(written)
	if isAddress(name) && strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	id, err := vocab.ParseID("https://" + name + "/")
	if err != nil || name == "" || strings.HasPrefix(name, "-") {
		return "", bad("is no domain such as example.org, nor an IP address")
	}
	if isAddress(normalizeDomain(name)) {
		return id.Host(), nil
	}
	suffix, official := publicsuffix.PublicSuffix(name)
	if suffix == name && (official || !strings.Contains(name, ".")) {
		return "", bad("is a public suffix, or only the last part of a domain")
	}
	return id.Host(), nil
}

// ReadBlocklist reads a list of domains: in Mastodon's format, whose first line names its columns,
// or with a domain on each line and notes after #. Lines that cannot be taken are returned with the
// reason. The fault is TooLarge beyond the bounds, Invalid for what is no such list: then nothing
// of it can be relied on.
func ReadBlocklist(r io.Reader) ([]Row, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBlocklist+1))
	if err != nil {
		return nil, fmt.Errorf("read list: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > MaxBlocklist, bytes.Count(data, []byte("\n")) > MaxBlocklistLines:
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("the list has more than %d lines or %d bytes", MaxBlocklistLines, MaxBlocklist))
	case !utf8.Valid(data):
		return nil, fault.New(fault.Invalid, "the list is not UTF-8")
	}
	c := csv.NewReader(bytes.NewReader(data))
	c.FieldsPerRecord = -1
	head, err := c.Read()
	if columns := columnsOf(head); err == nil && columns.domain >= 0 {
		return readColumns(c, columns)
	}
	return readLines(data), nil
}

// columns are the places of what is read of a table; -1: it has none.
type columns struct{ domain, severity, comment int }

func columnsOf(head []string) columns {
	at := func(name string) int {
		return slices.IndexFunc(head, func(cell string) bool {
			return strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(cell), "#"), name)
		})
	}
	return columns{at("domain"), at("severity"), at("public_comment")}
}

func readColumns(c *csv.Reader, at columns) ([]Row, error) {
	var rows []Row
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "the list is malformed: "+err.Error(), err)
		}
		cell := func(i int) string {
			if i < 0 || i >= len(cells) {
				return ""
			}
			return strings.TrimSpace(cells[i])
		}
		if strings.HasPrefix(cell(0), "#") {
			continue
		}
		line, _ := c.FieldPos(0)
		row := newRow(line, cell(at.domain))
		if at.severity >= 0 {
			row.rateSeverity(strings.ToLower(cell(at.severity)))
		}
		row.Comment = oneLine(unquoteFormula(cell(at.comment)))
		rows = append(rows, row)
	}
}

func readLines(data []byte) []Row {
	var rows []Row
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		entry, note, _ := strings.Cut(line, "#")
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		row := newRow(n, entry)
		row.Comment = oneLine(note)
		rows = append(rows, row)
	}
	return rows
}

// The severities of Mastodon.
const (
	Suspend = "suspend"
	Silence = "silence"
	Noop    = "noop"
)

func newRow(line int, text string) Row {
	domain, err := ParseDomain(text)
	return Row{Line: line, Text: text, Domain: domain, Severity: Suspend, Err: err}
}

func (r *Row) rateSeverity(severity string) {
	r.Severity = severity
	if r.Err == nil && severity != Suspend && severity != Silence && severity != Noop {
		r.Domain, r.Err = "", fault.New(fault.Invalid, fmt.Sprintf("%.30q is no severity: suspend, silence or noop", severity))
	}
}

// oneLine makes one line of words, without what cannot be shown.
func oneLine(words string) string {
	return strings.Join(strings.FieldsFunc(words, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError }), " ")
}

// computed begin what a spreadsheet computes, or takes away: with a quote before them they are
// text.
const computed = "=+-@'"

func quoteFormula(text string) string {
	if text != "" && strings.ContainsRune(computed, rune(text[0])) {
		return "'" + text
	}
	return text
}

func unquoteFormula(cell string) string {
	if text, found := strings.CutPrefix(cell, "'"); found && quoteFormula(text) == cell {
		return text
	}
	return cell
}

// WriteBlocklist writes domains with their comments in Mastodon's format.
func WriteBlocklist(w io.Writer, rows []Row) error {
	c := csv.NewWriter(w)
	c.Write([]string{"#domain", "#severity", "#reject_media", "#reject_reports", "#public_comment", "#obfuscate"}) //nolint:errcheck // Error tells at the end
	for _, r := range rows {
		c.Write([]string{r.Domain, r.Severity, "true", "true", quoteFormula(r.Comment), "false"}) //nolint:errcheck // the same
	}
	c.Flush()
	return c.Error()
}
