package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Cache-Control of answers.
const (
	cachePublic  = "public, max-age=60"
	cachePrivate = "private, no-store"
	cacheOwn     = "private, no-cache" // the client may keep it, and must ask whether it still holds
)

// answer is a response under way, with what is counted and logged of it.
type answer struct {
	http.ResponseWriter
	id     string // of the request
	route  string // as registered
	status int    // 0: nothing is written yet
	asker  *asker // nil: not found out yet
	held   *held  // the body of the request, as far as it was read; nil: not at all

	connection context.Context // ends when the client goes away, and with no time for one request
	streams    bool            // it lasts until one side ends it: how long says nothing
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// addVary says on which headers of the request the answer depends.
func (a *answer) addVary(headers ...string) {
	for _, h := range headers {
		a.Header().Add("Vary", h)
	}
}

// setCache says who may keep a copy.
func (a *answer) setCache(policy string) { a.Header().Set("Cache-Control", policy) }

// send answers with a body.
func (a *answer) send(status int, contentType string, body []byte) {
	h := a.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	a.WriteHeader(status)
	_, _ = a.Write(body) // who has gone away, or asked with HEAD, takes none
}

// tagged is a body with its ETag.
type tagged struct {
	body []byte
	tag  string
}

func tag(body []byte) tagged {
	sum := sha256.Sum256(body)
	return tagged{body, `W/"` + hex.EncodeToString(sum[:12]) + `"`}
}

// sendTagged answers with a body that the client may have already (RFC 9110 §8.8.3): then with 304.
func (a *answer) sendTagged(r *http.Request, contentType string, body []byte) {
	a.sendAs(r, contentType, tag(body))
}

func (a *answer) sendAs(r *http.Request, contentType string, t tagged) {
	a.Header().Set("ETag", t.tag)
	if hasTag(r.Header.Values("If-None-Match"), t.tag) {
		a.WriteHeader(http.StatusNotModified)
		return
	}
	a.send(http.StatusOK, contentType, t.body)
}

// hasTag compares weakly (RFC 9110 §13.1.2).
func hasTag(lines []string, tag string) bool {
	return slices.ContainsFunc(splitList(lines), func(t string) bool {
		return t == "*" || strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/")
	})
}

// observeRequests gives each request an id and a time to be answered in, and counts it.
func (s *Server) observeRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, id: uuid.NewString(), route: "none", connection: r.Context()}
		a.Header().Set("X-Request-Id", a.id)
		a.Header().Set("X-Content-Type-Options", "nosniff")
		ctx, cancel := context.WithTimeout(r.Context(), handleTime)
		defer cancel()
		start := time.Now()
		defer func() {
			if a.held != nil {
				a.held.close()
			}
			if a.status == 0 {
				a.status = http.StatusOK // what net/http answers for a handler that said nothing
			}
			s.metrics.requests.WithLabelValues(a.route, strconv.Itoa(a.status)).Inc()
			if !a.streams {
				s.metrics.seconds.WithLabelValues(a.route).Observe(time.Since(start).Seconds())
			}
		}()
		next.ServeHTTP(a, r.WithContext(ctx))
	})
}
