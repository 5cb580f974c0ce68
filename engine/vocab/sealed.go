package vocab

import (
	"slices"
	"strings"
)

// SealedTypes are the types of objects whose content is an MLS message. Such objects are not
// shown in feeds.
var SealedTypes = []string{"ChatMessage", "PrivateMessage", "PublicMessage", "Welcome", "GroupInfo", "KeyPackage"}

// SealedSpellings are the forms in which peers write these types.
var SealedSpellings = sealedSpellings()

func sealedSpellings() (all []string) {
	for _, prefix := range []string{"", "mls:", "https://purl.archive.org/socialweb/mls#", "lw:", "https://lightwebbrowser.org/ns#", "http://litepub.social/ns#"} {
		for _, name := range SealedTypes {
			all = append(all, prefix+name)
		}
	}
	return all
}

// Sealed returns the first type of a document that is one of SealedTypes, or an empty text if none
// is.
func (d Doc) Sealed() string {
	v, err := d.aliasedProperty("type")
	if err != nil {
		return ""
	}
	for _, v := range valuesOf(v) {
		if s, ok := v.(string); ok && slices.Contains(SealedSpellings, s) {
			return s[strings.LastIndexAny(s, ":#")+1:]
		}
	}
	return ""
}
