package apitest

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// isType reports whether a value has the type that a schema names. If the schema names several
// types, one of them suffices.
func isType(kind, value any) bool {
	if kinds, is := kind.([]any); is {
		return slices.ContainsFunc(kinds, func(k any) bool { return isType(k, value) })
	}
	number, isNumber := value.(float64)
	is := map[string]bool{"integer": isNumber && number == float64(int64(number)), "number": isNumber, "null": value == nil}
	_, is["string"] = value.(string)
	_, is["boolean"] = value.(bool)
	_, is["array"] = value.([]any)
	_, is["object"] = value.(map[string]any)
	return kind == nil || is[kind.(string)]
}

// differText returns how a text differs from its schema, or "" if it does not.
func differText(s schema, text, at string) string {
	if form, is := s["pattern"].(string); is && !regexp.MustCompile(form).MatchString(text) {
		return fmt.Sprintf("%s is %q, want %s", at, text, form)
	}
	if most, is := s["maxLength"].(float64); is && utf8.RuneCountInString(text) > int(most) {
		return fmt.Sprintf("%s has %d characters, want at most %v", at, utf8.RuneCountInString(text), most)
	}
	var err error
	switch s["format"] {
	case "uuid":
		err = uuid.Validate(text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	case "uri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && !u.IsAbs() {
			err = fmt.Errorf("%q is no absolute address", text)
		}
	}
	if err != nil {
		return fmt.Sprintf("%s: %v", at, err)
	}
	return ""
}
