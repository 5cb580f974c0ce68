package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// round has the verdicts on all mutants that compiled.
type round struct {
	Seed     uint64    `json:"seed"`
	Verdicts []verdict `json:"mutants"`
}

// share returns the percentage of mutants that were killed.
func (r *round) share() int {
	if len(r.Verdicts) == 0 {
		return 0
	}
	return 100 * (len(r.Verdicts) - len(r.survivors(""))) / len(r.Verdicts)
}

// survivors returns the verdicts on the mutants of a package that no test noticed. If name is
// empty, it returns those of all packages.
func (r *round) survivors(name string) []verdict {
	var alive []verdict
	for _, v := range r.Verdicts {
		if v.Outcome == survived && (name == "" || v.Package == name) {
			alive = append(alive, v)
		}
	}
	return alive
}

func (r *round) print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	of := map[string]int{}
	var names []string
	for _, v := range r.Verdicts {
		if of[v.Package]++; of[v.Package] == 1 {
			names = append(names, v.Package)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\npackage\tmutants\tkilled\tsurvived")
	for _, name := range names {
		alive := len(r.survivors(name))
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", name, of[name], of[name]-alive, alive)
	}
	alive := len(r.survivors(""))
	fmt.Fprintf(t, "all\t%d\t%d\t%d\n", len(r.Verdicts), len(r.Verdicts)-alive, alive)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, v := range r.survivors("") {
		fmt.Fprintln(w, v)
	}
	_, err := fmt.Fprintf(w, "%d %% killed\n", r.share())
	return err
}

// String returns the verdict in one line.
func (v verdict) String() string {
	to := shortenText(v.To)
	if v.To == "" {
		to = "nothing"
	}
	line := fmt.Sprintf("%-16s %s %s: %s => %s (%.0f s)", v.Outcome, v.Place, v.Operator, shortenText(v.From), to, v.Seconds)
	if v.Test != "" {
		line += " " + v.Test
	}
	return line
}

// shortenText returns a text as one short line.
func shortenText(text string) string {
	const most = 70
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}
