package vocab

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of documents from other servers: of texts in bytes, for each language, and of lists in
// values. Documents that were stored before these bounds are still read.
const (
	MaxContent     = 128 << 10 // of all but articles
	maxArticle     = 512 << 10
	maxTitle       = 4 << 10 // of name and summary
	maxTags        = 256
	maxAttachments = 64
)

// CheckBounds refuses an object or activity from another server with texts or lists beyond what is
// taken, and points to what is too much. at is where it stands in the document that came. Actors
// describe themselves at more length: they are not stored as posts.
func CheckBounds(d Doc, at string) error {
	kind, _ := d.Type() // who parses it refuses a malformed one
	if IsActorType(kind) {
		return nil
	}
	content := MaxContent
	if kind == "Article" {
		content = maxArticle
	}
	for _, l := range []struct {
		name string
		most int
	}{{"tag", maxTags}, {"attachment", maxAttachments}} {
		if len(d.list(l.name)) > l.most {
			return fault.New(fault.Invalid, fmt.Sprintf("more than %d values of %s are not taken", l.most, l.name)).At(at + "/" + l.name)
		}
	}
	if source := d.Sub("source"); len(source.Text("content")) > content {
		return tooLong("the source", content, at+"/source/content")
	}
	for _, w := range wordings {
		most := maxTitle
		if w.name == "content" {
			most = content
		}
		if err := checkWords(d, w.name, most, at); err != nil {
			return err
		}
	}
	return nil
}

func checkWords(d Doc, name string, most int, at string) error {
	if len(d.Text(name)) > most {
		return tooLong(name, most, at+"/"+name)
	}
	byLanguage, _ := d[name+"Map"].(Doc)
	for _, tag := range slices.Sorted(maps.Keys(byLanguage)) {
		if len(byLanguage.Text(tag)) > most {
			return tooLong(name, most, at+"/"+name+"Map")
		}
	}
	return nil
}

func tooLong(name string, most int, at string) error {
	return fault.New(fault.Invalid, fmt.Sprintf("more than %d bytes of %s are not taken", most, name)).WithCode("too_long").At(at)
}
