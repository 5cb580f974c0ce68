package cmd

import (
	"fmt"
	"io"

	"github.com/lightweb/lightweb/engine/admin"
)

// notices writes messages for people to standard error, beside the result.
type notices struct {
	w           io.Writer
	json, quiet bool
}

// warnTies warns how many local users are acquainted with somebody in the blocked domains, and
// how many may follow somebody there.
func (n *notices) warnTies(t admin.Ties) {
	if t.Users > 0 {
		n.warn("users here who know somebody there: %d; who may follow somebody there: %d", t.Users, t.Following)
	}
}

// warn writes a warning for people. With --json it writes nothing, because the JSON tells programs
// the same.
func (n *notices) warn(format string, args ...any) {
	if !n.quiet && !n.json {
		fmt.Fprintf(n.w, "warning: %s\n", cleanLine(fmt.Sprintf(format, args...)))
	}
}
