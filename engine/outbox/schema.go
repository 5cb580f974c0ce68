package outbox

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Description describes an action and its parameters to clients.
type Description struct {
	Action      string    `json:"action"`
	Description string    `json:"description"`
	Scopes      []string  `json:"scopes"`          // the token needs one of them
	Types       []string  `json:"types,omitempty"` // object types that the action is limited to
	Params      vocab.Doc `json:"params"`          // JSON Schema 2020-12 of the parameters

	Names []Param `json:"-"` // the parameters, in the order of the documentation page
}

// Param is a parameter of an action.
type Param struct {
	Name     string
	Required bool
	Either   bool // exactly one of the parameters with Either must be given
}

// Describe returns the descriptions of all actions, sorted by name. They are derived from the
// fields of the structs that the parameters are decoded into.
func Describe() []Description {
	var all []Description
	for _, name := range Actions() {
		a := vocabulary[name]
		schema, names := describeParams(a.params)
		all = append(all, Description{Action: name, Description: a.words, Scopes: a.scopes, Types: conversation.TypesTaking(name), Params: schema, Names: names})
	}
	return all
}

// Schema returns the JSON Schema of all actions that can be dispatched.
func Schema() vocab.Doc {
	var all []any
	for _, d := range Describe() {
		all = append(all, vocab.Doc{"type": "object", "title": d.Action, "description": d.Description, "required": []any{"action", "params"}, "additionalProperties": false,
			"properties": vocab.Doc{"action": vocab.Doc{"const": d.Action}, "params": d.Params}})
	}
	return vocab.Doc{"oneOf": all}
}

// describeParams returns the schema and the parameters of a struct that a JSON object is decoded
// into. The first word of a field's schema tag names its form. Without a second word, the
// parameter is required. If the second word is "optional", the parameter may be absent. If the
// second word is "either", exactly one of the parameters with this word must be given. A third
// word names another parameter that must be given together with the field's parameter.
func describeParams(t reflect.Type) (vocab.Doc, []Param) {
	properties := vocab.Doc{}
	var names []Param
	var required, either []any
	needs := vocab.Doc{}
	for _, f := range reflect.VisibleFields(t) {
		name := paramName(f)
		if name == "" {
			continue
		}
		_, presence, _ := strings.Cut(f.Tag.Get("schema"), ",")
		presence, needed, needsMore := strings.Cut(presence, ",")
		properties[name] = paramForm(f)
		names = append(names, Param{name, presence == "", presence == "either"})
		if needsMore {
			needs[name] = []any{needed}
		}
		switch presence {
		case "":
			required = append(required, name)
		case "either":
			either = append(either, vocab.Doc{"required": []any{name}})
		}
	}
	schema := vocab.Doc{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	if len(either) > 0 {
		schema["oneOf"] = either
	}
	if len(needs) > 0 {
		schema["dependentRequired"] = needs
	}
	return schema, names
}

// paramName returns the name of a field's parameter, or an empty text if the field is no
// parameter.
func paramName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// forms maps the form names in the schema tags to the JSON Schemas of the parameters.
var forms = map[string]vocab.Doc{
	"activity":     textForm(maxURI, "The id of what is answered.", "https://remote.example/activities/7", uri),
	"actor":        textForm(maxURI, "An actor's URI or handle.", "@bob@remote.example"),
	"address":      textForm(maxURI, "Where the file lies.", "https://img.example/cat.png", uri),
	"alt":          textForm(maxAltText, "Its words for people who do not see it.", "A cat asleep on a keyboard"),
	"conversation": textForm(36, "The id of a conversation.", "019c8052-5f00-7000-8000-000000000001", vocab.Doc{"format": "uuid"}),
	"mls":          textForm(maxSealed, "Base64 of an MLS message, or of a GroupInfo.", "AAEAAQ==", filled),
	"welcomes":     listForm(maxNamed, textForm(maxSealed, "Base64 of a Welcome for the devices that the commit adds.", "AAEAAw==", filled)),
	"added":        listForm(maxNamed, textForm(maxSealed, "Base64 of the bare key package of a device that a PrivateMessage adds.", "AAEAAQ==", filled)),
	"removed":      listForm(maxNamed, textForm(maxURI, "The id of an actor who has no device left after a PrivateMessage, or of a member who has none in the group.", "https://remote.example/users/bob", uri)),
	"groupInfo":    textForm(maxSealed, "Base64 of the GroupInfo of the epoch that the commit begins; empty for none, beside some PrivateMessages.", "AAEABA=="),
	"seq":          {"type": "integer", "minimum": 0, "description": "A number of the log of the conversation: its messages up to that are read.", "examples": []any{42}},
	"number":       {"type": "integer", "minimum": 0, "description": "A number of an entry of the timeline that is not of the log: those up to that are read.", "examples": []any{7}},
	"message":      textForm(maxContent, "Plain text, as in a note; base64 of an MLS message when the conversation is encrypted. At most 65,536 bytes.", "Hello", filled),
	"content":      textForm(maxContent, "Plain text. Addresses in it become links, handles mentions and #tags hashtags. At most 65,536 bytes in UTF-8, and 128 KiB of the HTML that is made of it, where a line break, < and > take 4 bytes, and & and quotes 5.", "Hello @bob@remote.example", filled),
	"group":        textForm(maxGroupName, "Letters, digits, hyphens and underscores. Nobody else learns it.", "close-friends", filled),
	"cursor":       textForm(64, "The next of a page of the feed: everything up to the last item of that page is read, and everything older.", "AgAGSx_EAAAAAZyAUl8AcAAAgAAAAAAAAAEAAAAAAAAAAAAA"),
	"entry":        textForm(36, "The id of an item of the feed.", "019c8052-5f00-7000-8000-000000000001", vocab.Doc{"format": "uuid"}),
	"feed":         {"type": "string", "enum": listTexts(feed.All), "examples": []any{feed.Main}},
	"id":           textForm(maxURI, "The id of an object, or of an activity that made it, changed it or passed it on.", "https://remote.example/notes/7", uri),
	"language":     textForm(35, "The language of the content; empty for none.", "en"),
	"mediaType":    textForm(73, "It tells an image from a video, a sound or another file.", "video/mp4"),
	"recipients":   listForm(maxNamed, textForm(maxURI, "An actor's URI or handle, the id of a group of the user's, Public (or https://www.w3.org/ns/activitystreams#Public), or the id of the user's followers: the user's own id and /followers.", "@bob@remote.example")),
	"sensitive":    {"type": "boolean", "description": "It is shown only to people who ask for it.", "examples": []any{true}},
	"stream":       textForm(maxURI, "The id of a stream of the user's, or featured: what the user shows first.", "featured"),
	"streamName":   textForm(maxStreamName, "A line of text.", "Cats", filled),
	"summary":      textForm(maxSummary, "A content warning; empty for none.", "Spiders"),
	"tags":         listForm(maxTags, textForm(maxTag, "A tag, without or with its #.", "cats", filled)),
	"title":        textForm(maxTitle, "The title.", "On cats", filled),
	"kind":         {"type": "string", "enum": listTexts(publishedTypes), "examples": []any{"Video"}},
	"visibility":   {"type": "string", "enum": listTexts(audience.Visibilities), "examples": []any{audience.Public}},
	"friendship":   relationshipForm("An independent type of friendship."),
	"relationship": relationshipForm("A follow, or a type of friendship.", followingType),
	"about":        textForm(registry.MaxSummary, "About the person, as plain text; empty for nothing.", "I like cats. #cats"),
	"fieldName":    textForm(registry.MaxFieldName, "Such as what a link leads to.", "Home", filled),
	"fieldValue":   textForm(registry.MaxFieldValue, "Plain text; an https address becomes a link.", "https://alice.example/"),
	"person":       textForm(registry.MaxName, "The name that people see; empty for none.", "Alice Example"),
	"picture":      textForm(maxURI, "Where a picture lies; empty for none.", "https://alice.example/me.png"),
	"focalPoint": {"type": "array", "minItems": 2, "maxItems": 2, "items": vocab.Doc{"type": "number", "minimum": -1, "maximum": 1},
		"description": "The middle of what is seen when it is cut, from -1, -1 at the lower left to 1, 1.", "examples": []any{[]any{0.2, -0.4}}},
}

const maxURI = 1024

// Further constraints on a text.
var (
	filled = vocab.Doc{"minLength": 1}
	uri    = vocab.Doc{"format": "uri"}
)

func textForm(most int, words, example string, more ...vocab.Doc) vocab.Doc {
	d := vocab.Doc{"type": "string", "maxLength": most, "description": words, "examples": []any{example}}
	for _, m := range more {
		maps.Copy(d, m)
	}
	return d
}

func listForm(most int, item vocab.Doc) vocab.Doc {
	return vocab.Doc{"type": "array", "maxItems": most, "items": item}
}

// relationshipForm returns the form of a parameter that names a type of friendship, in any of its
// spellings, or one of the other relationships.
func relationshipForm(words string, others ...string) vocab.Doc {
	kinds := slices.Concat(others, vocab.FriendshipSpellings())
	return vocab.Doc{"type": "string", "enum": listTexts(kinds), "description": words, "examples": []any{vocab.FriendOf}}
}

// paramForm returns the JSON Schema of a field's parameter.
func paramForm(f reflect.StructField) vocab.Doc {
	name, _, _ := strings.Cut(f.Tag.Get("schema"), ",")
	switch name {
	case "attachments":
		one, _ := describeParams(reflect.TypeFor[attachment]())
		return listForm(maxAttached, one)
	case "file":
		one, _ := describeParams(reflect.TypeFor[mediaFile]())
		one["description"] = "The file that an Audio or Video is; a Product has none."
		return one
	case "fields":
		one, _ := describeParams(reflect.TypeFor[profileField]())
		return listForm(registry.MaxFields, one)
	}
	return forms[name]
}

func listTexts(texts []string) []any {
	all := make([]any, len(texts))
	for n, t := range texts {
		all[n] = t
	}
	return all
}
