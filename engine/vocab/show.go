package vocab

import (
	"maps"
	"slices"
	"strings"
)

// Show returns an object as its readers are shown it. Its words are those of readable, in the
// first of the reader's languages that there is; source.content is its text as plain text. It is
// attributed to the one author that its server speaks, if there is one. Things of others that it
// holds, and their copies, stand there by their ids. No other text in it holds HTML.
func Show(d, readable Doc, languages []string) Doc {
	out := reduced(d)
	dropWords(out)
	text := readable.Text("text")
	if text == "" {
		text = authorsText(d)
	}
	for _, w := range wordings {
		said, made := readable[w.name].(string)
		if !made {
			said = d.Text(w.name)
		}
		tags, _ := readable[w.name+"Map"].(Doc)
		if tag := language(tags, languages); tag != "" && tags.Text(tag) != said {
			said = tags.Text(tag)
			if w.name == "content" {
				text = readText(said)
			}
		}
		if said != "" {
			out[w.name] = said
		}
	}
	if text != "" {
		out["source"] = Doc{"content": text, "mediaType": PlainMedia}
	}
	id, _ := d.ID()
	if by, err := author(d, id); err == nil && by.SameOrigin(id) { // FEP-fe34
		out["attributedTo"] = string(by)
	}
	return out
}

// WithOwnAuthors returns a document that is attributed to actors of its own server alone, for no
// server speaks for others (FEP-fe34). It is d itself if that is.
func (d Doc) WithOwnAuthors() Doc {
	id, _ := d.ID()
	named := d.list("attributedTo")
	own := slices.DeleteFunc(slices.Clone(named), func(v any) bool {
		r, err := toRef(v)
		return err != nil || !r.ID.SameOrigin(id)
	})
	if len(own) == len(named) {
		return d
	}
	d = maps.Clone(d)
	switch d["attributedTo"] = own; len(own) {
	case 0:
		delete(d, "attributedTo")
	case 1:
		d["attributedTo"] = own[0]
	}
	return d
}

// ShowActivity returns an activity as readers are shown it: what it is about stands there by its
// id, unless it is the actor's own and not stored. Of makers, nobody is named but the actor. Show
// shows the object: an activity has no words but the emoji of a reaction, when its type has one.
func ShowActivity(d Doc, stored, hasEmoji bool) Doc {
	out := reduced(d)
	emoji := out.Text("content")
	dropWords(out)
	if emoji != "" && hasEmoji {
		out["content"] = clip(emoji, maxEmoji)
	}
	actor, _ := d.Ref("actor")
	if object := d.Sub("object"); object != nil && !stored && belongsTo(object, actor.ID) {
		own := part(object)
		for _, by := range makers {
			if ids, err := object.IDs(by); err == nil && len(ids) > 0 { // belongsTo has seen that there is no other
				own[by] = string(actor.ID)
			}
		}
		out["object"] = own
	}
	return out
}

// maxEmoji is how many characters are shown of an emoji or the name of one.
const maxEmoji = 64

func clip(s string, characters int) string {
	if r := []rune(s); len(r) > characters {
		return string(r[:characters])
	}
	return s
}

// makers are the members that say who made a thing.
var makers = []string{"attributedTo", "actor"}

// belongsTo reports whether an embedded object with an id is the actor's own: on its server, and
// by nobody else.
func belongsTo(object Doc, actor ID) bool {
	id, err := object.ID()
	if err != nil || id == "" || !id.SameOrigin(actor) {
		return false
	}
	for _, by := range makers {
		ids, err := object.IDs(by)
		if err != nil || len(ids) > 1 || len(ids) == 1 && !ids[0].Same(actor) {
			return false
		}
	}
	return true
}

// envelope are the members that serve the way of a document and not its readers, and the one whose
// word for it has to be proven.
var envelope = map[string]bool{"@context": true, "proof": true, "signature": true, "attributedTo": true}

// reduced returns a document with no HTML in its texts, and what it embeds of others by id alone.
// It names no author.
func reduced(d Doc) Doc {
	out := make(Doc, len(d))
	for name, v := range d {
		if envelope[name] || isBlindAddress(name) || strings.ContainsRune(name, '<') {
			continue
		}
		if v = reduce(name, v); v != nil {
			out[name] = v
		}
	}
	return out
}

// parts are the members whose things are a document's own, also when they have ids.
var parts = map[string]bool{"tag": true, "attachment": true, "oneOf": true, "anyOf": true, "icon": true, "image": true, "url": true}

func reduce(name string, v any) any {
	switch v := v.(type) {
	case string:
		return PlainText(v)
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			if one = reduce(name, one); one != nil {
				out = append(out, one)
			}
		}
		return out
	case Doc:
		return embedded(name, v)
	}
	return v
}

// embedded returns what is shown of a thing within another: its id when it has one and is no part.
// A copy of what somebody wrote is not shown at all when nobody can ask for it by an id. Of words,
// only names are.
func embedded(name string, d Doc) any {
	id, err := d.ID()
	switch {
	case err == nil && id != "" && (!parts[name] || isWork(d)):
		return string(id)
	case parts[name]:
		return part(d)
	case err == nil && d.isLink():
		return d.Text("href")
	case err != nil || isWork(d):
		return nil
	}
	return part(d)
}

// isWork reports whether a thing says who made it.
func isWork(d Doc) bool { return d["attributedTo"] != nil || d["actor"] != nil }

func part(d Doc) Doc {
	out := reduced(d)
	delete(out, "actor")
	name := out["name"]
	if dropWords(out); name != nil {
		out["name"] = name
	}
	return out
}

func dropWords(d Doc) {
	for _, w := range wordings {
		delete(d, w.name)
		delete(d, w.name+"Map")
	}
	delete(d, "source")
}
