package server

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
)

// requireLegible refuses an address whose path or query has NUL or invalid UTF-8, escaped or
// not. No SQL statement and no document can have them, so otherwise each handler would have to
// refuse them.
func (s *Server) requireLegible(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isText(r.URL.Path) || !isLegible(r.URL.RawQuery) {
			s.refuse(w.(*answer), r, fault.New(fault.Invalid, "the address holds NUL, or bytes that are no UTF-8").WithCode("bad_address"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLegible reports whether every name and value of a query is text.
func isLegible(query string) bool {
	for part := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == '=' }) {
		text, err := url.QueryUnescape(part)
		if err != nil || !isText(text) {
			return false
		}
	}
	return true
}

// isText reports whether PostgreSQL can store s as text, that is, whether s is UTF-8 without
// NUL. Half of a surrogate pair is not UTF-8 (RFC 3629 §3).
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
