package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/fault"
)

// healthTimeout limits how long the engine may take to answer. A slower engine is not healthy.
const healthTimeout = 3 * time.Second

func newHealthcheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck [URL|auto]",
		Short: "Tell whether the engine is ready",
		Long: "healthcheck asks the running engine whether it is ready to answer, and gives it 3 seconds. Without URL, or with auto,\n" +
			"it asks /readyz on the admin listener of the configuration. Exit code 0: ready; 69: not.",
		Example: "  lightweb healthcheck\n  lightweb healthcheck http://127.0.0.1:9090/readyz",
		Args:    takesArgs("[URL|auto]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			var target string
			if len(args) == 1 && args[0] != "auto" {
				u, err := url.Parse(args[0])
				if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
					return fault.New(fault.Usage, fmt.Sprintf("%.100q is not the URL of a health check", args[0])).WithHint("write http://127.0.0.1:9090/readyz, or auto")
				}
				target = args[0]
			} else {
				c, err := a.config()
				if err != nil {
					return err
				}
				target = "http://" + reachableAddress(c.Engine.AdminListen) + "/readyz"
			}
			if err := askHealth(ctx, target); err != nil {
				return err
			}
			return a.out.writeDone("ready", map[string]any{"ready": true, "url": target})
		}),
	}
}

// reachableAddress returns the IP address and port at which this machine reaches a listener. For a
// listener on all addresses, that is a loopback address. The listener answers no request that names
// it otherwise.
func reachableAddress(listen string) string {
	at, err := net.ResolveTCPAddr("tcp", listen) // as the listener did
	switch {
	case err != nil:
		return listen // the request fails, and says why
	case at.IP == nil, at.IP.Equal(net.IPv4zero):
		at.IP = net.IPv4(127, 0, 0, 1)
	case at.IP.IsUnspecified():
		at.IP = net.IPv6loopback
	}
	return at.String()
}

// askHealth asks an engine whether it is ready, and fails when it is not.
func askHealth(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fault.Wrap(fault.Usage, "that is not a URL", err)
	}
	// The target is our own engine, so this uses no proxy and follows no redirect.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		why := err.Error()
		if u, ok := errors.AsType[*url.Error](err); ok {
			why = u.Err.Error()
		}
		return fault.Wrap(fault.Unavailable, "the engine does not answer at "+target+": "+why, err).WithHint("lightweb serve")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// An error is ignored, because the status decides.
		line, _ := bufio.NewReader(io.LimitReader(resp.Body, 300)).ReadString('\n')
		return fault.New(fault.Unavailable, fmt.Sprintf("%s answered %d: %s", target, resp.StatusCode, cleanLine(line)))
	}
	return nil
}
