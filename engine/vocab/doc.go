package vocab

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

const asPrefix = "https://www.w3.org/ns/activitystreams#"

// Text returns the property as text, empty when it is absent or something else.
func (d Doc) Text(name string) string {
	s, _ := d[name].(string)
	return s
}

// Flag returns the property as a truth value, false when it is absent or something else.
func (d Doc) Flag(name string) bool {
	b, _ := d[name].(bool)
	return b
}

// maxCount is the highest number that every reader of JSON keeps exactly (RFC 7493 §2.2).
const maxCount = 1<<53 - 1

// Count returns the property as a number of things, and whether it is a whole number from 0 to
// maxCount.
func (d Doc) Count(name string) (n int64, ok bool) {
	number, _ := d[name].(json.Number)
	n, err := number.Int64()
	return n, err == nil && n >= 0 && n <= maxCount
}

// SetCount writes the property as a number of things.
func (d Doc) SetCount(name string, n int64) { d[name] = json.Number(strconv.FormatInt(n, 10)) }

// Sub returns the property when it is one object, or a list of just one.
func (d Doc) Sub(name string) Doc {
	if l := d.list(name); len(l) == 1 {
		doc, _ := l[0].(Doc)
		return doc
	}
	return nil
}

// Subs returns the objects among the values of the property.
func (d Doc) Subs(name string) []Doc {
	var out []Doc
	for _, v := range d.list(name) {
		if doc, ok := v.(Doc); ok {
			out = append(out, doc)
		}
	}
	return out
}

// Words returns a natural-language property as text: the plain value, or, when that is absent, the
// first text of its language map (ActivityStreams §4.7) in the order of the tags. Keys that are no
// language tags are skipped.
func (d Doc) Words(name string) string {
	if d[name] != nil {
		return d.Text(name)
	}
	byLanguage, _ := d[name+"Map"].(Doc)
	for _, tag := range slices.Sorted(maps.Keys(byLanguage)) {
		if s := byLanguage.Text(tag); s != "" && languageTag.MatchString(tag) {
			return s
		}
	}
	return ""
}

// languageTag is the form of a well-formed tag (RFC 5646 §2.1).
var languageTag = regexp.MustCompile(`^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$`)

// IsLanguage reports whether s has the form of a language tag.
func IsLanguage(s string) bool { return languageTag.MatchString(s) }

// list returns the values of a property.
func (d Doc) list(name string) []any { return valuesOf(d[name]) }

// valuesOf returns the values of a property: ActivityStreams lets it have one, many or none (§4).
func valuesOf(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// aliasedProperty returns the property that JSON-LD also knows by its keyword: id as @id, type as
// @type. Only one of the two may be there, unless they say the same.
func (d Doc) aliasedProperty(name string) (any, error) {
	v, keyword := d[name], d["@"+name]
	if v != nil && keyword != nil && !reflect.DeepEqual(v, keyword) {
		return nil, fault.New(fault.Invalid, name+" and @"+name+" contradict each other").At("/" + name)
	}
	if v == nil {
		v = keyword
	}
	return v, nil
}

// maxType is the longest type taken, in bytes. Like MaxID it keeps rows within what an index can
// hold.
const maxType = 255

// Type returns the type of the document in its short form; absent is empty. Of several types the
// most telling one counts, and of those the first: a name of ActivityStreams (no colon), then one
// of the base types, then any.
func (d Doc) Type() (string, error) {
	v, err := d.aliasedProperty("type")
	if err != nil {
		return "", err
	}
	best := ""
	for _, v := range valuesOf(v) {
		s, ok := v.(string)
		if !ok || s == "" || len(s) > maxType {
			return "", fault.New(fault.Invalid, "a type must be a text of 1 to 255 bytes").At("/type")
		}
		s = strings.TrimPrefix(strings.TrimPrefix(s, asPrefix), "as:")
		if rankType(s) > rankType(best) {
			best = s
		}
	}
	return best, nil
}

// rankType ranks a type by how specific it is.
func rankType(name string) int {
	switch {
	case name == "":
		return 0
	case strings.Contains(name, ":"):
		return 1
	case name == "Object", name == "Activity", name == "IntransitiveActivity", name == "Link":
		return 2
	default:
		return 3
	}
}

// ID returns the id of the document, empty when it has none (a transient or anonymous object).
func (d Doc) ID() (ID, error) {
	v, err := d.aliasedProperty("id")
	if err != nil || v == nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fault.New(fault.Invalid, "an id must be a text").At("/id")
	}
	return ParseID(s)
}

// Ref is a reference to a thing: its id, or the embedded thing.
type Ref struct {
	ID  ID  // empty for an embedded object without id
	Doc Doc // nil when only the id was given
}

// IsZero reports whether the reference is empty.
func (r Ref) IsZero() bool { return r.ID == "" && r.Doc == nil }

// Type returns the type of what is embedded, empty when only the id is known or the type is
// malformed.
func (r Ref) Type() string {
	t, err := r.Doc.Type()
	if err != nil {
		return ""
	}
	return t
}

// Refs returns the values of a property as mentions. A number or a truth value there is refused
// (ActivityStreams §4).
func (d Doc) Refs(name string) ([]Ref, error) {
	var out []Ref
	for _, v := range d.list(name) {
		r, err := toRef(v)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, name+" names nothing that can be named", err).At("/" + name)
		}
		if !r.IsZero() {
			out = append(out, r)
		}
	}
	return out, nil
}

func toRef(v any) (Ref, error) {
	switch v := v.(type) {
	case nil:
		return Ref{}, nil
	case string:
		id, err := parseAddress(v)
		return Ref{ID: id}, err
	case Doc:
		id, err := v.ID()
		if err == nil && id == "" && v.isLink() { // a Link stands for what it points to
			id, err = ParseID(v.Text("href"))
		}
		return Ref{ID: id, Doc: v}, err
	default:
		return Ref{}, fault.New(fault.Invalid, "neither a text nor an object")
	}
}

// isLink reports whether the document is a Link (ActivityStreams vocabulary §3.4) with a target,
// and no object without id.
func (d Doc) isLink() bool {
	t, err := d.Type()
	return err == nil && d.Text("href") != "" && (t == "" || t == "Link" || t == "Mention" || t == "Hashtag")
}

// Ref returns the only value of a property. Two values are refused: this engine takes activities
// of one actor about one thing (decision 33).
func (d Doc) Ref(name string) (Ref, error) {
	refs, err := d.Refs(name)
	if err != nil || len(refs) == 0 {
		return Ref{}, err
	}
	if len(refs) > 1 {
		return Ref{}, fault.New(fault.Invalid, "several values of "+name+" are not taken").At("/" + name)
	}
	return refs[0], nil
}

// IDs returns the ids in a property, Public in its full form, each once and in order. Texts that
// are no id for this engine (did:, acct:) are skipped; numbers and truth values are refused.
func (d Doc) IDs(name string) ([]ID, error) {
	var out []ID
	seen := map[ID]bool{}
	for _, v := range d.list(name) {
		switch v.(type) {
		case string, Doc, nil:
		default:
			return nil, fault.New(fault.Invalid, name+" must hold ids").At("/" + name)
		}
		if r, err := toRef(v); err == nil && r.ID != "" && !seen[r.ID] {
			seen[r.ID] = true
			out = append(out, r.ID)
		}
	}
	return out, nil
}

// parseAddress is ParseID that knows the short forms of Public (ActivityPub §5.6).
func parseAddress(s string) (ID, error) {
	if s == "as:Public" || s == "Public" {
		return Public, nil
	}
	return ParseID(s)
}

// Hides reports whether the document names hidden recipients, at any depth.
func (d Doc) Hides() bool { return hasHidden(d) }

// WithoutHidden returns the document without hidden recipients: nothing that is stored or shown
// may tell who they were (ActivityPub §6, B.11). It is d itself when there are none.
func (d Doc) WithoutHidden() Doc {
	if !d.Hides() {
		return d
	}
	return withoutHidden(d).(Doc)
}

func hasHidden(v any) bool {
	switch v := v.(type) {
	case Doc:
		for name, part := range v {
			if isBlindAddress(name) || hasHidden(part) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasHidden)
	}
	return false
}

func withoutHidden(v any) any {
	switch v := v.(type) {
	case Doc:
		open := make(Doc, len(v))
		for name, part := range v {
			if !isBlindAddress(name) {
				open[name] = withoutHidden(part)
			}
		}
		return open
	case []any:
		open := make([]any, len(v))
		for i, part := range v {
			open[i] = withoutHidden(part)
		}
		return open
	}
	return v
}

func isBlindAddress(name string) bool { return name == "bto" || name == "bcc" }

// timeForms are the ways ActivityStreams §2.3 and its errata let a time be written.
var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04"}

// Time returns the property as a time in UTC, zero when it is absent or no time of the years 1 to
// 9999.
func (d Doc) Time(name string) time.Time {
	s := strings.ToUpper(strings.Replace(d.Text(name), ",", ".", 1))
	const minutes = len("2006-01-02T15:04")
	if rest, leap := strings.CutPrefix(s[min(minutes, len(s)):], ":60"); leap { // a leap second, which Go has none of
		s = s[:minutes] + ":59" + rest
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return t.UTC()
		}
	}
	return time.Time{}
}
