package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// document is a document that a server serves under one of its ids, with its bytes and the
// response that it came in.
type document struct {
	doc    vocab.Doc
	raw    json.RawMessage
	answer *transport.Response
}

// Ask fetches an actor from its own id, and also returns the response that it came in. The
// request is signed with the keys in as, or not signed if as is nil. Ask uses no stored copy and
// stores nothing. It accepts the same documents as Resolve. If as is nil, it also accepts an
// actor without keys.
func (r *Resolver) Ask(ctx context.Context, id vocab.ID, as *transport.Keys) (*vocab.Actor, *transport.Response, error) {
	if err := r.Gate.Check(id.Host()); err != nil {
		return nil, nil, err
	}
	req := transport.Request{URL: id, As: as, Limit: maxActor}
	if as != nil {
		req.Check = checkWhole // an unsigned request may be shown a document without keys
	}
	d, err := r.fetchByID(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	a, err := actorOf(d)
	return a, d.answer, err
}

// fetcher fetches documents of other servers.
type fetcher struct {
	local  *Local // the instance actor of local signs the requests
	client Fetcher
}

// signRequest returns req with the keys of the instance actor, unless req already has keys.
func (f *fetcher) signRequest(req transport.Request) (transport.Request, error) {
	if req.As != nil {
		return req, nil
	}
	keys, err := f.local.keys.Instance()
	req.As = &keys
	return req, err
}

// fetchDocument fetches an ActivityStreams document from the origin of req.URL. It follows no
// redirect to another origin, because otherwise the server of that origin could speak for the
// server of req.URL (FEP-fe34).
func (f *fetcher) fetchDocument(ctx context.Context, req transport.Request) (document, error) {
	if f.local.isOwn(req.URL) {
		return document{}, fault.New(fault.NotFound, "there is no such document here")
	}
	req.SameOrigin = true
	res, err := f.client.Get(ctx, req)
	if err != nil {
		return document{}, err
	}
	if err := checkStatus(res.Status); err != nil {
		return document{}, err
	}
	// A file that a user uploaded to an honest server must not pass as a document of that server.
	if t := res.Header.Get("Content-Type"); !transport.IsActivityMediaType(t) {
		return document{}, fault.Wrap(fault.Protocol, "the peer answers with no ActivityStreams document", fmt.Errorf("content-type %.80q", t))
	}
	d, err := vocab.ParseDoc(res.Body)
	if err != nil {
		return document{}, fault.Wrap(fault.Protocol, "the peer answers with JSON that is not acceptable", err)
	}
	return document{d, res.Body, res}, nil
}

// fetchAsInstance fetches the document whose id is req.URL. The instance actor signs the
// request, unless req has other keys.
func (f *fetcher) fetchAsInstance(ctx context.Context, req transport.Request) (document, error) {
	req, err := f.signRequest(req)
	if err != nil {
		return document{}, err
	}
	return f.fetchByID(ctx, req)
}

// fetchByID fetches the document whose id is req.URL. If the document bears another id of the
// same origin, it is fetched once more, from that id.
func (f *fetcher) fetchByID(ctx context.Context, req transport.Request) (document, error) {
	for range 2 {
		d, err := f.fetchDocument(ctx, req)
		if err != nil {
			return document{}, err
		}
		id, err := d.doc.ID()
		if err != nil || !id.SameOrigin(req.URL) {
			return document{}, fault.Wrap(fault.Protocol, "the document is not one that its server can vouch for", fmt.Errorf("%s bears the id %.120q", req.URL, id))
		}
		if id.Same(req.URL) {
			return d, nil
		}
		req.URL = id
	}
	return document{}, fault.Wrap(fault.Protocol, "the document does not bear its own id", fmt.Errorf("last seen at %s", req.URL))
}

// PeerRefused is the code of a fault when another server refuses the request, instead of
// answering that there is no such document.
const PeerRefused = "peer_refused"

// checkStatus returns the fault that a status means, or nil for 200. Many servers answer alike
// for a document that does not exist and for one that they do not show, so both have the fault
// NotFound. Only the code PeerRefused says that the server refused.
func checkStatus(status int) error {
	why := fmt.Errorf("status %d", status)
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusGone:
		return fault.Wrap(fault.Gone, "it was deleted", why)
	case status == http.StatusNotFound:
		return fault.Wrap(fault.NotFound, "its server does not show it", why)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault.Wrap(fault.NotFound, "its server does not show it", why).WithCode(PeerRefused)
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return fault.Wrap(fault.Unavailable, "its server cannot answer now", why)
	case status >= 400:
		return fault.Wrap(fault.Protocol, "its server gives no answer", why).WithCode(PeerRefused)
	default:
		return fault.Wrap(fault.Protocol, "its server gives no answer", why)
	}
}
