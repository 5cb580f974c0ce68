package transport

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Question is a request to another server that runs this software. The answer is returned even if
// its status is an error.
type Question struct {
	Method         string // GET or POST
	URL            vocab.ID
	Body           []byte
	As             Keys
	Ed25519        bool // the peer advertises that it accepts Ed25519 signatures, so the Ed25519 key is used
	IdempotencyKey string
	Limit          int64 // the greatest size of the decompressed answer in bytes; 1 MiB when zero
}

// Reply is the answer to a Question, in JSON.
type Reply struct {
	Status     int
	Body       []byte
	RetryAfter time.Duration // the wait that the peer asked for, at most 24 h
	Replayed   bool          // the peer repeated its answer to an earlier request with the same IdempotencyKey
}

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

// Ask sends a question. It follows no redirect. If the answer is 401, Ask signs the question in
// the other way (see knock) and sends it once more. An error means that there was no answer, that
// the answer could not be read, or that it was not JSON. The body of an answer with the status
// 401, 410 or 5xx is not read, so it need not be JSON.
func (c *Client) Ask(ctx context.Context, q Question) (*Reply, error) {
	if err := c.checkContact(ctx); err != nil {
		return nil, err
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	x := c.newContact(q.Method, q.URL, &q.As, q.Ed25519, http.Header{"Accept": {mediaJSON + ", " + vocab.ActivityJSON}, "Accept-Encoding": {"gzip"}})
	if x.body = q.Body; q.Body != nil {
		x.header.Set("Content-Type", mediaJSON)
	}
	if q.IdempotencyKey != "" {
		x.header.Set("Idempotency-Key", q.IdempotencyKey)
	}
	x.moveTo(ctx, q.URL)
	if q.URL != x.at { // x.at is q.URL without its fragment
		return nil, fault.New(fault.Invalid, "the address has a fragment")
	}
	within, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	r, err := x.askOnce(within, q.Limit)
	if err == nil && r.Status == http.StatusUnauthorized && x.knockAgain(r.Status, false) {
		r, err = x.askOnce(within, q.Limit)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", q.URL, err)
	}
	if r.Status/100 == 2 {
		x.rememberDialect(ctx)
	}
	return r, nil
}

func (x *contact) askOnce(ctx context.Context, limit int64) (*Reply, error) {
	r := &Reply{}
	err := x.sendRequest(ctx, func(answer *http.Response) (err error) {
		r.Status, r.Replayed = answer.StatusCode, answer.Header.Get("Idempotent-Replayed") == "true"
		r.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), x.cfg.Now())
		if r.Status == http.StatusUnauthorized || r.Status == http.StatusGone || r.Status >= http.StatusInternalServerError {
			discardBody(answer.Body)
			return nil
		}
		kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
		if err != nil || kind != mediaJSON && kind != mediaProblem && kind != vocab.ActivityJSON {
			discardBody(answer.Body)
			return fault.Wrap(fault.Protocol, "the peer's answer is not JSON", fmt.Errorf("status %d, media type %.60q", r.Status, answer.Header.Get("Content-Type")))
		}
		r.Body, err = readBody(ctx, answer, limit)
		return err
	})
	return r, err
}
