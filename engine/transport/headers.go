package transport

import (
	"net/http"
	"strings"
)

const (
	maxHeaders     = 1 << 10 // bytes of all that is kept
	maxHeaderValue = 200     // bytes of one value
)

// kept are the header fields of an answer that help to explain it, the most telling first. The
// list is closed: no cookie, token or field invented tomorrow is stored or shown.
var kept = []string{"Content-Type", "Server", "Via", "Www-Authenticate", "Accept-Signature", "Retry-After", "Allow",
	"X-Request-Id", "Cf-Ray", "Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Date"}

// keptHeaders returns the fields of an answer that are kept, a line each.
func keptHeaders(h http.Header) string {
	var b strings.Builder
	for _, name := range kept {
		for _, value := range h[name] {
			value = value[:min(len(value), maxHeaderValue)]
			if b.Len()+len(name)+len(value)+len(": \n") > maxHeaders {
				return b.String()
			}
			b.WriteString(name + ": " + value + "\n")
		}
	}
	return b.String()
}
