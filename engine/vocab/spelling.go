package vocab

import (
	"maps"
	"slices"
)

// Spelling says how peers write those of their ids that they do not write in canonical form. Peers
// compare ids as texts: a document that leaves names things as their own servers do.
type Spelling map[ID]string

// Add notes how an id is written, if that is not its canonical form, and returns the spelling,
// which may be nil before.
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

// writtenID returns the id of a document as it stands there.
func (d Doc) writtenID() string {
	if s := d.Text("id"); s != "" {
		return s
	}
	return d.Text("@id")
}

// naming are the properties that name something by its id, or embed it.
var naming = []string{"actor", "object", "target", "attributedTo", "inReplyTo", "to", "cc", "bto", "bcc", "audience", "tag"}

// WithCanonicalIDs returns the document with what it names in canonical form, as it is stored: the
// database looks for ids as texts. Its own id stays as written. It is d itself, unchanged, when
// nothing is written otherwise, as in nearly all.
func (d Doc) WithCanonicalIDs() (_ Doc, changed bool) {
	return d.respelled(func(s string) string {
		if plain(s) > 0 {
			return s
		}
		id, err := ParseID(s)
		if err != nil {
			return s
		}
		return string(id)
	}, 0)
}

// Spelled returns the document with what it names, and what it embeds, written as their servers do.
func (d Doc) Spelled(s Spelling) Doc {
	if len(s) == 0 {
		return d
	}
	out, _ := d.respelled(func(id string) string {
		if written, ok := s[ID(id)]; ok {
			return written
		}
		return id
	}, maxDepth)
	return out
}

// respelled changes the ids that d names; with depth also within what it embeds, whose own ids are
// changed in any case.
func (d Doc) respelled(change func(string) string, depth int) (_ Doc, changed bool) {
	var out Doc
	for _, name := range naming {
		v, ok := respelled(d[name], change, depth)
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

// respelled changes one value of such a property, and reports whether it is another one then. It
// copies what it changes.
func respelled(v any, change func(string) string, depth int) (any, bool) {
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
		v, ok := respelled(v, change, depth)
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
		if v, ok := respelled(d[name], change, depth-1); ok {
			set(name, v)
		}
	}
	return d, changed
}
