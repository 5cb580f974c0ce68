// Package cmd is the command line of lightweb. It reads flags, the environment and files, and
// writes text or JSON. The engine does the work.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
)

// Main runs the command that args name and returns the exit code of the process. The first
// SIGINT or SIGTERM cancels the context of the command. At the second signal, Main returns
// immediately, even if the command is still running. While an editor has the terminal, and until
// the next question, SIGINT is for the editor alone.
func Main(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	// Receiving SIGPIPE makes a write to a closed pipe fail instead of killing us. If we ignored
	// the signal instead, the database that we start would inherit that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)

	a := newApp(env, stdin, stdout, stderr)
	done := make(chan int, 1)
	go func() { done <- a.run(ctx, args) }()
	return a.awaitCode(done, signals, cancel)
}

// awaitCode returns the exit code of the command. If a second signal comes first, it returns
// exitFailed for a command that serves, and the exit code of that signal for another command.
func (a *app) awaitCode(done <-chan int, signals <-chan os.Signal, cancel context.CancelCauseFunc) int {
	for first := true; ; {
		select {
		case code := <-done:
			return code
		case s := <-signals:
			if s == syscall.SIGINT && a.editing.Load() {
				continue
			}
			stopped := &interrupted{s.(syscall.Signal)} // Notify was given only syscall signals
			switch {
			case first:
				cancel(stopped)
			case a.serving.Load():
				return exitFailed
			default:
				return stopped.exit()
			}
			first = false
		}
	}
}

// interrupted is the cause with which a signal cancels the command's context.
type interrupted struct{ signal syscall.Signal }

func (i *interrupted) Error() string { return "stopped by " + i.signal.String() }

// exit returns the exit code that shells use for a command that a signal ended.
func (i *interrupted) exit() int { return 128 + int(i.signal) }

// app is one run of the command line.
type app struct {
	env            environment
	stdin          io.Reader
	stdout, stderr io.Writer
	prompt         prompt
	out            *printer // writes the result; set when a command starts
	notices        *notices // set when a command starts

	configFile                    string
	json, quiet, verbose, noColor bool
	timeout                       time.Duration

	command *cobra.Command // the command that runs; nil until its flags and arguments are checked
	serving atomic.Bool    // the command runs until it is told to stop

	// An editor has the terminal, or had it last. A SIGINT that the terminal sent while the editor
	// ran may be received only after the editor has ended, so it counts again from the next
	// question on.
	editing atomic.Bool
}

func newApp(env []string, stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{env: env, stdin: stdin, stdout: stdout, stderr: stderr, prompt: prompt{in: stdin, out: stderr}}
}

// environment is the environment of the process, in the form name=value.
type environment []string

// find returns the last value of name, or "" if there is none.
func (env environment) find(name string) string {
	for _, e := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// run executes the command, reports its failure, and returns the exit code.
func (a *app) run(ctx context.Context, args []string) (code int) {
	// A failure before the flags are read is then written as JSON, too.
	a.json = slices.Contains(args, "--json")
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(a.stderr, "error: this is a bug: %v\n%s", p, debug.Stack())
			code = exitCodes[fault.Internal].exit
		}
	}()
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(&outlet{Writer: a.stdout})
	root.SetErr(a.stderr)
	return a.conclude(ctx, root.ExecuteContext(ctx))
}

// conclude reports err, with which the command ended, and returns the exit code.
func (a *app) conclude(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	if stopped, ok := errors.AsType[*interrupted](context.Cause(ctx)); ok {
		if a.serving.Load() && errors.Is(err, context.Canceled) {
			return 0
		}
		if !a.serving.Load() {
			err = &exitError{stopped.exit(), hintAtCopy(stopped, err)}
		}
	}
	// If a.command is nil, the error is cobra's, because no code of ours has run yet.
	if a.command == nil && fault.Of(err) == nil {
		err = fault.New(fault.Usage, err.Error())
	}
	return a.fail(err)
}

// action returns a function for cobra that prepares the run and then calls f.
func (a *app) action(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		a.command = c
		a.out, a.notices = a.printer(a.stdout), &notices{w: a.stderr, json: a.json, quiet: a.quiet}
		ctx := c.Context()
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		}
		err := f(ctx, args)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fault.Wrap(fault.Busy, fmt.Sprintf("the time of %s ran out", (*span)(&a.timeout)), err)
		}
		return err
	}
}

// admin runs f with the administrative tasks of the configured instance.
func (a *app) admin(ctx context.Context, f func(t *admin.Tasks) error) error {
	return a.instance(ctx, instance.Open, func(in *instance.Instance) error { return f(admin.New(in)) })
}

// opener opens an instance.
type opener func(context.Context, instance.Config, *slog.Logger) (*instance.Instance, error)

// instance opens the configured instance, runs f with it, and closes it.
func (a *app) instance(ctx context.Context, open opener, f func(in *instance.Instance) error) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	in, err := open(ctx, c.Engine, a.logger(c))
	if err != nil {
		return err
	}
	return errors.Join(f(in), closeInstance(ctx, in))
}

// closeTimeout limits the time in which an instance is closed. It is long because the private
// database server writes a checkpoint before it stops.
const closeTimeout = time.Minute

// closeInstance closes an instance, even if ctx has ended.
func closeInstance(ctx context.Context, in interface{ Close(context.Context) error }) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return in.Close(ctx)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "lightweb",
		Short: "An ActivityPub federation engine",
		Long: "lightweb is an ActivityPub federation engine with a PostgreSQL database per user.\n\n" +
			"The result of a command goes to standard output, everything else to standard error. With --json the result\n" +
			"is one JSON document, and an error is one too.",
		Example:           "  lightweb user create alice\n  lightweb serve --domain example.org",
		Version:           build().Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		// An unknown command then reaches RunE, which refuses it in our words.
		Args: cobra.ArbitraryArgs,
		RunE: subcommand,
	}
	root.SetVersionTemplate("lightweb {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fault.New(fault.Usage, err.Error()).WithHint(c.CommandPath() + " --help")
	})
	f := root.PersistentFlags()
	f.SortFlags = false
	f.Var(newFlagText(&a.configFile, "FILE"), "config", "read the settings from FILE")
	addSettingFlags(f, "")
	f.BoolVar(&a.json, "json", a.json, "write the result as one JSON document")
	f.Lookup("json").DefValue = "false"
	f.BoolVarP(&a.quiet, "quiet", "q", false, "write nothing on success")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log everything, and show what caused an error")
	f.BoolVar(&a.noColor, "no-color", false, "write without colours, as NO_COLOR does")
	f.Var((*span)(&a.timeout), "timeout", "give up after DURATION, with exit code 75")
	f.Lookup("timeout").DefValue = ""
	root.AddCommand(newServe(a), newUser(a), newActor(a), newActivity(a), newDomain(a), newDeliver(a), newHost(a), newRelay(a), newSig(a), newInbox(a), newConversation(a), newKeyPackage(a), newStream(a), newCache(a), newReport(a), newDB(a), newPrune(a), newBackup(a), newRestore(a), newConfig(a), newHealthcheck(a), newBench(a), newVersion(a), newMan(a))
	root.SetHelpCommand(newHelp(a))
	finishCommand(root)
	return root
}

// finishCommand gives c and its subcommands the properties that all commands have.
func finishCommand(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.DisableFlagsInUseLine = true
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		finishCommand(sub)
	}
}

// newGroup returns a command that only holds subcommands.
func newGroup(use, short, long string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs, RunE: subcommand}
	c.AddCommand(subs...)
	return c
}

// subcommand runs when a command that needs a subcommand got none or an unknown one. For
// "lightweb" without arguments it prints help. Otherwise it returns an error, where cobra would
// print help and exit with 0.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		if !c.HasParent() {
			return c.Help()
		}
		return fault.New(fault.Usage, c.CommandPath()+" needs a subcommand").WithHint(c.CommandPath() + " --help")
	}
	err := fault.New(fault.Usage, fmt.Sprintf("unknown command %.40q for %s", args[0], c.CommandPath()))
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := registry.Nearest(args[0], names); near != "" {
		return err.WithHint("did you mean '" + c.CommandPath() + " " + near + "'?")
	}
	return err.WithHint(c.CommandPath() + " --help")
}
