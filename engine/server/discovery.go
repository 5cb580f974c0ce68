package server

import (
	"html"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/page"
	"github.com/lightweb/lightweb/engine/vocab"
)

// allowAnyOrigin lets pages of any origin read the answer (RFC 7033 §5).
func (a *answer) allowAnyOrigin() { a.Header().Set("Access-Control-Allow-Origin", "*") }

// discovery serves the documents that describe this server and its users, such as WebFinger.
type discovery struct {
	*access
	users   userCount
	version string
	home    []byte
}

// getWebFinger describes the actor that an account or URI belongs to (RFC 7033). It ignores
// Accept (§4.2) and unknown parameters.
func (s *discovery) getWebFinger(a *answer, r *http.Request, _ httprouter.Params) error {
	a.allowAnyOrigin()
	if s.isUnencrypted(r) {
		a.Header().Set("Location", s.local.Origin()+r.URL.Path+"?"+r.URL.RawQuery)
		a.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	q := r.URL.Query()
	if len(q["resource"]) != 1 {
		return fault.New(fault.Invalid, "ask for one resource")
	}
	u, jrd, err := s.local.WebFinger(q.Get("resource"))
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return errNothing // the answer is the same whether no user can have the name or no user has it
	case err != nil:
		return err
	}
	if !u.IsZero() {
		if err := s.checkPresent(r, u); err != nil {
			return err
		}
	}
	// The parameter rel filters the links and nothing else (RFC 7033 §4.3).
	if rels := q["rel"]; len(rels) > 0 {
		links, _ := jrd["links"].([]any)
		jrd["links"] = slices.DeleteFunc(links, func(l any) bool {
			d, _ := l.(vocab.Doc)
			return !slices.Contains(rels, d.Text("rel"))
		})
	}
	a.setCache(cachePublic)
	a.sendTagged(r, "application/jrd+json", jrd.JSON())
	return nil
}

// isUnencrypted reports whether a trusted proxy says that the client used http, although the
// origin of this server is https. WebFinger must not answer such a request (RFC 7033 §4).
func (s *discovery) isUnencrypted(r *http.Request) bool {
	if !strings.HasPrefix(s.local.Origin(), "https://") || !strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "http") {
		return false
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	return isAmong(s.trusted, from.Addr().Unmap())
}

// hostMeta are the forms of host-meta (RFC 6415 §3). A client without a preference gets XML.
var hostMeta = []offer{
	{mediaType: "application/xrd+xml", send: "application/xrd+xml; charset=utf-8"},
	{mediaType: "application/json", send: "application/json"},
	{mediaType: "application/jrd+json", send: "application/jrd+json"},
}

// getHostMeta tells where WebFinger is, for servers that still ask for host-meta (RFC 6415). The
// path host-meta.json has the JSON form alone.
func (s *discovery) getHostMeta(a *answer, r *http.Request, _ httprouter.Params) error {
	a.allowAnyOrigin()
	a.addVary("Accept")
	template := s.local.Origin() + "/.well-known/webfinger?resource={uri}"
	form, ok := chooseOffer(r.Header.Values("Accept"), hostMeta)
	switch {
	case strings.HasSuffix(r.URL.Path, ".json"):
		form = hostMeta[1]
	case !ok:
		form = hostMeta[0]
	}
	body := []byte(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<XRD xmlns="http://docs.oasis-open.org/ns/xri/xrd-1.0"><Link rel="lrdd" type="application/jrd+json" template="` +
		html.EscapeString(template) + `"/></XRD>` + "\n")
	if form.mediaType != hostMeta[0].mediaType {
		body = vocab.Doc{"links": []any{vocab.Doc{"rel": "lrdd", "type": "application/jrd+json", "template": template}}}.JSON()
	}
	a.setCache(cachePublic)
	a.sendTagged(r, form.send, body)
	return nil
}

// homePage returns the page that a browser sees at the root. The page has no script and loads
// nothing.
func homePage(host string, hasPages bool) []byte {
	h, where := html.EscapeString(host), "There are no pages to read here."
	if hasPages {
		where = "The page of somebody is at <code>/@name</code>."
	}
	return []byte(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Lightweb on ` + h + `</title>
<h1>Lightweb on ` + h + `</h1>
<p>This is an ActivityPub server. People here are known as <code>@name@` + h + `</code>; follow them from any server of the fediverse.</p>
<p>` + where + ` About this server: <a href="/nodeinfo/2.1">NodeInfo</a>.</p>
</html>
`)
}

// getRobots tells search engines which addresses have nothing for people to read (RFC 9309).
// Each page says for itself whether it may be listed.
func (s *discovery) getRobots(a *answer, r *http.Request, _ httprouter.Params) error {
	closed := "/"
	if s.local.HasPages() {
		closed = "/api/\nDisallow: /users/\nDisallow: /ws"
	}
	a.setCache(cachePublic)
	a.sendTagged(r, "text/plain; charset=utf-8", []byte("User-agent: *\nDisallow: "+closed+"\n"))
	return nil
}

// getFavicon shows the picture of this server that browsers put beside the title of a page.
func (s *discovery) getFavicon(a *answer, r *http.Request, _ httprouter.Params) error {
	a.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	a.setCache(cachePublic)
	a.sendTagged(r, "image/svg+xml", page.Favicon())
	return nil
}

func (s *discovery) getHome(a *answer, r *http.Request, _ httprouter.Params) error {
	a.Header().Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	a.Header().Set("Referrer-Policy", "no-referrer")
	a.setCache(cachePublic)
	a.sendTagged(r, "text/html; charset=utf-8", s.home)
	return nil
}
