package vocab

import (
	"slices"
	"strings"
)

// SealedTypes are the types of objects whose content is MLS messages: they travel as ciphertext and
// are in no feed.
var SealedTypes = []string{"ChatMessage", "PrivateMessage", "PublicMessage", "Welcome", "GroupInfo", "KeyPackage"}

// SealedSpellings are the ways in which peers write them.
var SealedSpellings = spellings()

func spellings() (all []string) {
	for _, prefix := range []string{"", "mls:", "https://purl.archive.org/socialweb/mls#", "lw:", "https://lightwebbrowser.org/ns#", "http://litepub.social/ns#"} {
		for _, name := range SealedTypes {
			all = append(all, prefix+name)
		}
	}
	return all
}

// Sealed returns the name of the sealed type that a document has among others, empty when that is
// none.
func (d Doc) Sealed() string {
	v, err := d.aliased("type")
	if err != nil {
		return ""
	}
	for _, v := range values(v) {
		if s, ok := v.(string); ok && slices.Contains(SealedSpellings, s) {
			return s[strings.LastIndexAny(s, ":#")+1:]
		}
	}
	return ""
}
