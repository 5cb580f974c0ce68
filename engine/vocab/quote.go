package vocab

import (
	"maps"
	"slices"
)

// QuoteAuthorization is the type of a stamp. With a stamp, the author of a post permits one other
// post to quote it (FEP-044f).
const QuoteAuthorization = "QuoteAuthorization"

// authorization is the name of the member that holds the id of the stamp for a post's quote.
const authorization = "quoteAuthorization"

// quoteNames are the members in which posts name the post that they quote. The first is the one of
// FEP-044f; the others are older.
var quoteNames = []string{"quote", "quoteUrl", "quoteUri", "_misskey_quote"}

// quoteRelation is the rel of a link to a quoted post; other links to objects lack it
// (FEP-e232).
const quoteRelation = "https://misskey-hub.net/ns#_misskey_quote"

// QuoteOf returns the id of the post that a post quotes, or an empty id if it quotes none. QuoteOf
// reads all forms in which posts name the quoted post.
func QuoteOf(d Doc) ID {
	for _, name := range quoteNames {
		if ids, err := d.IDs(name); err == nil && len(ids) > 0 {
			return ids[0]
		}
	}
	for _, tag := range d.Subs("tag") {
		if slices.Contains(tag.list("rel"), any(quoteRelation)) {
			return IDOf(tag.Text("href"))
		}
	}
	return ""
}

// ClaimedStamp returns the id of the stamp that a post names for its quote. It returns an empty id
// if the post names no stamp, or a stamp that is not on the server of the quoted post.
func ClaimedStamp(d Doc) ID {
	quoted := QuoteOf(d)
	stamp, err := d.Ref(authorization)
	if err != nil || quoted == "" || !stamp.ID.SameOrigin(quoted) {
		return ""
	}
	return stamp.ID
}

// Stamp is a parsed QuoteAuthorization.
type Stamp struct {
	Author  ID // the author of the quoted post
	Quoting ID // the post that quotes
	Quoted  ID
}

// StampOf reads a stamp. If o is not a stamp, it returns the zero Stamp, which approves of
// nothing.
func StampOf(o *Object) Stamp {
	if o == nil || o.Type != QuoteAuthorization {
		return Stamp{}
	}
	quoting, err := o.Doc.Ref("interactingObject")
	if err != nil {
		return Stamp{}
	}
	quoted, err := o.Doc.Ref("interactionTarget")
	if err != nil {
		return Stamp{}
	}
	return Stamp{Author: o.AttributedTo, Quoting: quoting.ID, Quoted: quoted.ID}
}

// Approves reports whether the stamp permits one post to quote another. The parameter quoting is
// the id of the post with the quote, and quoted is the id of the quoted post. The stamp's author
// must be on the server of the quoted post.
func (s Stamp) Approves(quoting, quoted ID) bool {
	return s.Author != "" && s.Quoting != "" && s.Quoting.Same(quoting) && s.Quoted != "" && s.Quoted.Same(quoted) && s.Author.SameOrigin(quoted)
}

// Doc returns the stamp as a document with this id, which is served to everybody. It addresses
// the actor asker, who asked for the stamp.
func (s Stamp) Doc(id, asker ID) Doc {
	return Doc{"id": string(id), "type": QuoteAuthorization, "attributedTo": string(s.Author), "interactingObject": string(s.Quoting),
		"interactionTarget": string(s.Quoted), "to": []any{string(asker)}, "cc": []any{string(Public)}}
}

// WithStamp returns a copy of the object whose stored form keeps the id of its stamp. The caller
// must have verified that the author of the quoted post approves of the quote.
func (o *Object) WithStamp() *Object {
	approved := *o
	approved.stored, approved.approved = &stored{}, true
	return &approved
}

// HasStamp reports whether the object is a copy that WithStamp returned.
func (o *Object) HasStamp() bool { return o.approved }

// withoutClaim returns the document without the id of a stamp, because a stored document must not
// have the id of a stamp that was not verified. It returns d itself if d has no such id.
func (d Doc) withoutClaim() Doc {
	if _, claims := d[authorization]; !claims {
		return d
	}
	d = maps.Clone(d)
	delete(d, authorization)
	return d
}

// withPlainStamps returns the document with the stamp of a quote, and the post that a stamp
// approves, as ids. The database finds them in no other form. It returns d itself if nothing
// changes.
func (d Doc) withPlainStamps() Doc {
	for _, name := range []string{authorization, "interactingObject"} {
		if r, err := d.Ref(name); err == nil && r.Doc != nil && r.ID != "" {
			d = maps.Clone(d)
			d[name] = string(r.ID)
		}
	}
	return d
}

// quoteTerms returns the JSON-LD terms for quotes in documents that this engine makes.
func quoteTerms() Doc {
	return Doc{
		"fep044f":           "https://w3id.org/fep/044f#",
		QuoteRequest:        "fep044f:QuoteRequest",
		QuoteAuthorization:  "fep044f:QuoteAuthorization",
		"quote":             idTerm("fep044f:quote"),
		authorization:       idTerm("fep044f:quoteAuthorization"),
		"quoteUrl":          "as:quoteUrl",
		"_misskey_quote":    quoteRelation,
		"lwQuoteRefused":    "lw:quoteRefused",
		"gts":               "https://gotosocial.org/ns#",
		"interactionPolicy": "gts:interactionPolicy",
		"canQuote":          "gts:canQuote",
		"automaticApproval": idTerm("gts:automaticApproval"),
		"interactingObject": idTerm("gts:interactingObject"),
		"interactionTarget": idTerm("gts:interactionTarget"),
	}
}

// idTerm returns the JSON-LD term of a member that holds an id.
func idTerm(id string) Doc { return Doc{"@id": id, "@type": "@id"} }

// WithQuoteTerms returns the context for a document that this engine makes. It adds the terms
// for quotes if the document, or an object embedded in it, uses any.
func WithQuoteTerms(context []any, d Doc) []any {
	if saysOfQuotes(d) {
		return append(context, quoteTerms())
	}
	return context
}

func saysOfQuotes(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, saysOfQuotes)
	case Doc:
		kind := v.Text("type")
		return kind == QuoteRequest || kind == QuoteAuthorization || v["interactionPolicy"] != nil || v["quote"] != nil ||
			saysOfQuotes(v["object"]) || saysOfQuotes(v["orderedItems"])
	}
	return false
}
