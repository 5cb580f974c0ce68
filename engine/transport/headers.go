package transport

import (
	"net/http"
	"strings"
)

const (
	maxHeaders     = 1 << 10 // bytes of all stored fields of an answer
	maxHeaderValue = 200     // bytes of one value
)

// kept are the header fields of an answer that help to explain it, the most useful first. Only
// these are stored or shown, so no cookie, token or unknown field is ever stored or shown.
var kept = []string{"Content-Type", "Server", "Via", "Www-Authenticate", "Accept-Signature", "Retry-After", "Allow",
	"X-Request-Id", "Cf-Ray", "Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Date"}

// keptHeaders returns the fields of an answer that are stored, one per line.
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
