package vocab

import (
	"fmt"
	"maps"
	"math"
	"slices"

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
// exceeds these bounds. The fault points to the member that is too large; the parameter at is the
// path of d in the received document. CheckBounds accepts every actor, because actors are not
// stored as posts. The content of an MLS message is not text, and is limited where it is read.
func CheckBounds(d Doc, at string) error {
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
