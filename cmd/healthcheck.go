package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/fault"
)

// healthTimeout is how long a healthy engine may take to say so.
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
			return a.askHealth(ctx, target)
		}),
	}
}

// reachableAddress returns where to reach a listener from this machine: one on all addresses is on
// loopback too.
func reachableAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen // Validate has refused it
	}
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.IsUnspecified() {
		host = "127.0.0.1"
		if a.Is6() {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

func (a *app) askHealth(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fault.Wrap(fault.Usage, "that is not a URL", err)
	}
	// Our own engine is asked, so neither a proxy nor a redirect has a place here.
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
		line, _ := bufio.NewReader(io.LimitReader(resp.Body, 300)).ReadString('\n') // whatever was said; the status decides
		return fault.New(fault.Unavailable, fmt.Sprintf("%s answered %d: %s", target, resp.StatusCode, cleanLine(line)))
	}
	return a.out.writeDone("ready", map[string]any{"ready": true, "url": target})
}
