package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/holding"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// contact is one Get, Post or Ask in progress. The requests of one contact differ only in their
// URLs and in how they are signed.
type contact struct {
	*Client
	pool    *http.Transport
	method  string
	header  http.Header
	body    []byte
	keys    *Keys  // nil if the requests are not signed
	ed25519 string // the host that accepts our Ed25519 key; empty for none

	takesBack bool // the body takes something back (see Post)

	at     vocab.ID          // the URL of the next request
	knock  knock             // how the next request is signed
	second *knock            // how to sign after a refusal; nil when no other way is left
	known  signature.Dialect // the dialect that is stored for the host; zero for none
}

// knock is one way to sign a request, that is, a dialect and a key. When a host refuses the
// first knock, the request is signed in the other way and sent once more, which is the second
// knock.
type knock struct {
	dialect signature.Dialect
	key     signature.Key
}

// checkContact returns an error if the caller holds a connection to the database. It also returns
// an error if federation is paused, because no host is contacted then.
func (c *Client) checkContact(ctx context.Context) error {
	if err := holding.RefuseHolder(ctx, "the network"); err != nil {
		return err
	}
	if c.cfg.Paused {
		return ErrPaused
	}
	return nil
}

// newContact returns a contact with the host of id. The parameter advertised is true if the host
// advertises that it accepts Ed25519 signatures.
func (c *Client) newContact(method string, id vocab.ID, keys *Keys, advertised bool, header http.Header) *contact {
	x := &contact{Client: c, pool: c.reads, method: method, header: header, keys: keys}
	if method == http.MethodPost {
		x.pool = c.writes
	}
	if advertised && keys != nil && keys.Ed25519.Private != nil {
		x.ed25519 = id.Host()
	}
	x.header.Set("User-Agent", c.cfg.UserAgent)
	return x
}

// moveTo sets id as the URL of the next request, and chooses how it will be signed.
func (x *contact) moveTo(ctx context.Context, id vocab.ID) {
	knocked := x.at != "" && x.second == nil
	x.at = id.Document()
	if x.keys == nil {
		return
	}
	host := x.at.Host()
	x.known = 0
	first, other := x.cfg.First, signature.Cavage
	if x.takesBack || x.doubts.has(host) {
		first = signature.Cavage
	}
	if d, known := x.recallDialect(ctx, host); known {
		x.known, first = d, d
	}
	if first == signature.Cavage {
		other = signature.RFC9421
	}
	x.knock, x.second = knock{first, x.keys.RSA}, &knock{other, x.keys.RSA}
	if host == x.ed25519 {
		x.knock, x.second = knock{signature.RFC9421, x.keys.Ed25519}, &knock{signature.Cavage, x.keys.RSA}
	}
	if knocked {
		x.second = nil // a contact has only one second knock, even if it follows redirects
	}
}

// hostTime is the longest time that a contact waits for the store of hosts. The first look-up is
// made before Config.Timeout begins, so a store that does not answer is not blamed on the peer. A
// look-up after a redirect to another address is made within that time.
const hostTime = time.Second

// recallDialect returns the dialect that is stored for a host.
func (x *contact) recallDialect(ctx context.Context, host string) (signature.Dialect, bool) {
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	return x.hosts.Dialect(ctx, host)
}

// knockAgain switches to the other way to sign if the answer may mean that the host did not
// understand the first way. It reports whether it switched. It does not switch if no other way
// is left.
func (x *contact) knockAgain(status int, stripped bool) bool {
	if !isSignatureRefusal(status) && !stripped || x.second == nil {
		return false
	}
	x.knock, x.second = *x.second, nil
	return true
}

// doubtDialect records that the host failed at the last request, if the reason may be that it
// cannot read the signature.
func (x *contact) doubtDialect(status int) {
	if status/100 == 5 && x.keys != nil && x.known == 0 && x.knock.dialect == signature.RFC9421 {
		x.doubts.add(x.at.Host())
	}
}

// isSignatureRefusal reports whether a status may mean that the signature was refused. Peers
// answer 400, 401 or 403 to a signature that they cannot read. Any other status is about the
// request itself.
func isSignatureRefusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden
}

// rememberDialect stores the dialect of the last request, which the host accepted, unless the
// request takes something back. If the host advertises Ed25519, a stored dialect is not replaced,
// because a host that refused the Ed25519 key may still accept the RSA key in the stored dialect.
func (x *contact) rememberDialect(ctx context.Context) {
	host := x.at.Host()
	if x.keys == nil || x.takesBack || x.knock.dialect == x.known || x.known != 0 && host == x.ed25519 {
		return
	}
	if x.known == 0 && x.method == http.MethodGet && x.second != nil {
		return // a public document is shown even when the signature was not understood
	}
	if x.known == signature.Cavage && !x.doubts.has(host) {
		x.doubts.add(host)
		return // one refusal may have another reason than draft-cavage
	}
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	x.hosts.Learn(ctx, host, x.knock.dialect)
}

// sendRequest sends one request, and calls the function read with the answer. Every request
// passes the same checks. newRequest checks the URL and asks the gate before it signs. The guard
// checks the address when the connection is dialed.
func (x *contact) sendRequest(ctx context.Context, read func(*http.Response) error) (err error) {
	status := 0
	defer func() { x.countRequest(x.method, status, err) }()
	r, err := x.newRequest(ctx)
	if err != nil {
		return err
	}
	answer, err := x.pool.RoundTrip(r)
	if err != nil {
		return classifyError(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // the error does not matter, because reading has ended
	status = answer.StatusCode
	return read(answer)
}

func (x *contact) newRequest(ctx context.Context) (*http.Request, error) {
	u, err := x.guard.checkURL(x.at)
	if err != nil {
		return nil, err
	}
	if err := x.gate.Check(u.Host); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, x.method, u.String(), bytes.NewReader(x.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header = x.header.Clone()
	if x.keys == nil {
		return r, nil
	}
	if err := x.signRequest(ctx, r); err != nil {
		return nil, err
	}
	return r, nil
}

// signRequest signs r as soon as the signing semaphore has a place.
func (x *contact) signRequest(ctx context.Context, r *http.Request) error {
	select {
	case x.signing <- struct{}{}:
		defer func() { <-x.signing }()
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return classifyError(ctx, ctx.Err())
		}
		return fault.Wrap(fault.Unavailable, "there was no time to sign the request", ctx.Err()).WithCode("too_many_waiting")
	}
	if err := signature.Sign(r, x.body, x.knock.key, x.knock.dialect, x.cfg.Now()); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	return nil
}
