package vocab

import (
	"maps"
	"slices"
)

// QuoteAuthorization is the type of a stamp: an author's word that another post may quote one of
// the author's own (FEP-044f).
const QuoteAuthorization = "QuoteAuthorization"

// authorization is the member in which a post claims a stamp for what it quotes.
const authorization = "quoteAuthorization"

// quoteNames are the members in which posts say what they quote: FEP-044f's, and those of before
// it.
var quoteNames = []string{"quote", "quoteUrl", "quoteUri", "_misskey_quote"}

// quoteRelation tells a link to what is quoted from other links to objects (FEP-e232).
const quoteRelation = "https://misskey-hub.net/ns#_misskey_quote"

// QuoteOf returns the id of what a post quotes, in whichever form it says so; empty when it quotes
// nothing.
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

// ClaimedStamp returns the id of the stamp that a post claims for its quote, empty when it claims
// none that the server of what it quotes could have issued.
func ClaimedStamp(d Doc) ID {
	quoted := QuoteOf(d)
	stamp, err := d.Ref(authorization)
	if err != nil || quoted == "" || !stamp.ID.SameOrigin(quoted) {
		return ""
	}
	return stamp.ID
}

// Stamp is what a QuoteAuthorization says.
type Stamp struct {
	Author  ID // of what is quoted
	Quoting ID // the post that quotes
	Quoted  ID
}

// StampOf reads a stamp. It is the zero Stamp, which approves of nothing, when o is none.
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

// Approves reports whether the author of what is quoted lets the post quote it.
func (s Stamp) Approves(quoting, quoted ID) bool {
	return s.Author != "" && s.Quoting != "" && s.Quoting.Same(quoting) && s.Quoted != "" && s.Quoted.Same(quoted) && s.Author.SameOrigin(quoted)
}

// Doc returns the stamp as it is served under an id, to everybody. It names who asked for it.
func (s Stamp) Doc(id, asker ID) Doc {
	return Doc{"id": string(id), "type": QuoteAuthorization, "attributedTo": string(s.Author), "interactingObject": string(s.Quoting),
		"interactionTarget": string(s.Quoted), "to": []any{string(asker)}, "cc": []any{string(Public)}}
}

// Approved returns the object as one whose quote the author of what it quotes approves of: what is
// stored of it keeps the claim of a stamp.
func (o *Object) Approved() *Object {
	approved := *o
	approved.stored, approved.approved = &stored{}, true
	return &approved
}

// withoutClaim returns a document that claims no stamp: nothing that is stored claims one that
// nobody has verified. It is d itself if it claims none.
func (d Doc) withoutClaim() Doc {
	if _, claims := d[authorization]; !claims {
		return d
	}
	d = maps.Clone(d)
	delete(d, authorization)
	return d
}

// quoteTerms are the terms of what is said of quotes, in documents of ours.
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

// idTerm is the term of a member that holds an id.
func idTerm(id string) Doc { return Doc{"@id": id, "@type": "@id"} }

// WithQuoteTerms returns a context for a document of ours: with the terms of quotes, if the
// document, or what it embeds, has any.
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
