package vocab

import (
	"maps"
	"strings"
)

// Show returns an object in the form that readers are shown. The parameter d is the stored form of
// the object, in which a stamp was verified; readable is the result of Readable. The texts are in
// the first of the reader's languages that is available. The member source.content is the plain
// text, and no text except content has HTML. The object is attributed to one author of its own
// server, if it has such an author. Embedded documents that are not parts of the object are
// replaced by their ids. The member quote has the id of the quoted post, in every form in which d
// names that post.
func Show(d, readable Doc, languages []string) Doc {
	out := reduceDoc(d)
	text, hasText := readable["text"].(string)
	if !hasText { // the object is the user's own, or was stored before sources of others were left out
		text = authorsText(d)
	}
	for _, w := range wordings {
		said, made := readable[w.name].(string)
		if !made {
			said = d.Text(w.name)
		}
		tags, _ := readable[w.name+"Map"].(Doc)
		if tag := chooseLanguage(tags, languages); tag != "" && tags.Text(tag) != said {
			said = tags.Text(tag)
			if w.name == "content" {
				text = readText(said)
			}
		}
		if said = w.layOut(said); said != "" {
			out[w.name] = said
		}
	}
	if hasPlainContent(d) { // but the content is shown as HTML
		delete(out, "mediaType")
	}
	if text != "" {
		out["source"] = Doc{"content": text, "mediaType": PlainMedia}
	}
	id, _ := d.ID()
	if by, err := chooseAuthor(d, id); err == nil && by.SameOrigin(id) { // FEP-fe34
		out["attributedTo"] = string(by)
	}
	delete(out, "quote") // in the Quotation of BookWyrm it is the text of a book
	if quoted := QuoteOf(d); quoted.Origin() != "" {
		out["quote"] = string(quoted)
	}
	if stamp := ClaimedStamp(d); stamp != "" {
		out[authorization] = string(stamp)
	}
	return out
}

// WithOwnAuthors returns the document without authors of other servers, because a server speaks
// for its own actors only (FEP-fe34). It names each author by an id or by an object with an id,
// because the database finds no author in an object with @id or in a Link. It returns d itself if
// nothing changes.
func (d Doc) WithOwnAuthors() Doc {
	id, _ := d.ID()
	named := d.list("attributedTo")
	own, changed := make([]any, 0, len(named)), false
	for _, v := range named {
		r, err := toRef(v)
		switch {
		case err != nil || !r.ID.SameOrigin(id):
			changed = true
			continue
		case r.Doc != nil && r.Doc.Text("id") == "":
			v, changed = plainAuthor(r), true
		}
		own = append(own, v)
	}
	if !changed {
		return d
	}
	d = maps.Clone(d)
	switch d["attributedTo"] = own; len(own) {
	case 0:
		delete(d, "attributedTo")
	case 1:
		d["attributedTo"] = own[0]
	}
	return d
}

// plainAuthor returns an object with @id as an object with an id, and a Link as an id.
func plainAuthor(r Ref) any {
	if r.Doc.Text("@id") == "" {
		return string(r.ID)
	}
	d := maps.Clone(r.Doc)
	d["id"] = string(r.ID)
	delete(d, "@id")
	return d
}

// Narrowed is the member by which audience.Narrow marks a stored document.
const Narrowed = "lwNarrowed"

// unreduced are the members that reduceDoc leaves out. Some serve only the transport of a
// document. The author and the stamp are left out because they must be verified, and the texts
// because they may have HTML.
var unreduced = map[string]bool{"@context": true, "proof": true, "signature": true, "attributedTo": true, authorization: true, Narrowed: true,
	"content": true, "contentMap": true, "name": true, "nameMap": true, "summary": true, "summaryMap": true, "source": true}

// reduceDoc returns a document without the members in unreduced, without hidden recipients, and
// without members that have a < in their names. It shows the other texts as showText does, and
// embedded documents as showEmbedded does.
func reduceDoc(d Doc) Doc {
	out := make(Doc, len(d))
	for name, v := range d {
		if unreduced[name] || isBlindAddress(name) || strings.ContainsRune(name, '<') {
			continue
		}
		if v = reduceValue(name, v); v != nil {
			out[name] = v
		}
	}
	return out
}

// parts are the members whose embedded documents are parts of the outer document, even if they
// have ids.
var parts = map[string]bool{"tag": true, "attachment": true, "oneOf": true, "anyOf": true, "icon": true, "image": true, "url": true, "location": true}

func reduceValue(name string, v any) any {
	switch v := v.(type) {
	case string:
		return showText(name, v)
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			if one = reduceValue(name, one); one != nil {
				out = append(out, one)
			}
		}
		return out
	case Doc:
		return showEmbedded(name, v)
	}
	return v
}

// showEmbedded returns the shown form of the embedded document d, which is a value of the member
// called name. If d has an id, that id is shown, unless d is a part of the outer document (see
// parts) and names no maker. If d is a Link and not a part, its href is shown. If d has no id and
// names its maker, d is shown only if it is a part, because its original could not be fetched. In
// all other cases showPart shows d. Of the texts of d, only the name is shown. A Link whose href is
// not shown is left out, because nothing can be done with the rest of it.
func showEmbedded(name string, d Doc) any {
	id, err := d.ID()
	switch {
	case err == nil && id != "" && (!parts[name] || isWork(d)):
		return string(id)
	case parts[name] && leadsNowhere(d):
		return nil
	case parts[name]:
		return showPart(name, d)
	case err == nil && d.isLink():
		return showText("href", d.Text("href"))
	case err != nil || isWork(d):
		return nil
	}
	return showPart(name, d)
}

// leadsNowhere reports whether a document is a Link whose href is not shown. PeerTube lists magnet
// and WebSocket addresses of a video in such Links.
func leadsNowhere(d Doc) bool {
	t, err := d.Type()
	return err == nil && t == "Link" && d.isLink() && showText("href", d.Text("href")) == nil
}

// isWork reports whether a document names its maker.
func isWork(d Doc) bool { return d["attributedTo"] != nil || d["actor"] != nil }

// lined are the parts whose names have one line. The name of a picture describes it, and may have
// several.
var lined = map[string]bool{"tag": true, "oneOf": true, "anyOf": true, "location": true}

func showPart(member string, d Doc) Doc {
	out := reduceDoc(d)
	delete(out, "actor")
	name := reduceValue("name", d["name"])
	if text, isText := name.(string); isText && lined[member] {
		name = plainLine(text)
	}
	if name != nil {
		out["name"] = name
	}
	return out
}
