package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine"
	"github.com/lightweb/lightweb/engine/fault"
)

func newServe(a *app) *cobra.Command {
	var demo, once bool
	var packages string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the engine",
		Long: "serve answers other servers and clients, and delivers, until SIGINT or SIGTERM. It then finishes\n" +
			"the work under way, for at most the time of --drain. A second signal ends it at once, with exit\n" +
			"code 1.\n\n" +
			"--demo runs two engines in a temporary folder that federate over loopback. It tells what\n" +
			"happens, and keeps serving with an example client for a browser. With --once it ends after that,\n" +
			"with exit code 1 if anything went wrong. Encrypted chats of the client need ts-mls, in the\n" +
			"folder that --ts-mls names.",
		Example: "  lightweb serve --domain example.org\n  lightweb serve --demo --once\n  lightweb serve --demo --ts-mls \"$(docs/examples/client/install)\"",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			switch {
			case a.timeout > 0:
				return fault.New(fault.Usage, "serve runs until it is told to stop: --timeout does not apply").WithHint("set how long stopping may take with --drain")
			case once && !demo:
				return fault.New(fault.Usage, "--once needs --demo")
			case packages != "" && !demo:
				return fault.New(fault.Usage, "--ts-mls needs --demo")
			case demo:
				return a.runDemo(ctx, engine.Demonstration{Packages: packages, Once: once})
			}
			return a.runServe(ctx)
		}),
	}
	addSettingFlags(c.Flags(), "serve")
	c.Flags().BoolVar(&demo, "demo", false, "show two engines that federate, on loopback")
	c.Flags().StringVar(&packages, "ts-mls", "", "with --demo: the `FOLDER` whose node_modules has ts-mls 1.6.4, for encrypted chats in the client")
	c.Flags().BoolVar(&once, "once", false, "with --demo: end when it is shown")
	return c
}

func (a *app) runServe(ctx context.Context) error {
	a.serving.Store(true)
	c, err := a.config()
	if err != nil {
		return err
	}
	log := a.logger(c)
	systemd := newNotifier(a.env.find, os.Getpid())
	tell := func(state string) {
		if err := systemd.sendState(state); err != nil {
			log.Warn("service manager not reached", "err", err)
		}
	}
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	// The watchdog gets beats until the draining has ended, so that it does not cut the draining
	// short.
	defer stopWatching()
	defer heedHangups(log)()
	go systemd.feedWatchdog(watching)
	go paceCollections(watching, a.env)

	e, err := engine.Open(ctx, c.Engine, log)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { tell("STOPPING=1") })()
	err = e.Serve(ctx, func(s engine.Serving) {
		tell("READY=1\nSTATUS=serving " + s.PublicURL)
		a.announceReady(s, log)
	})
	return errors.Join(err, closeInstance(ctx, e))
}

// heedHangups answers SIGHUP with a line in the log, until the function that it returns is
// called. Some operators send SIGHUP to make a server read its configuration again. This server
// needs no signal to read the files that may change while it runs.
func heedHangups(log *slog.Logger) func() {
	hangups, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangups:
				log.Info("nothing to be read again", "hint", "policy, profiles and the certificate are followed as they change; settings need a restart")
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(over)
	}
}

// announceReady announces that the server answers requests: in a few lines on a terminal, and in
// one line of the log elsewhere.
func (a *app) announceReady(s engine.Serving, log *slog.Logger) {
	if !a.out.terminal || a.quiet {
		log.Info("ready", "version", s.Version, "public_url", s.PublicURL, "listen", s.Listen, "admin_listen", s.AdminListen,
			"mode", s.Mode, "database", s.Database, "redis", s.Redis, "users", s.Users, "startup_ms", s.Startup.Milliseconds())
		return
	}
	bold, faint := a.out.style().Bold(true), a.out.style().Faint(true)
	users := fmt.Sprint(s.Users)
	if s.Users == 0 {
		users = "0 — make one: lightweb user create alice"
	}
	banner := fmt.Sprintf("%s  ·  %s  ·  %s mode\n", bold.Render("Lightweb "+s.Version), s.PublicURL, s.Mode) +
		fmt.Sprintf("  %s      %s (%s; %s)\n", faint.Render("data"), s.DataDir, s.Database, s.Redis) +
		fmt.Sprintf("  %s http://%s   admin http://%s\n", faint.Render("listening"), s.Listen, s.AdminListen) +
		fmt.Sprintf("  %s     %s\n", faint.Render("users"), users) +
		fmt.Sprintf("ready in %.1f s   %s\n", s.Startup.Seconds(), faint.Render("Ctrl-C stops it"))
	if err := a.out.writeText(banner); err != nil {
		log.Warn("banner not written", "err", err)
	}
}

// runDemo runs the demonstration in a temporary folder and removes the folder at the end.
func (a *app) runDemo(ctx context.Context, d engine.Demonstration) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	log := a.logger(c) // made before serving is set, so that only warnings appear between the lines of the story
	a.serving.Store(!d.Once)
	d.Dir, err = os.MkdirTemp("", "lightweb-demo-")
	if err != nil {
		return fault.Wrap(fault.Conflict, "cannot make a temporary folder: "+reason(err), err)
	}
	// If we are root, the private database runs as another user, which must reach its folder.
	err = os.Chmod(d.Dir, 0o711)
	a.out.w.stops = true
	var story io.Writer = a.out.w
	if a.quiet {
		story = io.Discard
	}
	d.Version = c.Engine.Version
	if err == nil {
		err = ignoreClosedPipe(engine.Demo(ctx, d, story, log))
	}
	if err != nil && fault.KindOf(err) == fault.Internal && !errors.Is(err, context.Canceled) {
		err = &exitError{exitFailed, fmt.Errorf("show the demonstration: %w", err)}
	}
	return errors.Join(err, os.RemoveAll(d.Dir))
}
