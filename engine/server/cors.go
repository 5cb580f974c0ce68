package server

import (
	"net/http"
	"slices"
	"strings"
)

// Methods and header fields that pages of an allowed origin may use, beyond those that every
// page may use (Fetch standard §3.3).
const (
	corsMethods = "GET, HEAD, POST, PUT, DELETE"
	corsSends   = "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Lightweb-Caused-By"
	corsReads   = "ETag, Idempotent-Replayed, Lightweb-Version, Link, Location, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id"
	corsSeconds = "600" // how long a browser may store these headers
)

// allowOrigins lets pages of the origins that the operator configured use the client API. Such
// pages must send a token of their own, because this server never allows browsers to send
// credentials such as cookies.
func (s *Server) allowOrigins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(s.CORSOrigins) == 0 || !strings.HasPrefix(r.URL.Path, apiPrefix) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if !slices.Contains(s.CORSOrigins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method != http.MethodOptions {
			h.Set("Access-Control-Expose-Headers", corsReads)
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", corsMethods)
		h.Set("Access-Control-Allow-Headers", corsSends)
		h.Set("Access-Control-Max-Age", corsSeconds)
		w.WriteHeader(http.StatusNoContent)
	})
}
