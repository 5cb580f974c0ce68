package transport

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxRedirects = 3
	defaultLimit = 1 << 20
)

// Request is a document to fetch.
type Request struct {
	URL     vocab.ID
	As      *Keys  // the keys to sign with; nil for an unsigned request
	Accept  string // the media types to accept; if empty, those of ActivityPub
	Limit   int64  // the greatest size of the decompressed body in bytes; 1 MiB if zero
	Ed25519 bool   // the peer advertises that it accepts Ed25519 signatures, so the Ed25519 key is used
	// SameOrigin says that only the server of URL may vouch for the document. A redirect to
	// another origin is then refused, and no request is sent there.
	SameOrigin bool
	// Check, if set, returns an error for an answer of 200 whose document is incomplete, such as
	// an actor without inbox or key. Some servers leave those out when they cannot read the
	// signature. After such an error Get signs in the other way (see knock) and tries once more.
	// If the second answer is no better, Get returns the error.
	Check func(*Response) error
}

// Response is the last answer to a Request. It has a body only if its status is 200.
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte
	URL       vocab.ID // where the answer came from, after redirects
	Redirects int
	Dialect   signature.Dialect // of the request's signature; zero for none
	Took      time.Duration     // from the beginning of the first request
}

// Get fetches r.URL and follows up to three redirects. It returns the last answer, even if its
// status is an error. An error means that there was no answer, that the answer could not be read,
// that a redirect was refused, or that r.Check refused the answer.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	if err := c.checkContact(ctx); err != nil {
		return nil, err
	}
	if r.Accept == "" {
		r.Accept = acceptTypes
	}
	if r.Limit <= 0 {
		r.Limit = defaultLimit
	}
	x := c.newContact(http.MethodGet, r.URL, r.As, r.Ed25519, http.Header{
		"Accept":          {r.Accept},
		"Accept-Encoding": {"gzip"},
	})
	x.moveTo(ctx, r.URL)
	start := c.cfg.Now() // the peer's time begins here: its dialect has been looked up
	within, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	res, err := x.getFinal(within, r)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", r.URL, err)
	}
	res.Took = c.cfg.Now().Sub(start)
	if res.Status == http.StatusOK {
		x.rememberDialect(ctx)
	}
	x.doubtDialect(res.Status)
	return res, nil
}

// getFinal follows redirects, and repeats a request with the other signature if needed, until an
// answer is final.
func (x *contact) getFinal(ctx context.Context, r Request) (*Response, error) {
	visited := map[vocab.ID]bool{}
	for redirects := 0; ; {
		res, next, err := x.getOnce(ctx, r.Limit)
		if err != nil {
			return nil, err
		}
		if next != "" {
			if r.SameOrigin && !next.SameOrigin(r.URL) {
				return nil, fault.Wrap(fault.Protocol, "the peer leads to another server", fmt.Errorf("redirected to %s", next))
			}
			visited[x.at.Canonical()] = true
			redirects++
			if redirects > maxRedirects || visited[next.Canonical()] {
				return nil, fault.Wrap(fault.Protocol, "too many redirects", fmt.Errorf("redirect %d leads to %s", redirects, next))
			}
			x.moveTo(ctx, next)
			continue
		}
		res.Redirects = redirects
		stripped := checkAnswer(r.Check, res)
		if x.knockAgain(res.Status, stripped != nil) {
			continue
		}
		if stripped != nil {
			return nil, stripped
		}
		return res, nil
	}
}

// getOnce makes one request and returns the answer. The result next is the target if the answer is
// a redirect, and "" otherwise.
func (x *contact) getOnce(ctx context.Context, limit int64) (res *Response, next vocab.ID, err error) {
	res = &Response{URL: x.at}
	if x.keys != nil {
		res.Dialect = x.knock.dialect
	}
	err = x.sendRequest(ctx, func(answer *http.Response) (err error) {
		res.Status, res.Header = answer.StatusCode, answer.Header
		if res.Status == http.StatusOK {
			res.Body, err = readBody(ctx, answer, limit)
			return err
		}
		if isRedirect(res.Status) {
			next, err = x.redirectTarget(answer)
		}
		discardBody(answer.Body)
		return err
	})
	return res, next, err
}

// checkAnswer returns the error that check returns for an answer with status 200. It returns nil
// for any other status, and if check is nil.
func checkAnswer(check func(*Response) error, res *Response) error {
	if check == nil || res.Status != http.StatusOK {
		return nil
	}
	err := check(res)
	if err != nil && fault.KindOf(err) == fault.Internal {
		return fault.Wrap(fault.Protocol, "the peer's answer is incomplete", err)
	}
	return err
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirectTarget returns the target of a redirect. It refuses a redirect from https to http.
func (x *contact) redirectTarget(answer *http.Response) (vocab.ID, error) {
	bad := func(err error) error { return fault.Wrap(fault.Protocol, "a redirect leads nowhere", err) }
	base, err := url.Parse(string(x.at))
	if err != nil {
		return "", bad(err)
	}
	field := answer.Header.Get("Location")
	to, err := base.Parse(field)
	if err != nil || field == "" {
		return "", bad(err)
	}
	to.Fragment, to.RawFragment = "", ""
	id, err := vocab.ParseID(to.String())
	if err != nil {
		return "", bad(err)
	}
	if base.Scheme == "https" && to.Scheme != "https" {
		return "", refuseAddress("redirect from https to %s", id)
	}
	return id, nil
}
