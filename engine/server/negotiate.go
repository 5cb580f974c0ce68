package server

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// offer is a form in which something can be served.
type offer struct {
	mediaType string // without parameters
	profile   string // the only profile that a client may ask for; empty for none
	send      string // the Content-Type
}

// documents are the forms of a document: the two media types of ActivityPub (§3.2), and JSON for
// clients that do not know these types. A client without a preference gets the first.
var documents = []offer{
	{mediaType: vocab.ActivityJSON, send: vocab.ActivityJSON},
	{mediaType: "application/ld+json", profile: vocab.ContextAS, send: vocab.MediaType},
	{mediaType: "application/json", send: vocab.ActivityJSON},
}

// chooseDocument returns the Content-Type in which the client wants an ActivityStreams document.
// It refuses only a client whose Accept names no form that is served here. A client that sends
// */*, as browsers do, or no Accept gets the document.
func (a *answer) chooseDocument(r *http.Request) (string, error) {
	a.varyByForm()
	o, ok := chooseOffer(r.Header.Values("Accept"), documents)
	if !ok {
		return "", fault.New(fault.NotAcceptable, "this is served as application/activity+json only")
	}
	return o.send, nil
}

// pageForm has the forms in documents and, after them, a page for people. So if a client wants
// both equally, it gets the document.
var pageForm = append(slices.Clone(documents), offer{mediaType: "text/html"})

// prefersPage reports whether the client would rather have a page for people than a document.
func prefersPage(r *http.Request) bool {
	o, ok := chooseOffer(r.Header.Values("Accept"), pageForm)
	return ok && o.mediaType == "text/html"
}

// documentAtPage has a page for people and, after it, the media types of ActivityPub. So only a
// client that prefers one of these types gets the document at the address of a page.
var documentAtPage = append([]offer{{mediaType: "text/html"}}, documents[:2]...)

// prefersDocument reports whether the client would rather have an ActivityStreams document than a
// page for people.
func prefersDocument(r *http.Request) bool {
	o, ok := chooseOffer(r.Header.Values("Accept"), documentAtPage)
	return ok && o.mediaType != "text/html"
}

// varyByForm says that the answer depends on the form that the client wants.
func (a *answer) varyByForm() { a.addVary("Accept") }

// sendElsewhere redirects to the address of a page (RFC 9110 §15.4.4).
func (a *answer) sendElsewhere(page string) {
	a.Header().Set("Location", page)
	a.setCache(cachePublic)
	a.WriteHeader(http.StatusSeeOther)
}

// chooseOffer returns the offer that the Accept header prefers, and whether any offer is
// acceptable. Of offers that are preferred equally, it returns the first. It ignores malformed
// ranges. If no range is left, every offer is acceptable (RFC 9110 §12.5.1).
func chooseOffer(accept []string, offers []offer) (offer, bool) {
	ranges := parseAccept(accept)
	if len(ranges) == 0 {
		return offers[0], true
	}
	var best offer
	quality := 0.0
	for _, o := range offers {
		if q := o.qualityIn(ranges); q > quality {
			best, quality = o, q
		}
	}
	return best, quality > 0
}

// mediaRange is one range of an Accept header.
type mediaRange struct {
	mediaType string
	profiles  []string
	quality   float64
}

// qualityIn returns the quality that the client gives the offer, that is, the quality of the most
// specific range that includes the offer.
func (o offer) qualityIn(ranges []mediaRange) float64 {
	major, _, _ := strings.Cut(o.mediaType, "/")
	closest, quality := 0, 0.0
	for _, r := range ranges {
		near := 0
		switch {
		case r.mediaType == o.mediaType && len(r.profiles) == 0:
			near = 3
		case r.mediaType == o.mediaType && slices.Contains(r.profiles, o.profile):
			near = 4
		case r.mediaType == major+"/*":
			near = 2
		case r.mediaType == "*/*":
			near = 1
		}
		if near > closest || near == closest && r.quality > quality {
			closest, quality = near, r.quality
		}
	}
	if closest == 0 {
		return 0
	}
	return quality
}

func parseAccept(lines []string) []mediaRange {
	var ranges []mediaRange
	for _, part := range splitList(lines) {
		mediaType, params, err := mime.ParseMediaType(part)
		if err != nil || !strings.Contains(mediaType, "/") {
			continue
		}
		r := mediaRange{mediaType: mediaType, profiles: strings.Fields(params["profile"]), quality: 1}
		if q, given := params["q"]; given {
			if r.quality, err = strconv.ParseFloat(q, 64); err != nil || !(r.quality >= 0 && r.quality <= 1) {
				continue
			}
		}
		ranges = append(ranges, r)
	}
	return ranges
}

// splitList returns the elements of a list in the lines of a header. A comma within quotes does
// not end an element (RFC 9110 §5.6.1, §5.6.4).
func splitList(lines []string) (elements []string) {
	list := strings.Join(lines, ",")
	start, quoted := 0, false
	for i := 0; i < len(list); i++ {
		switch {
		case quoted && list[i] == '\\':
			i++
		case list[i] == '"':
			quoted = !quoted
		case list[i] == ',' && !quoted:
			elements = append(elements, strings.TrimSpace(list[start:i]))
			start = i + 1
		}
	}
	return append(elements, strings.TrimSpace(list[start:]))
}
