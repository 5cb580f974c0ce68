package cmd

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
	"golang.org/x/term"
)

// These colours are among the sixteen that every terminal has. The user of the terminal chooses
// their shades.
const (
	red    = lipgloss.Color("1")
	green  = lipgloss.Color("2")
	yellow = lipgloss.Color("3")
	cyan   = lipgloss.Color("6")
)

// printer writes results to one writer: formatted for people on a terminal, as plain lines into
// a pipe, or as JSON.
type printer struct {
	w           *outlet
	terminal    bool
	json, quiet bool
	renderer    *lipgloss.Renderer
}

func (a *app) printer(w io.Writer) *printer {
	r := lipgloss.NewRenderer(w) // heeds NO_COLOR and CLICOLOR_FORCE
	if a.noColor {
		r.SetColorProfile(termenv.Ascii)
	}
	return &printer{w: &outlet{Writer: w}, terminal: isTerminal(w), json: a.json, quiet: a.quiet, renderer: r}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *printer) style() lipgloss.Style { return p.renderer.NewStyle() }

// fact is one line of a result.
type fact struct {
	key, value string // the key is the same as in JSON
	note       string // follows the value on a terminal only
	titled     bool   // on a terminal, the title shows the fact, and no line does
}

// writeFacts writes the facts about one thing. For people and pipes it writes the parameter
// facts, and with --json it writes doc.
func (p *printer) writeFacts(title string, facts []fact, doc any) error {
	if p.quiet || p.json {
		return p.writeDocument(doc)
	}
	var b strings.Builder
	width := 0
	for _, f := range facts {
		if !f.titled {
			width = max(width, lipgloss.Width(f.key))
		}
	}
	if p.terminal {
		b.WriteString(title + "\n")
	}
	for _, f := range facts {
		switch {
		case !p.terminal:
			b.WriteString(f.key + ": " + cleanLine(f.value) + "\n")
		case !f.titled:
			label := f.key + strings.Repeat(" ", width-lipgloss.Width(f.key))
			b.WriteString("  " + p.style().Faint(true).Render(label) + "  " + cleanLine(f.value) + f.note + "\n")
		}
	}
	return p.writeText(b.String())
}

// writeTable writes a line for each row: in columns under a heading on a terminal, and separated
// by tabs without a heading in a pipe. With --json it writes doc.
func (p *printer) writeTable(heading []string, rows [][]string, doc any) error {
	if p.quiet || p.json {
		return p.writeDocument(doc)
	}
	var b strings.Builder
	if !p.terminal {
		for _, row := range rows {
			for i, cell := range row {
				if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(cleanLine(cell))
			}
			b.WriteByte('\n')
		}
		return p.writeText(b.String())
	}
	widths := make([]int, len(heading))
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], lipgloss.Width(cleanLine(cell)))
		}
	}
	line := func(row []string, render func(...string) string) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cleanLine(cell) + strings.Repeat(" ", widths[i]-lipgloss.Width(cleanLine(cell)))
		}
		b.WriteString(render(strings.TrimRight(strings.Join(cells, "  "), " ")) + "\n")
	}
	line(heading, p.style().Bold(true).Render)
	for _, row := range rows {
		line(row, p.style().Render)
	}
	return p.writeText(b.String())
}

// writeDone writes in words that something was done, or doc with --json.
func (p *printer) writeDone(words string, doc any) error {
	switch {
	case p.quiet || p.json:
		return p.writeDocument(doc)
	case p.terminal:
		words = p.tick() + " " + cleanLine(words)
	}
	return p.writeText(words + "\n")
}

func (p *printer) tick() string { return p.style().Foreground(green).Render("✓") }

// writeDocument writes doc as one JSON document, or nothing with --quiet.
func (p *printer) writeDocument(doc any) error {
	if p.quiet {
		return nil
	}
	e := json.NewEncoder(p.w)
	e.SetEscapeHTML(false)
	if p.terminal {
		e.SetIndent("", "  ")
	}
	return e.Encode(doc)
}

// writeLine writes doc as one JSON document on a line of its own, or nothing with --quiet.
func (p *printer) writeLine(doc any) error {
	if p.quiet {
		return nil
	}
	e := json.NewEncoder(p.w)
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

func (p *printer) writeText(s string) error {
	_, err := io.WriteString(p.w, s)
	return err
}

// cleanLine turns s into one line without control characters that a terminal would obey, because
// names come from other servers.
func cleanLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// cleanLines is cleanLine for each line of s.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = cleanLine(l)
	}
	return strings.Join(lines, "\n")
}

// errClosedPipe is the error of a write to a reader that has ended, such as head. It is no
// failure of the command.
var errClosedPipe = errors.New("standard output is closed")

// ignoreClosedPipe returns err, or nil if err says that the reader of standard output has ended.
func ignoreClosedPipe(err error) error {
	if errors.Is(err, errClosedPipe) {
		return nil
	}
	return err
}

// outlet is the writer of results. Once its reader has ended, it drops all text and reports
// success, so that the command goes on and its exit code tells how that went. If stops is true, it
// returns errClosedPipe instead: for a command that would write without end. Other errors get the
// exit code exitFailed.
type outlet struct {
	io.Writer
	stops    bool
	isClosed bool
}

func (o *outlet) Write(b []byte) (int, error) {
	if o.isClosed {
		return len(b), nil
	}
	n, err := o.Writer.Write(b)
	switch {
	case errors.Is(err, syscall.EPIPE) && o.stops:
		return n, errClosedPipe
	case errors.Is(err, syscall.EPIPE):
		o.isClosed = true
		return len(b), nil
	case err != nil:
		err = &exitError{exitFailed, err}
	}
	return n, err
}
