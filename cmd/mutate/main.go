// Command mutate measures how many mistakes the tests notice. It makes one small mistake after
// another in the most important packages, runs only the tests of the package with the mistake, and
// counts the mistakes that a test notices. `make mutate` runs it.
//
// It never writes to the source tree, because a mutant reaches the compiler as an overlay. A round
// that is killed leaves behind only a temporary folder. A seed determines the drawn places, so
// that a round can be repeated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

// least is the share of mutants, in percent, that the tests must kill.
const least = 85

// packages are the packages that a round uses unless others are named.
var packages = []string{"engine/audience", "engine/signature", "engine/actor", "engine/outbox", "engine/delivery",
	"engine/server", "engine/handler", "engine/inbox", "db/user"}

// options are the settings of a round.
type options struct {
	packages []string
	seed     uint64
	count    int    // mutants in each package
	at       string // file:line or file:line:column; empty: the places are drawn
	timeout  time.Duration
	json     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if err == nil {
		err = playRound(ctx, o, os.Stdout)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintf(stderr, "usage: mutate [flags] [package]...\n\nWithout packages: %s\n\n", strings.Join(packages, " "))
		f.PrintDefaults()
	}
	f.Uint64Var(&o.seed, "seed", 20261124, "draws the places")
	f.IntVar(&o.count, "n", 7, "mutants in each package, those that do not compile not counted")
	f.StringVar(&o.at, "at", "", "play every mutant at this place, file:line or file:line:column, and draw none")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "for the tests of one mutant; one that takes longer is killed")
	f.BoolVar(&o.json, "json", false, "print the round as JSON, and its progress to standard error")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.packages = f.Args()
	if len(o.packages) == 0 {
		o.packages = packages
	}
	if o.at != "" && f.NArg() == 0 {
		o.packages = []string{packageOf(o.at)}
	}
	return o, nil
}

// playRound plays a round and prints its result. It returns an error if the share of killed
// mutants is smaller than the constant least.
func playRound(ctx context.Context, o options, stdout io.Writer) (err error) {
	progress := stdout
	if o.json {
		progress = os.Stderr
	}
	j, err := newJudge(ctx, o.timeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	fmt.Fprintf(progress, "seed %d\n", o.seed)
	r := round{Seed: o.seed}
	for _, name := range o.packages {
		if err := playPackage(ctx, o, j, name, &r, progress); err != nil {
			return err
		}
	}
	if err := r.print(stdout, o.json); err != nil {
		return err
	}
	if share := r.share(); share < least {
		return fmt.Errorf("the tests killed %d %% of the mutants, want at least %d %%", share, least)
	}
	return nil
}

// playPackage plays the mutants of one package until o.count have compiled, or none is left.
func playPackage(ctx context.Context, o options, j *judge, name string, r *round, progress io.Writer) error {
	p, err := readPackage(j.root, name)
	if err != nil {
		return err
	}
	places := p.mutants()
	fmt.Fprintf(progress, "%s: %d places\n", name, len(places))
	drawn, most := drawMutants(places, o.seed, name), o.count
	if o.at != "" {
		drawn, most = mutantsAt(places, o.at), len(places)
	}
	for compiled := 0; len(drawn) > 0 && compiled < most; drawn = drawn[1:] {
		v, err := j.judgeMutant(ctx, p, drawn[0])
		if err != nil {
			return err
		}
		fmt.Fprintln(progress, v)
		if v.Outcome != uncompiled {
			compiled++
			r.Verdicts = append(r.Verdicts, v)
		}
	}
	return nil
}
