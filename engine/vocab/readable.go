package vocab

import (
	"bytes"
	"mime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// PlainMedia is the media type of plain text.
const PlainMedia = "text/plain"

// wording is a property that holds text for readers, with the function that makes its text
// harmless, and the one that lays it out each time that it is shown.
type wording struct {
	name   string
	clean  func(string) string
	layOut func(string) string
}

// wordings are the properties that hold text for readers (ActivityStreams §4.7). A document may
// have a language map for each of them, too.
var wordings = []wording{{"content", Sanitize, asWritten}, {"name", PlainText, plainLine}, {"summary", PlainText, plainLines}}

// cleanerFor returns the function that makes the texts of the property in d harmless.
func (w wording) cleanerFor(d Doc) func(string) string {
	if w.name == "content" && hasPlainContent(d) {
		return plainShower(d)
	}
	return w.clean
}

// hasPlainContent reports whether the content of d is a text without HTML, such as the Markdown of
// PeerTube. The member mediaType tells the format of content, which is HTML if it is missing
// (ActivityStreams vocabulary §4, "mediaType"). Some servers write the type of a file there, so
// only the types of text count.
func hasPlainContent(d Doc) bool {
	kind, _, err := mime.ParseMediaType(d.Text("mediaType"))
	return err == nil && strings.HasPrefix(kind, "text/") && kind != "text/html"
}

// maxLinked is the greatest size of a document's plain texts that get links, in bytes. Users' own
// texts are not larger, and a search for links in half a megabyte takes a second.
const maxLinked = 64 << 10

// plainShower returns the function that turns one language's content of d, a text without HTML,
// into harmless HTML. Addresses in the text become links, unless the texts of all languages
// together have more than maxLinked bytes.
func plainShower(d Doc) func(string) string {
	size, href := len(d.Text("content")), linkOf
	for _, text := range d.Sub("contentMap") {
		translated, _ := text.(string)
		size += len(translated)
	}
	if size > maxLinked {
		href = nil
	}
	return func(text string) string { return Sanitize(TextToHTML(cutText(text), href)) }
}

func linkOf(s Span) string {
	if s.Kind == LinkSpan {
		return s.Text
	}
	return ""
}

// contentText returns a content of d as plain text.
func contentText(d Doc, content string) string {
	if hasPlainContent(d) {
		return strings.Trim(newlines.Replace(cutText(content)), space)
	}
	return readText(content)
}

// Readable returns the texts of an object in the form that readers are shown. Content is harmless
// HTML, even if d has it as plain text, and name and summary are plain text. A text is left out
// if d has it in that form already, and is empty if it is not shown. The member "text" has the
// content as plain text. It is not made from d's source, because another server can write words
// there that the content does not have. It is left out if d has neither a content to show nor a
// plain source. A language map is left out if all its texts equal the text of its property. The
// parameter raw holds the bytes of the received document, which show the order of the languages;
// at is the path of the object in that document.
//
// Readable is slow, so it is called when the object is stored, and ReadableOf calls it again only
// if the result was not stored. Show inserts the texts.
func Readable(d Doc, raw []byte, at ...string) Doc {
	out := Doc{}
	for _, w := range wordings {
		languages := languagesOf(d, w.name)
		text := d.Text(w.name)
		if d[w.name] == nil && len(languages) > 0 {
			text = languages.Text(firstLanguage(languages, raw, append(slices.Clone(at), w.name+"Map")))
		}
		cleaned := w.cleanerFor(d)
		clean := cleaned(text)
		if clean != d.Text(w.name) {
			out[w.name] = clean
		}
		switch {
		case w.name == "content" && clean != "":
			out["text"] = contentText(d, text)
		case w.name == "content" && authorsText(d) != "":
			out["text"] = "" // so that Show does not show the source
		}
		if translated, differs := cleanTranslations(languages, text, clean, cleaned); differs {
			out[w.name+"Map"] = translated
		}
	}
	return out
}

// withAuthorsText returns the readable form of d without its plain text if the source of d is plain
// text. Show then shows that source.
func withAuthorsText(readable, d Doc) Doc {
	if authorsText(d) != "" {
		delete(readable, "text")
	}
	return readable
}

// ReadableOf returns the readable form of d as it was stored. If it was not stored, or cannot be
// parsed, ReadableOf makes it. Then d may be the user's own object, so its plain source is kept.
func ReadableOf(d Doc, stored []byte) Doc {
	readable, err := ParseDoc(stored)
	if err != nil {
		return withAuthorsText(Readable(d, nil), d)
	}
	return readable
}

// cleanTranslations returns the language map with harmless texts. The parameter clean is the
// harmless form of the parameter text, so that text need not be cleaned again if it is in the map.
// The result differs is true if the map has a text other than the parameter text.
func cleanTranslations(languages Doc, text, clean string, cleaned func(string) string) (out Doc, differs bool) {
	out = Doc{}
	for tag := range languages {
		out[tag] = clean
		if said := languages.Text(tag); said != text {
			out[tag], differs = cleaned(said), true
		}
	}
	return out, differs
}

// readText is HTMLToText, and returns an empty text if that panics.
func readText(html string) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return HTMLToText(html)
}

// authorsText returns the source of the object if the author wrote it as plain text, else "".
func authorsText(d Doc) string {
	source, _ := d["source"].(Doc)
	if source.Text("mediaType") != PlainMedia {
		return ""
	}
	return source.Text("content")
}

// languagesOf returns the texts of a language map by their tags. It leaves out keys that are not
// language tags.
func languagesOf(d Doc, name string) Doc {
	out := Doc{}
	all, _ := d[name+"Map"].(Doc)
	for tag := range all {
		if all.Text(tag) != "" && languageTag.MatchString(tag) {
			out[tag] = all.Text(tag)
		}
	}
	return out
}

// firstLanguage returns the tag that comes first in the document. If the document is unknown, it
// returns the tag that sorts first.
func firstLanguage(languages Doc, raw []byte, at []string) string {
	for _, tag := range membersAt(raw, at) {
		if languages[tag] != nil {
			return tag
		}
	}
	first := ""
	for tag := range languages {
		if first == "" || tag < first {
			first = tag
		}
	}
	return first
}

// membersAt returns the member names of the object at a path in a JSON document, in their
// order. It returns nil if there is no such object.
func membersAt(raw []byte, at []string) (names []string) {
	if len(raw) == 0 {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for _, step := range at {
		for d.PeekKind() == '[' { // the value is a list of one
			if _, err := d.ReadToken(); err != nil {
				return nil
			}
		}
		if !enterMember(d, step) {
			return nil
		}
	}
	if d.PeekKind() != '{' {
		return nil
	}
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return nil
		}
		names = append(names, t.String())
		if d.SkipValue() != nil {
			return nil
		}
	}
	return names
}

// enterMember moves the decoder into the next object, to the value of the member with the given
// name. It reports whether there is such a member.
func enterMember(d *jsontext.Decoder, name string) bool {
	if d.PeekKind() != '{' {
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return false
		}
		if t.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}

// chooseLanguage goes through the languages in order, and returns the first tag of a language map
// that fits. It returns an empty text if no tag fits any language. A regional tag such as de-AT
// fits the language de.
func chooseLanguage(tags Doc, languages []string) string {
	for _, wanted := range languages {
		best := ""
		for tag := range tags {
			if strings.EqualFold(tag, wanted) {
				return tag
			}
			if isRegional := len(tag) > len(wanted) && tag[len(wanted)] == '-' && strings.EqualFold(tag[:len(wanted)], wanted); isRegional && (best == "" || tag < best) {
				best = tag
			}
		}
		if best != "" {
			return best
		}
	}
	return ""
}
