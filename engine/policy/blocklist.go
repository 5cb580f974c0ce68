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

// Bounds of a list of domains from another party.
const (
	MaxBlocklist      = 64 << 20 // bytes
	MaxBlocklistLines = 1_000_000
)

// Row is a line of a list of domains.
type Row struct {
	Line     int // its number in the file; the first line is 1
	Text     string
	Domain   string // as ParseDomain returns it; empty when the line is invalid
	Severity string // suspend, silence or noop
	Comment  string // one line
	Err      error  // why the line is invalid
}

// ErrObfuscated is the error for a domain with asterisks. The asterisks hide a part of the
// domain, or make the domain stand for several domains.
var ErrObfuscated = fault.New(fault.Invalid, "a part of the domain is hidden")

// ParseDomain returns a domain in the form that lists have: in lower case, with A-labels,
// without a port. It also accepts an IP address, and returns it in brackets if it has colons.
// The fault is Invalid for any other text. It is Invalid, too, for a public suffix such as co.uk,
// because such an entry would match a whole country.
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

// ReadBlocklist reads a list of domains. The list is either in Mastodon's format, whose first
// line names the columns, or it has one domain on each line, and notes after #. Invalid lines are
// returned with the reason in Err. The fault is TooLarge if the list exceeds MaxBlocklist or
// MaxBlocklistLines, and Invalid if the data is not such a list. In both cases no row is
// returned.
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

// columns are the indexes of the columns that are read; -1 for a column that the table lacks.
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

// oneLine returns a text as one line, without control characters and without characters that are
// not valid UTF-8.
func oneLine(words string) string {
	return strings.Join(strings.FieldsFunc(words, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError }), " ")
}

// computed are the characters with which a formula begins in a spreadsheet, and the quote, which a
// spreadsheet removes from the start of a cell. A cell that begins with one of these characters is
// written with a quote in front, so that the spreadsheet reads the cell as text.
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
	c.Write([]string{"#domain", "#severity", "#reject_media", "#reject_reports", "#public_comment", "#obfuscate"}) //nolint:errcheck // c.Error returns the error at the end
	for _, r := range rows {
		c.Write([]string{r.Domain, r.Severity, "true", "true", quoteFormula(r.Comment), "false"}) //nolint:errcheck // c.Error returns the error at the end
	}
	c.Flush()
	return c.Error()
}
