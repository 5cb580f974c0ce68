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

// guardHost refuses requests to a name that is not this machine's own address: a page somebody
// visits could otherwise make its own name lead here, and read what the operator may (DNS
// rebinding).
func (s *Server) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAddressed(r) {
			s.refuse(w.(*answer), r, fault.New(fault.Forbidden, "ask for this by the address it listens on"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isAddressed reports whether the request names localhost, a loopback address, or the address it
// arrived at.
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

// operator answers the operator's programs.
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

// getProfile answers with a profile of this process, or the list of what there is. A profile of
// the processor or a trace takes ?seconds=, which net/http/pprof adds to the time that an answer
// may take.
func getProfile(a *answer, r *http.Request, p httprouter.Params) error {
	a.setCache("no-store")
	switch p.ByName("profile") {
	case "/cmdline": // it may hold what only the process itself should know
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

// getHealth says that the process lives.
func (s *operator) getHealth(a *answer, _ *http.Request, _ httprouter.Params) error {
	a.setCache("no-store")
	a.send(http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	return nil
}

// readyTime is how long the engine may take to find out whether it is ready: who asks is answered
// within two seconds, whatever hangs.
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
		words += ", Redis does not answer: events wait"
	}
	a.setCache("no-store")
	a.send(http.StatusOK, "text/plain; charset=utf-8", []byte(words+"\n"))
	return nil
}
