package vocab

import (
	"cmp"
	"maps"
	"slices"
)

// Spelling maps ids to the form in which their own servers write them, if that form is not
// canonical. Peers compare ids as text, so a document that is sent must have ids in the form of
// their own servers.
type Spelling map[ID]string

// Add adds the written form of an id to s, unless that form is canonical, and returns s. If s is
// nil and something is added, Add returns a new Spelling.
func (s Spelling) Add(id ID, written string) Spelling {
	if written == "" || written == string(id) {
		return s
	}
	if s == nil {
		s = Spelling{}
	}
	s[id] = written
	return s
}

// writtenID returns the id of a document in the form in which the document has it.
func (d Doc) writtenID() string {
	if s := d.Text("id"); s != "" {
		return s
	}
	return d.Text("@id")
}

// naming are the properties whose values are ids or embedded documents.
var naming = []string{"actor", "object", "target", "attributedTo", "inReplyTo", "to", "cc", "bto", "bcc", "audience", "tag",
	"instrument", "quote", "quoteUrl", "quoteUri", "_misskey_quote", authorization, "interactingObject", "interactionTarget"}

// WithCanonicalIDs returns the document with canonical ids in the properties in naming. Documents
// are stored in this form, because the database compares ids as text. The document's own id stays
// as written. It returns d itself if nothing changes, as with nearly all documents.
func (d Doc) WithCanonicalIDs() (_ Doc, changed bool) {
	return d.respellIDs(func(s string) string {
		if plainOrigin(s) > 0 {
			return s
		}
		id, err := ParseID(s)
		if err != nil {
			return s
		}
		return string(id)
	}, 0)
}

// WithPlainTypes returns the document with its types, and those of its object, of the object's own
// object and of its tags, in the member type (not @type) and in their short form. An object that
// stands alone in a list comes out of the list. Documents are stored in this form, because the
// database finds types and objects in no other. It returns d itself if nothing changes.
func (d Doc) WithPlainTypes() (_ Doc, changed bool) { return d.withPlainTypes(2) }

// withPlainTypes does what WithPlainTypes does, for objects at so many levels.
func (d Doc) withPlainTypes(levels int) (_ Doc, changed bool) {
	set := func(name string, v any) {
		if !changed {
			d, changed = maps.Clone(d), true
		}
		d[name] = v
	}
	v, err := d.aliasedProperty("type")
	if plain, differs := plainType(v); err == nil && (differs || d["@type"] != nil) {
		set("type", plain)
		delete(d, "@type")
	}
	if levels == 0 {
		return d, changed
	}
	if o := d.Sub("object"); o != nil {
		_, isListed := d["object"].([]any)
		if o, differs := o.withPlainTypes(levels - 1); differs || isListed {
			set("object", o)
		}
	}
	for n, v := range d.list("tag") {
		tag, _ := v.(Doc)
		if tag, differs := tag.withPlainTypes(0); differs {
			tags := slices.Clone(d.list("tag"))
			tags[n] = tag
			set("tag", tags)
		}
	}
	return d, changed
}

// plainType returns the value of a type in its short form, and reports whether that differs.
func plainType(v any) (_ any, differs bool) {
	switch v := v.(type) {
	case string:
		short := cmp.Or(shortType(v), v) // a prefix alone stays
		return short, short != v
	case []any:
		list := slices.Clone(v)
		for n := range list {
			plain, changed := plainType(list[n])
			list[n], differs = plain, differs || changed
		}
		return list, differs
	}
	return v, false
}

// Spelled returns the document with each id that it names in the form that s has for that id.
func (d Doc) Spelled(s Spelling) Doc {
	if len(s) == 0 {
		return d
	}
	out, _ := d.respellIDs(func(id string) string {
		if written, ok := s[ID(id)]; ok {
			return written
		}
		return id
	}, maxDepth)
	return out
}

// Renamed returns the document with the ids that it names replaced by the results of change, at
// any depth, and reports whether the document changed. The document's own id stays. A document
// with a proof or a signature, its own or that of its object, stays as it is, because a change
// would invalidate the proof or signature.
func (d Doc) Renamed(change func(string) string) (_ Doc, changed bool) {
	for _, part := range []Doc{d, d.Sub("object")} {
		if part["proof"] != nil || part["signature"] != nil {
			return d, false
		}
	}
	return d.respellIDs(change, maxDepth)
}

// respellIDs changes the ids that d names, and the ids of documents that are embedded in d. It
// also changes the ids that embedded documents name. The parameter depth is the number of levels
// to which it does that.
func (d Doc) respellIDs(change func(string) string, depth int) (_ Doc, changed bool) {
	var out Doc
	for _, name := range naming {
		v, ok := respellValue(d[name], change, depth)
		if !ok {
			continue
		}
		if out == nil {
			out = maps.Clone(d)
		}
		out[name] = v
	}
	if out == nil {
		return d, false
	}
	return out, true
}

// respellValue changes one value of a property in naming, and reports whether it did. It changes
// a copy, not v itself.
func respellValue(v any, change func(string) string, depth int) (any, bool) {
	switch v := v.(type) {
	case string:
		s := change(v)
		return s, s != v
	case []any:
		return respelledList(v, change, depth)
	case Doc:
		return respelledDoc(v, change, depth)
	}
	return v, false
}

func respelledList(list []any, change func(string) string, depth int) (any, bool) {
	changed := false
	for i, v := range list {
		v, ok := respellValue(v, change, depth)
		if !ok {
			continue
		}
		if !changed {
			list, changed = slices.Clone(list), true
		}
		list[i] = v
	}
	return list, changed
}

func respelledDoc(d Doc, change func(string) string, depth int) (any, bool) {
	changed := false
	set := func(name string, v any) {
		if !changed {
			d, changed = maps.Clone(d), true
		}
		d[name] = v
	}
	for _, name := range []string{"id", "@id", "href"} {
		if s, ok := d[name].(string); ok && change(s) != s {
			set(name, change(s))
		}
	}
	if depth == 0 {
		return d, changed
	}
	for _, name := range naming {
		if v, ok := respellValue(d[name], change, depth-1); ok {
			set(name, v)
		}
	}
	return d, changed
}
