package outbox

import (
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// setPage writes the address of the object's web page into a public object, if this server has
// pages. The address of the object's file stays, if it has one.
func setPage(local *actor.Local, d vocab.Doc, isPublic bool) {
	page := local.PostPage(vocab.ID(d.Text("id")))
	var links []any
	for _, link := range d.Subs("url") {
		if link.Text("href") != page {
			links = append(links, link)
		}
	}
	delete(d, "url")
	switch hasPage := isPublic && local.HasPages(); {
	case hasPage && len(links) == 0:
		d["url"] = page
	case hasPage:
		d["url"] = append(links, vocab.Doc{"type": "Link", "href": page, "mediaType": "text/html"})
	case len(links) > 0:
		d["url"] = links
	}
}
