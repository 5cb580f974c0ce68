package vocab

import (
	"strings"
	"unicode"
)

// addressMembers are the members whose texts are addresses that clients open or load.
var addressMembers = map[string]bool{"url": true, "href": true, "icon": true, "image": true, "attachment": true, "preview": true}

// isAddressMember reports whether the texts of a member are addresses. That is true of
// addressMembers and of members that are named like one, such as quoteUrl.
func isAddressMember(name string) bool {
	if addressMembers[name] {
		return true
	}
	lower := strings.ToLower(name)
	return strings.HasSuffix(lower, "url") || strings.HasSuffix(lower, "uri") || strings.HasSuffix(lower, "href")
}

// showText returns the shown form of a text of the member called name. The result is nil if the
// text is not shown: an address that webLink does not match, or that has characters which no
// address may have, and any other text that a browser would run or render as an address. A name is
// never used as an address, so it may begin like one.
func showText(name, s string) any {
	s = PlainText(s)
	switch {
	case isAddressMember(name):
		if !webLink.MatchString(s) || strings.ContainsFunc(s, isControlOrTurning) {
			return nil
		}
		return s
	case name != "name" && isRunnable(s):
		return nil
	}
	return plainLines(s)
}

// runnable are the schemes of addresses that bring their own document or script.
var runnable = map[string]bool{"javascript": true, "vbscript": true, "data": true}

// isRunnable reports whether a text begins with one of the schemes in runnable, as browsers read
// it: they pass over white space before the scheme and line ends in it, and ignore its case (URL
// Living Standard §4.4). Characters that plainLines removes are passed over, too.
func isRunnable(s string) bool {
	if !strings.ContainsRune(s, ':') || strings.HasPrefix(s, "https:") {
		return false
	}
	var scheme strings.Builder
	for _, r := range s {
		switch {
		case r == ':':
			return runnable[strings.ToLower(scheme.String())]
		case isControlOrTurning(r), r == ' ' && scheme.Len() == 0:
		case scheme.Len() >= len("javascript"):
			return false
		default:
			scheme.WriteRune(r)
		}
	}
	return false
}

// isControlOrTurning reports whether a character is a control character, or controls the
// direction of writing.
func isControlOrTurning(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// plainLine returns s in one line, with spaces in place of control characters, and without
// characters that control the direction of writing.
func plainLine(s string) string { return strings.Join(strings.Fields(plainLines(s)), " ") }

// plainLines does what plainLine does, but leaves line ends, tabs and spaces as they are.
func plainLines(s string) string {
	if !strings.ContainsFunc(s, isControlOrTurning) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
		case unicode.IsControl(r):
			return ' '
		case isControlOrTurning(r):
			return -1
		}
		return r
	}, newlines.Replace(s))
}

func asWritten(s string) string { return s }
