package cmd

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lightweb/lightweb/engine/fault"
)

// exclusive refuses two flags that contradict each other.
func (a *app) exclusive(one, other string) error {
	if f := a.command.Flags(); f.Changed(one) && f.Changed(other) {
		return fault.New(fault.Usage, "--"+one+" and --"+other+" exclude each other").WithHint(a.command.CommandPath() + " --help")
	}
	return nil
}

// takesArgs returns the check for a command with these arguments. An argument with a name in
// brackets may be left out. The last argument may be given many times if its name ends in "…]".
// The check also refuses an argument or flag that no database can store.
func takesArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		hint := c.CommandPath() + " --help"
		for i, n := range names {
			if i >= len(args) && !strings.HasPrefix(n, "[") {
				return fault.New(fault.Usage, c.CommandPath()+" needs "+n).WithHint(hint)
			}
		}
		many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "…]")
		if len(args) > len(names) && !many {
			return fault.New(fault.Usage, fmt.Sprintf("%s does not take %.60q", c.CommandPath(), args[len(names)])).WithHint(hint)
		}
		return checkTexts(c, names, args)
	}
}

// checkTexts refuses an argument or a flag that PostgreSQL cannot store as text. It leaves out the
// names of files, because a file system takes any bytes.
func checkTexts(c *cobra.Command, names, args []string) error {
	for i, arg := range args {
		if isFileName(names[min(i, len(names)-1)]) {
			continue
		}
		if err := checkText(fmt.Sprintf("%.60q", arg), arg); err != nil {
			return err
		}
	}
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		if err == nil && !isFileName(name) {
			err = checkText("--"+f.Name, f.Value.String())
		}
	})
	return err
}

// isFileName reports whether the value with this name in help is the name of a file or folder.
func isFileName(name string) bool { return name == "FILE" || name == "DIR" || name == "FOLDER" }

// checkText refuses a value that is not UTF-8 or has a NUL character. The error says what has the
// value, because the value itself may be a secret.
func checkText(what, value string) error {
	switch {
	case !utf8.ValidString(value):
		return fault.New(fault.Usage, what+" has bytes that are not UTF-8").WithHint("write it in UTF-8")
	case strings.ContainsRune(value, 0):
		return fault.New(fault.Usage, what+" has a NUL character").WithHint("leave the character out")
	}
	return nil
}
