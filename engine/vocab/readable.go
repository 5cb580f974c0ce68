package vocab

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// PlainMedia is the media type of plain text.
const PlainMedia = "text/plain"

// wordings are the properties that hold text to be read (ActivityStreams §4.7), and what makes it
// harmless. Beside each of them its language map may stand.
var wordings = []struct {
	name  string
	clean func(string) string
}{{"content", Sanitize}, {"name", PlainText}, {"summary", PlainText}}

// Readable returns the words of an object as readers are shown them, where these differ from what
// came: content as harmless HTML, name and summary as plain text, "text" for content as plain
// text, and a language map that says more than one thing. A member that is not shown is empty. raw
// is the document as it came, in which languages stand in an order; at is where the object stands
// in it.
//
// It takes a while, so that it is made once, when the object is stored. Show puts it in its place.
func Readable(d Doc, raw []byte, at ...string) Doc {
	out := Doc{}
	for _, w := range wordings {
		languages := languagesOf(d, w.name)
		text := d.Text(w.name)
		if d[w.name] == nil && len(languages) > 0 {
			text = languages.Text(firstLanguage(languages, raw, append(slices.Clone(at), w.name+"Map")))
		}
		clean := w.clean(text)
		if clean != d.Text(w.name) {
			out[w.name] = clean
		}
		if w.name == "content" && clean != "" && authorsText(d) == "" {
			out["text"] = readText(text)
		}
		if translated, differs := cleanTranslations(languages, text, clean, w.clean); differs {
			out[w.name+"Map"] = translated
		}
	}
	return out
}

// cleanTranslations cleans the texts of a language map, one of which is clean already, and reports
// whether any says more.
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

// readText is HTMLToText that returns nothing for a text that cannot be read.
func readText(html string) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return HTMLToText(html)
}

// authorsText returns the plain text in which the author wrote the object, empty when it did not.
func authorsText(d Doc) string {
	source, _ := d["source"].(Doc)
	if source.Text("mediaType") != PlainMedia {
		return ""
	}
	return source.Text("content")
}

// languagesOf returns the texts of a language map by their tags; those that no language is called
// are left out.
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

// firstLanguage returns the tag that comes first in the document, or in the order of tags when
// that cannot be told.
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

// membersAt returns the names of an object inside a JSON document, in their order; nil when there
// is no such object.
func membersAt(raw []byte, at []string) (names []string) {
	if len(raw) == 0 {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for _, step := range at {
		for d.PeekKind() == '[' { // a list of one
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

// enterMember moves into the next object, to the value with that name, and reports whether there
// is one.
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

// chooseLanguage returns the tag of a language map that a reader of these languages wants, empty
// when there is none.
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
