package server

import (
	"context"
	"hash/maphash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/policy"
)

// Cache-Control of answers.
const (
	cachePublic  = "public, max-age=60"
	cachePrivate = "private, no-store"
	cacheOwn     = "private, no-cache" // the client may store it, and must revalidate it before each use
)

// answer is a response that is being written, with the data that is counted and logged for it.
type answer struct {
	http.ResponseWriter
	id     string // the id of the request
	route  string // the path of the route as registered
	status int    // 0 if nothing is written yet
	asker  *asker // the sender of the request; nil if not identified yet

	server  *Server
	request *http.Request
	changes bool // the request changes something, although it is a GET

	held      *held // the part of the request's body that was read; nil if none was
	bodyEnded bool  // the request's body was read whole, or broke off
	bodyLimit int64 // the most bytes that the request's body may have; 0 if not known yet

	connection context.Context // ends when the client disconnects; unlike the request's context, it has no timeout
	streams    bool            // the response lasts until one side ends it, so its duration is not counted
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

// addVary names the headers of the request on which the response depends.
func (a *answer) addVary(headers ...string) {
	for _, h := range headers {
		a.Header().Add("Vary", h)
	}
}

// setCache says who may store a copy of the response.
func (a *answer) setCache(policy string) { a.Header().Set("Cache-Control", policy) }

// smallAnswer is the largest size, in bytes, of an answer that takes no room. Such answers need
// little memory, even those of all connections together.
const smallAnswer = 16 << 10

// takeRoom takes n bytes of the room for large answers that are being sent. The client's address
// pays. A client that reads slowly holds the room until giveBack. HEAD has no body, and takes none.
func (a *answer) takeRoom(n int64) (giveBack func(), err error) {
	if a.request.Method == http.MethodHead {
		return func() {}, nil
	}
	of, payer := a.server.answers, policy.NameAddress(a.server.clientOf(a.request))
	if !of.Take(payer, n) {
		return nil, errCrowded
	}
	return func() { of.Give(payer, n) }, nil
}

// send answers with a body. It refuses a large answer if there is no room for it, except after a
// request that may have changed something, because its client would not learn what was done.
func (a *answer) send(status int, contentType string, body []byte) {
	if len(body) > smallAnswer && a.request.Method == http.MethodGet && !a.changes {
		giveBack, err := a.takeRoom(int64(len(body)))
		if err != nil {
			a.setCache("no-store")
			a.server.refuse(a, a.request, err)
			return
		}
		defer giveBack()
	}
	h := a.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	a.WriteHeader(status)
	_, _ = a.Write(body) // a client that disconnected, or sent HEAD, gets no body
}

// sendTagged answers with a body and its ETag, or with 304 if the client has that body already
// (RFC 9110 §8.8.3). Tags are valid in this process only, because their hash has a random seed
// that no client knows. The answer to a request that changes something has no tag and is always
// sent, because the client cannot have a copy of it (RFC 9110 §13.1.2).
func (a *answer) sendTagged(r *http.Request, contentType string, body []byte) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		a.send(http.StatusOK, contentType, body)
		return
	}
	tag := `W/"` + strconv.FormatUint(maphash.Bytes(a.server.seed, body), 16) + `"`
	a.Header().Set("ETag", tag)
	if hasTag(r.Header.Values("If-None-Match"), tag) {
		a.WriteHeader(http.StatusNotModified)
		return
	}
	a.send(http.StatusOK, contentType, body)
}

// hasTag reports whether If-None-Match names the tag. It compares weakly (RFC 9110 §13.1.2).
func hasTag(lines []string, tag string) bool {
	return slices.ContainsFunc(splitList(lines), func(t string) bool {
		return t == "*" || strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/")
	})
}

// observeRequests gives each request an id and a deadline, and counts it.
func (s *Server) observeRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, id: uuid.NewString(), route: "none", server: s, request: r, connection: r.Context()}
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
				a.status = http.StatusOK // net/http answers 200 for a handler that writes nothing
			}
			s.metrics.requests.WithLabelValues(a.route, strconv.Itoa(a.status)).Inc()
			if !a.streams {
				s.metrics.seconds.WithLabelValues(a.route).Observe(time.Since(start).Seconds())
			}
		}()
		next.ServeHTTP(a, r.WithContext(ctx))
	})
}
