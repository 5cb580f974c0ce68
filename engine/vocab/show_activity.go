package vocab

import (
	"maps"
	"strings"
	"unicode"
)

// activityMembers are the members of an activity that readers are shown. Their values are ids,
// types and times.
var activityMembers = []string{"id", "@id", "type", "@type", "actor", "object", "target", "origin", "result", "instrument",
	"to", "cc", "audience", "published", "updated"}

// friendshipMembers are the members of a Relationship that readers are shown beside its id and
// type.
var friendshipMembers = []string{"subject", "relationship", "object"}

// ShowActivity returns an activity in the form that readers are shown. It has the members in
// activityMembers. Embedded documents are replaced by their ids, or by their types if they have no
// id. An object that is the actor's own and not stored is shown by its id and type, with the actor
// as its author. A Relationship also has its friendshipMembers. The parameter stored says whether
// the object is stored; a stored object is shown by Show instead. The only text of the activity is
// the emoji of a reaction, with the tag that has its picture. It is shown if hasEmoji is true.
// Words are never shown, because activities of many types reach the user without waiting among the
// message requests.
func ShowActivity(d Doc, stored, hasEmoji bool) Doc {
	out := showMembers(d, activityMembers...)
	for _, name := range []string{"published", "updated"} {
		if d.Time(name).IsZero() {
			delete(out, name)
		}
	}
	actor, _ := d.Ref("actor")
	if object := d.Sub("object"); object != nil && !stored {
		if shown := showUnstored(object, actor.ID); shown != nil {
			out["object"] = shown
		}
	}
	if hasEmoji {
		showEmoji(out, d)
	}
	return out
}

// showMembers returns a document with these members alone.
func showMembers(d Doc, names ...string) Doc {
	out := make(Doc, len(names))
	for _, name := range names {
		if v := showReference(name, d[name]); v != nil {
			out[name] = v
		}
	}
	return out
}

// showReference returns the shown form of an id, a type, a time, an address or an embedded
// document, or of a list of these. The parameter name is the member that holds it. It returns nil
// for a text with spaces and for one that is longer than an id, because such a text is none of
// these, and for a text that showText does not show.
func showReference(name string, v any) any {
	switch v := v.(type) {
	case string:
		if s, isShown := showText(name, v).(string); isShown && len(s) <= MaxID && !strings.ContainsFunc(s, unicode.IsSpace) {
			return s
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			if one = showReference(name, one); one != nil {
				out = append(out, one)
			}
		}
		return out
	case Doc:
		return showIdentity(v)
	}
	return nil
}

// showIdentity returns the id of an embedded document, the address of a link, or the type of a
// document without an id. It returns nil for a document that has no id and names its maker,
// because its original could not be fetched.
func showIdentity(d Doc) any {
	id, err := d.ID()
	switch {
	case err == nil && id != "":
		return string(id)
	case err == nil && d.isLink():
		return showReference("href", d.Text("href"))
	case err != nil || isWork(d):
		return nil
	}
	if out := showMembers(d, "type", "@type"); len(out) > 0 {
		return out
	}
	return nil
}

// showUnstored returns the shown form of an embedded object that is not stored. The result is nil
// if the object is shown by showIdentity.
func showUnstored(object Doc, actor ID) Doc {
	kind, err := object.Type()
	id, _ := object.ID()
	isOwn, isFriendship := isOwnedBy(object, actor), err == nil && kind == Relationship
	if !isOwn && (!isFriendship || id != "" || isWork(object)) {
		return nil
	}
	out := showMembers(object, "id", "@id", "type", "@type")
	if isFriendship {
		maps.Copy(out, showMembers(object, friendshipMembers...))
	}
	for _, by := range makers {
		if ids, err := object.IDs(by); err == nil && len(ids) > 0 { // isOwnedBy has checked that there is no other maker
			out[by] = string(actor)
		}
	}
	return out
}

// maxEmoji is the number of characters that are shown of an emoji.
const maxEmoji = 64

// showEmoji sets the emoji of a reaction in out, and the tag that has its picture. Letters are no
// emoji without such a tag.
func showEmoji(out, d Doc) {
	said := plainLine(PlainText(d.Text("content")))
	if said == "" || strings.ContainsFunc(said, unicode.IsSpace) {
		return
	}
	if !strings.ContainsFunc(said, isWordLetter) {
		out["content"] = clipText(said, maxEmoji)
	}
	for _, tag := range d.Subs("tag") {
		name := plainLine(PlainText(tag.Text("name")))
		if kind, err := tag.Type(); err != nil || kind != "Emoji" || strings.Trim(name, ":") != strings.Trim(said, ":") {
			continue
		}
		out["content"] = clipText(said, maxEmoji)
		shown := showMembers(tag, "id", "type", "@type")
		shown["name"] = clipText(name, maxEmoji)
		if icon := tag.Sub("icon"); icon != nil {
			shown["icon"] = showMembers(icon, "type", "mediaType", "url")
		}
		out["tag"] = []any{shown}
		return
	}
}

// isWordLetter reports whether a character belongs to words. Of all emojis only ℹ is a letter.
func isWordLetter(r rune) bool { return unicode.IsLetter(r) && r != 'ℹ' }

func clipText(s string, characters int) string {
	if r := []rune(s); len(r) > characters {
		return string(r[:characters])
	}
	return s
}

// makers are the members that name the maker of an object.
var makers = []string{"attributedTo", "actor"}

// isOwnedBy reports whether an embedded object is the actor's own. It must have an id on the
// actor's server, and must not name another maker.
func isOwnedBy(object Doc, actor ID) bool {
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
