package vocab

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of documents from other servers. The bounds of texts are in bytes and hold for each
// language; the bounds of lists are numbers of values. Documents that were stored before these
// bounds existed are still read.
const (
	MaxContent     = 128 << 10 // of all objects except articles
	maxArticle     = 512 << 10
	maxTitle       = 4 << 10 // of name and summary
	maxTags        = 256
	maxAttachments = 64
)

// CheckBounds refuses an object or activity from another server if one of its texts or lists
// exceeds these bounds, or one of its types has a character that no type has. The fault points to
// the member that is refused; the parameter at is the path of d in the received document.
// CheckBounds bounds no texts and lists of an actor, because actors are not stored as posts. The
// content of an MLS message is not text, and is limited where it is read.
func CheckBounds(d Doc, at string) error {
	if err := checkTypes(d, at); err != nil {
		return err
	}
	kind, _ := d.Type() // a malformed type is refused where d is parsed
	if IsActorType(kind) {
		return nil
	}
	content := MaxContent
	switch sealed := d.Sealed(); {
	case sealed != "" && sealed != "KeyPackage":
		content = math.MaxInt
	case kind == "Article":
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

// checkTypes refuses a type with a character that no type has.
func checkTypes(d Doc, at string) error {
	for _, name := range []string{"type", "@type"} {
		for _, v := range d.list(name) {
			if kind, _ := v.(string); strings.ContainsFunc(kind, isForeignToTypes) {
				return fault.New(fault.Invalid, "a type must have only letters, digits and the punctuation of an IRI").At(at + "/" + name)
			}
		}
	}
	return nil
}

// isForeignToTypes reports whether no type may contain r. A type is a term, a compact IRI or an IRI
// (JSON-LD 1.1 §3.5), and may contain the ASCII characters that an IRI may contain (RFC 3987 §2.2),
// and all letters, marks and digits. So no type contains a space or a control character: types are
// part of lines that programs read, such as the names of events.
func isForeignToTypes(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("\"<>\\^`{|}", r)
	}
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
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
