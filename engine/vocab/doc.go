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

// Text returns the property as text, or an empty text if it is absent or not a string.
func (d Doc) Text(name string) string {
	s, _ := d[name].(string)
	return s
}

// Flag returns the property as a boolean, or false if it is absent or not a boolean.
func (d Doc) Flag(name string) bool {
	b, _ := d[name].(bool)
	return b
}

// maxCount is the highest integer that every reader of JSON represents exactly (RFC 7493 §2.2).
const maxCount = 1<<53 - 1

// Count returns the property as an integer. ok is true if it is an integer from 0 to maxCount.
func (d Doc) Count(name string) (n int64, ok bool) {
	number, _ := d[name].(json.Number)
	n, err := number.Int64()
	return n, err == nil && n >= 0 && n <= maxCount
}

// SetCount sets the property to an integer that Count reads.
func (d Doc) SetCount(name string, n int64) { d[name] = json.Number(strconv.FormatInt(n, 10)) }

// Sub returns the property if it is one object or a list of one object, else nil.
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

// Words returns a natural-language property as text. If the plain value is absent, Words returns
// the first text of the language map (ActivityStreams §4.7), in the sorted order of the tags. It
// skips keys that are not language tags.
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

// languageTag is the form of a language tag (RFC 5646 §2.1).
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

// aliasedProperty returns a property that may also have the name of its JSON-LD keyword: id may
// be @id, and type @type. It refuses a document that has both with different values.
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

// maxType is the greatest length of a type that is accepted, in bytes. Like MaxID it ensures that
// a row fits into an index.
const maxType = 255

// Type returns the type of the document in its short form, or an empty text if it has none. Of
// several types it returns the most specific one. Names without a colon, which are those of
// ActivityStreams, are the most specific, except the base types such as Object. The base types
// come next, and names with a colon come last. Of equally specific types it returns the first.
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
		s = shortType(s)
		if rankType(s) > rankType(best) {
			best = s
		}
	}
	return best, nil
}

// shortType returns a type of ActivityStreams without its prefix.
func shortType(s string) string { return strings.TrimPrefix(strings.TrimPrefix(s, asPrefix), "as:") }

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

// IsActivity reports whether the document is an activity: it has an actor and an object. An actor
// alone is not enough, because posts of Pleroma and Mobilizon have an actor, too.
func (d Doc) IsActivity() bool { return d["actor"] != nil && d["object"] != nil }

// ID returns the id of the document. It returns an empty id for a document without an id, which is
// a transient or anonymous object. An empty text counts as no id.
func (d Doc) ID() (ID, error) {
	v, err := d.aliasedProperty("id")
	if err != nil || v == nil {
		return "", err
	}
	s, ok := v.(string)
	switch {
	case !ok:
		return "", fault.New(fault.Invalid, "an id must be a text").At("/id")
	case s == "":
		return "", nil
	}
	return ParseID(s)
}

// Ref is a reference by an id or by an embedded document.
type Ref struct {
	ID  ID  // empty for an embedded object without id
	Doc Doc // nil when only the id was given
}

// IsZero reports whether the reference is empty.
func (r Ref) IsZero() bool { return r.ID == "" && r.Doc == nil }

// Type returns the type of the embedded document. It is empty when there is only the id, or when
// the type is malformed.
func (r Ref) Type() string {
	t, err := r.Doc.Type()
	if err != nil {
		return ""
	}
	return t
}

// Refs returns the values of a property as references. It refuses a number, a boolean
// (ActivityStreams §4), and a text or an id that ParseID refuses. It skips an empty text.
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
		if v == "" {
			return Ref{}, nil
		}
		id, err := parseAddress(v)
		return Ref{ID: id}, err
	case Doc:
		id, err := v.ID()
		if err == nil && id == "" && v.isLink() { // a Link refers to its href
			id, err = ParseID(v.Text("href"))
		}
		return Ref{ID: id, Doc: v}, err
	default:
		return Ref{}, fault.New(fault.Invalid, "neither a text nor an object")
	}
}

// isLink reports whether the document is a Link with an href (ActivityStreams vocabulary §3.4), as
// opposed to an object that has no id.
func (d Doc) isLink() bool {
	t, err := d.Type()
	return err == nil && d.Text("href") != "" && (t == "" || t == "Link" || t == "Mention" || t == "Hashtag")
}

// Ref returns the only value of a property. It refuses several values, because this engine
// accepts only activities with one actor and one object (decision 33).
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

// IDs returns the ids in a property, each once and in order, with Public in its full form. It
// skips texts that are not ids for this engine (did:, acct:), and refuses numbers and booleans.
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

// parseAddress is ParseID, and also accepts the short forms of Public (ActivityPub §5.6).
func parseAddress(s string) (ID, error) {
	if s == "as:Public" || s == "Public" {
		return Public, nil
	}
	return ParseID(s)
}

// Hides reports whether the document has the members bto or bcc, for hidden recipients, at any
// depth.
func (d Doc) Hides() bool { return hasHidden(d) }

// WithoutHidden returns the document without hidden recipients, which must not be stored or
// shown (ActivityPub §6, B.11). It returns d itself if there are none.
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

// timeForms are the forms of times that ActivityStreams §2.3 and its errata allow.
var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04"}

// FormatTime returns a time as the documents of this server have it: in UTC, with milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Time returns the property as a time in UTC. It is zero when the property is absent, or not a
// time in the years 1 to 9999.
func (d Doc) Time(name string) time.Time {
	s := strings.ToUpper(strings.Replace(d.Text(name), ",", ".", 1))
	const minutes = len("2006-01-02T15:04")
	if rest, leap := strings.CutPrefix(s[min(minutes, len(s)):], ":60"); leap { // a leap second, which Go does not support
		s = s[:minutes] + ":59" + rest
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return t.UTC()
		}
	}
	return time.Time{}
}
