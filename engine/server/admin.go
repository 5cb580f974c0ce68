package server

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lightweb/lightweb/engine/fault"
)

// guardHost refuses requests whose Host is not an address of this machine. Without this check, a
// web page that somebody visits could point its own host name at this listener, and read what
// only the operator may read (DNS rebinding).
func (s *Server) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAddressed(r) {
			s.refuse(w.(*answer), r, fault.New(fault.Forbidden, "ask for this by the address it listens on"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isAddressed reports whether the request's Host is localhost, a loopback address, or the
// address at which the request arrived.
func isAddressed(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	asked, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return asked.IsLoopback() || local != nil && asked.Unmap() == local.AddrPort().Addr().Unmap()
}

// operator serves the operator's tools: metrics, profiles, health and readiness.
type operator struct {
	metrics    *prometheus.Registry
	ready      func(context.Context) error
	paused     bool
	eventsWait func() bool
}

func (s *operator) getMetrics() handle {
	h := promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{})
	return func(a *answer, r *http.Request, _ httprouter.Params) error {
		h.ServeHTTP(a, r)
		return nil
	}
}

// getProfile serves a profile of this process, or the list of its profiles. A profile of the
// processor and a trace accept the query ?seconds=, and net/http/pprof extends the write timeout
// of the response by that time.
func getProfile(a *answer, r *http.Request, p httprouter.Params) error {
	a.setCache("no-store")
	switch p.ByName("profile") {
	case "/cmdline": // the command line may hold secrets
		return errNothing
	case "/profile":
		pprof.Profile(a, r)
	case "/symbol":
		pprof.Symbol(a, r)
	case "/trace":
		pprof.Trace(a, r)
	default:
		pprof.Index(a, r)
	}
	return nil
}

// getHealth says that the process is running.
func (s *operator) getHealth(a *answer, _ *http.Request, _ httprouter.Params) error {
	a.setCache("no-store")
	a.send(http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	return nil
}

// readyTime limits the check for readiness, so that a request for it gets an answer within two
// seconds even if a dependency hangs.
const readyTime = 1500 * time.Millisecond

// getReady says whether requests can be served now.
func (s *operator) getReady(a *answer, r *http.Request, _ httprouter.Params) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, "the engine is not ready", err).WithCode("not_ready")
	}
	words := "ready"
	if s.paused {
		words += ", federation is paused"
	}
	if s.eventsWait() {
		words += ", Redis takes no events: they wait"
	}
	a.setCache("no-store")
	a.send(http.StatusOK, "text/plain; charset=utf-8", []byte(words+"\n"))
	return nil
}
