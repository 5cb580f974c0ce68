package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

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
	Ed25519        bool // the peer advertises that it accepts Ed25519 signatures, so the Ed25519 key is used
	IdempotencyKey string
	MediaType      string // of the body; if empty, the media type of activities
	// TakesBack says that the activity takes something back. A host may answer 2xx to a Delete
	// whose signature it cannot read, as BookWyrm does. So a host without a stored dialect is asked
	// in draft-cavage first, and a 2xx does not show which dialect the host accepts.
	TakesBack bool

	Synchronization string // the value of the signed field Collection-Synchronization (FEP-8fcf); if empty, the field is left out
}

// Attempt is the result of a Post.
type Attempt struct {
	Status     int           // of the final answer; zero when there was none
	RetryAfter time.Duration // the wait that the peer asked for, at most 24 h
	// Location is the URL of the object that the peer made, if the status is 2xx and the answer
	// has that URL. If the answer is a redirect that was not followed, Location is its target.
	Location string
	Headers  string            // the stored fields of the answer, one on each line, up to 1 KiB
	Excerpt  []byte            // the beginning of the answer's body, up to 1 KiB; nil when the body is empty
	Dialect  signature.Dialect // of the signature of the request that got the answer
	Took     time.Duration     // from the beginning of the first request
	BytesOut int64             // bytes of the bodies of all answered requests
	BytesIn  int64             // bytes that were read of the answers' bodies
}

// Post delivers p.Body. It follows at most one redirect, and only if the redirect keeps the
// method (307, 308) and stays on the same host. An error means that the last request got no
// answer; it is ErrHalted when this process is the reason. Otherwise the Attempt has the answer,
// even if its status is an error.
func (c *Client) Post(ctx context.Context, p Post) (Attempt, error) {
	if err := c.checkContact(ctx); err != nil {
		return Attempt{}, err
	}
	x := c.newContact(http.MethodPost, p.Inbox, &p.As, p.Ed25519, http.Header{
		"Content-Type":    {vocab.MediaType},
		"Accept-Encoding": {"identity"}, // uncompressed, so that people can read the excerpt
	})
	x.body, x.takesBack = p.Body, p.TakesBack
	if p.MediaType != "" {
		x.header.Set("Content-Type", p.MediaType)
	}
	if p.IdempotencyKey != "" {
		x.header.Set("Idempotency-Key", p.IdempotencyKey)
	}
	if p.Synchronization != "" {
		x.header.Set("Collection-Synchronization", p.Synchronization)
	}
	x.moveTo(ctx, p.Inbox)
	start := c.cfg.Now() // the peer's time begins here: its dialect has been looked up
	within, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var a Attempt
	err := x.postFinal(within, &a)
	a.Took = c.cfg.Now().Sub(start)
	if err = excuseHalt(err, a.Took, c.cfg.Timeout); err != nil {
		return a, fmt.Errorf("post to %s: %w", p.Inbox, err)
	}
	if a.Status/100 == 2 {
		x.rememberDialect(ctx)
	}
	x.doubtDialect(a.Status)
	return a, nil
}

// postFinal posts until an answer is final, with at most one second knock (see knock). If the host
// refuses both ways to sign, the Attempt a gets the answer to the request in the dialect that is
// stored for the host, or the last answer if no dialect is stored.
func (x *contact) postFinal(ctx context.Context, a *Attempt) error {
	var reason Attempt
	for moved := false; ; {
		*a = Attempt{Dialect: x.knock.dialect, BytesOut: a.BytesOut, BytesIn: a.BytesIn}
		var next vocab.ID
		err := x.sendRequest(ctx, func(answer *http.Response) error {
			next = x.readAttempt(answer, a)
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
		if x.knockAgain(a.Status, false) {
			if known {
				reason = *a
			}
			continue
		}
		if reason.Status != 0 && isSignatureRefusal(a.Status) {
			reason.BytesOut, reason.BytesIn = a.BytesOut, a.BytesIn
			*a = reason
		}
		return nil
	}
}

// readAttempt fills a from the answer. It returns the URL to which the same request should be
// sent again, or "".
func (x *contact) readAttempt(answer *http.Response, a *Attempt) (next vocab.ID) {
	a.Status = answer.StatusCode
	a.BytesOut += int64(len(x.body))
	a.Headers = keptHeaders(answer.Header)
	a.Excerpt = readExcerpt(answer)
	a.BytesIn += int64(len(a.Excerpt)) + discardBody(answer.Body)
	if a.Status/100 == 2 {
		if made, err := x.redirectTarget(answer); err == nil {
			a.Location = string(made)
		}
		return ""
	}
	a.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), x.cfg.Now())
	if !isRedirect(a.Status) {
		return ""
	}
	to, err := x.redirectTarget(answer)
	if err != nil {
		return "" // the status shows the redirect; its target is unusable
	}
	a.Location = string(to)
	if keeps := a.Status == http.StatusTemporaryRedirect || a.Status == http.StatusPermanentRedirect; keeps && to.Host() == x.at.Host() {
		return to
	}
	return ""
}

// readExcerpt reads the beginning of an answer's body. It ignores a read error, because the
// status is the answer.
func readExcerpt(answer *http.Response) []byte {
	if answer.ContentLength == 0 { // most answers that accept a delivery have no body
		return nil
	}
	read, _ := io.ReadAll(io.LimitReader(answer.Body, maxExcerpt))
	if len(read) == 0 {
		return nil
	}
	return read
}

// retryAfter returns the wait that a Retry-After field asks for, in either of its forms (RFC
// 9110 §10.2.3). The wait is at least 0 and at most maxRetryAfter.
func retryAfter(field string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(field, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		wait = time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(field); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
