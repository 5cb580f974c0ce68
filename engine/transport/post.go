package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/lightweb/lightweb/engine/holding"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxExcerpt    = 1 << 10
	maxRetryAfter = 24 * time.Hour
)

// Post is an activity to deliver to an inbox.
type Post struct {
	Inbox          vocab.ID
	Body           []byte
	As             Keys
	Ed25519        bool // the peer advertises that it takes Ed25519 signatures: use that key
	IdempotencyKey string

	Synchronization string // what the signed field Collection-Synchronization says (FEP-8fcf); empty: it is left out
}

// Attempt is what became of a Post.
type Attempt struct {
	Status     int               // of the answer that counts; zero when there was none
	RetryAfter time.Duration     // what the peer asked for, at most 24 h
	Location   string            // where a redirect that was not followed leads; of what was made, in an answer that says so
	Headers    string            // of the answer, up to 1 KiB: a line for each field that is kept
	Excerpt    []byte            // of the answer, up to 1 KiB; nil when it is empty
	Dialect    signature.Dialect // of the signature that was so answered
	Took       time.Duration     // from the beginning of the first request
	BytesOut   int64             // bodies of the requests that were answered
	BytesIn    int64             // what was read of the answers' bodies
}

// Post delivers p.Body. It follows one redirect that keeps the method and stays on the host (307, 308),
// no other. An error means that the last request had no answer; an answer of whatever status is in
// the Attempt.
func (c *Client) Post(ctx context.Context, p Post) (Attempt, error) {
	if err := holding.Check(ctx, "the network"); err != nil {
		return Attempt{}, err
	}
	if c.cfg.Paused {
		return Attempt{}, ErrPaused
	}
	start := c.cfg.Now()
	within, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	x := c.newContact(http.MethodPost, p.Inbox, &p.As, p.Ed25519, http.Header{
		"Content-Type":    {vocab.MediaType},
		"Accept-Encoding": {"identity"}, // the excerpt is for people
	})
	x.body = p.Body
	if p.IdempotencyKey != "" {
		x.header.Set("Idempotency-Key", p.IdempotencyKey)
	}
	if p.Synchronization != "" {
		x.header.Set("Collection-Synchronization", p.Synchronization)
	}
	var a Attempt
	err := x.post(within, p.Inbox, &a)
	a.Took = c.cfg.Now().Sub(start)
	if err != nil {
		return a, fmt.Errorf("post to %s: %w", p.Inbox, err)
	}
	if a.Status/100 == 2 {
		x.took(ctx)
	}
	return a, nil
}

// post knocks until the second knock. What a host says of a signature that it is not known to read
// does not hide why it refused one that it reads.
func (x *contact) post(ctx context.Context, inbox vocab.ID, a *Attempt) error {
	x.visit(ctx, inbox)
	var reason Attempt
	for moved := false; ; {
		*a = Attempt{Dialect: x.knock.dialect, BytesOut: a.BytesOut, BytesIn: a.BytesIn}
		var next vocab.ID
		err := x.ask(ctx, func(answer *http.Response) error {
			next = x.result(answer, a)
			return nil
		})
		if err != nil {
			return err
		}
		if next != "" && !moved {
			moved, x.at = true, next
			continue
		}
		known := x.knock.dialect == x.known
		if x.again(a.Status, false) {
			if known {
				reason = *a
			}
			continue
		}
		if reason.Status != 0 && refused(a.Status) {
			reason.BytesOut, reason.BytesIn = a.BytesOut, a.BytesIn
			*a = reason
		}
		return nil
	}
}

// result fills a from the answer, and returns where the same request should be sent instead, if
// anywhere.
func (x *contact) result(answer *http.Response, a *Attempt) (next vocab.ID) {
	a.Status = answer.StatusCode
	a.BytesOut += int64(len(x.body))
	a.Headers = keptHeaders(answer.Header)
	a.Excerpt = excerpt(answer)
	a.BytesIn += int64(len(a.Excerpt)) + drain(answer.Body)
	if a.Status/100 == 2 {
		if made, err := x.location(answer); err == nil {
			a.Location = string(made)
		}
		return ""
	}
	a.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), x.cfg.Now())
	if !redirected(a.Status) {
		return ""
	}
	to, err := x.location(answer)
	if err != nil {
		return "" // the status says that it moved; where to is no use
	}
	a.Location = string(to)
	if keeps := a.Status == http.StatusTemporaryRedirect || a.Status == http.StatusPermanentRedirect; keeps && to.Host() == x.at.Host() {
		return to
	}
	return ""
}

// excerpt reads the beginning of an answer's body. What came of it is enough: the status is the
// answer.
func excerpt(answer *http.Response) []byte {
	if answer.ContentLength == 0 { // as most answers are that take a delivery
		return nil
	}
	read, _ := io.ReadAll(io.LimitReader(answer.Body, maxExcerpt))
	if len(read) == 0 {
		return nil
	}
	return read
}

// retryAfter returns the wait that a Retry-After field asks for, in either of its forms (RFC 9110
// §10.2.3).
func retryAfter(field string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(field, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		wait = time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(field); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
