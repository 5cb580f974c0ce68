package vocab

import (
	"slices"
	"strings"
)

// Show returns an object as its readers are shown it. Its words are those of readable, in the first of the reader's
// languages that there is; source.content is its text as plain text. It is attributed to actors of its own server alone.
// Things of others that it holds, and their copies, stand there by their ids. No other text in it holds HTML.
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
	showAuthors(out, d)
	return out
}

// showAuthors keeps those of attributedTo the object's server speaks for (FEP-fe34).
func showAuthors(out, d Doc) {
	id, _ := d.ID()
	named, _ := d.IDs("attributedTo")
	var own []any
	for _, a := range named {
		if a.SameOrigin(id) {
			own = append(own, string(a))
		}
	}
	switch delete(out, "attributedTo"); len(own) {
	case 0:
	case 1:
		out["attributedTo"] = own[0]
	default:
		out["attributedTo"] = own
	}
}

// ShowActivity returns an activity as readers are shown it: what it is about stands there by its id, unless it is the
// actor's own and not stored. What was written is shown by Show: an activity has no words but the emoji of a reaction.
func ShowActivity(d Doc, stored bool) Doc {
	out := reduced(d)
	emoji := out.Text("content")
	dropWords(out)
	if kind, _ := d.Type(); emoji != "" && slices.Contains(reactions, kind) {
		out["content"] = clip(emoji, maxEmoji)
	}
	actor, _ := d.Ref("actor")
	if object := d.Sub("object"); object != nil && !stored && belongsTo(object, actor.ID) {
		out["object"] = part(object)
	}
	return out
}

// reactions are the activities whose content is an emoji or the name of one, of which maxEmoji characters are shown.
var reactions = []string{"Like", "Dislike", "EmojiReact"}

const maxEmoji = 64

func clip(s string, characters int) string {
	if r := []rune(s); len(r) > characters {
		return string(r[:characters])
	}
	return s
}

// belongsTo reports whether an embedded object with an id is the actor's own: on its server, and by nobody else.
func belongsTo(object Doc, actor ID) bool {
	id, err := object.ID()
	if err != nil || id == "" || !id.SameOrigin(actor) {
		return false
	}
	for _, by := range []string{"attributedTo", "actor"} {
		ids, err := object.IDs(by)
		if err != nil || len(ids) > 1 || len(ids) == 1 && !ids[0].Same(actor) {
			return false
		}
	}
	return true
}

// envelope are the members that serve the way of a document and not its readers.
var envelope = map[string]bool{"@context": true, "proof": true, "signature": true}

// reduced returns a document with no HTML in its texts, and what it embeds of others by id alone.
func reduced(d Doc) Doc {
	out := make(Doc, len(d))
	for name, v := range d {
		if envelope[name] || hidesWhom(name) || strings.ContainsRune(name, '<') {
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

// embedded returns what is shown of a thing within another: its id when it has one and is no part. A copy of what somebody
// wrote is not shown at all when nobody can ask for it by an id. Of words, only names are.
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
