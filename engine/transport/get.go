package transport

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/holding"
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
	As      *Keys  // who signs; nil: unsigned
	Accept  string // the media types of ActivityPub when empty
	Limit   int64  // bytes of the body, unpacked; 1 MiB when zero
	Ed25519 bool   // the peer advertises that it takes Ed25519 signatures: use that key
	// SameOrigin refuses a redirect to another origin before a request is sent there: only the
	// server asked may vouch for the document, and no other one shall be bothered.
	SameOrigin bool
	// Check, if set, returns why a 200 is no real answer, such as an actor without inbox or key:
	// some servers strip those when they cannot read the signature. The error leads to a second
	// knock, and is returned if that brings no better answer.
	Check func(*Response) error
}

// Response is the last answer to a Request. Only a 200 has a body.
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte
	URL       vocab.ID // where it came from, after redirects
	Redirects int
	Dialect   signature.Dialect // of the signature it was asked for with; zero for none
	Took      time.Duration     // from the beginning of the first request
}

// Get fetches r.URL, following up to three redirects. It returns the last answer, with whatever
// status. An error means that there was no answer, that it could not be read, or that r.Check
// refused it.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	if err := holding.RefuseHolder(ctx, "the network"); err != nil {
		return nil, err
	}
	if c.cfg.Paused {
		return nil, ErrPaused
	}
	start := c.cfg.Now()
	within, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
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
	res, err := x.getFinal(within, r)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", r.URL, err)
	}
	res.Took = c.cfg.Now().Sub(start)
	if res.Status == http.StatusOK {
		x.rememberDialect(ctx)
	}
	return res, nil
}

// getFinal follows redirects and knocks again until there is an answer that counts.
func (x *contact) getFinal(ctx context.Context, r Request) (*Response, error) {
	x.moveTo(ctx, r.URL)
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

// getOnce makes one request, and returns the answer and where it redirects to, empty for nowhere.
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

// checkAnswer returns why a 200 is no real answer, or nil.
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

// redirectTarget returns where a redirect leads. It never leads from https to http.
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
