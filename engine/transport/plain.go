package transport

import (
	"errors"
	"io"
	"net/http"

	"github.com/lightweb/lightweb/engine/holding"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Plain returns a client for a server that is no peer and that the operator has named. Its
// requests are not signed, and neither block lists nor the mode of federation apply to them. The
// requests go through the guard like all others, follow no redirect, and read at most 1 MiB of
// an answer.
func (c *Client) Plain() *http.Client {
	return &http.Client{Transport: plainTrips{c}, Timeout: c.cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// plainTrips makes the requests of a plain client.
type plainTrips struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (t plainTrips) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := holding.RefuseHolder(r.Context(), "the network"); err != nil {
		return nil, err
	}
	if _, err := t.guard.checkURL(vocab.ID(r.URL.String())); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", t.cfg.UserAgent)
	res, err := t.reads.RoundTrip(r)
	if err == nil {
		res.Body = &bounded{ReadCloser: res.Body, left: defaultLimit}
	}
	return res, err
}

// bounded is a body that fails once more than left bytes are read from it.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("the answer is larger than 1 MiB")
	}
	return n, err
}
