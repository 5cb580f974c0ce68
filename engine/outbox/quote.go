package outbox

import (
	"context"
	"html"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// findQuoted finds the object that the note quotes. It refuses an object that is not public.
func (n *note) findQuoted(ctx context.Context, f *finder, x *exchange, value string) error {
	if value == "" {
		return nil
	}
	obj, author, err := f.findObject(ctx, x, "quote", value)
	if err != nil {
		return err
	}
	if !audience.IsPublic(obj.Addressing) {
		return fault.New(fault.Forbidden, "only what everybody may see is quoted").WithCode("not_public").At("/params/quote")
	}
	n.quoted, x.quoted = obj.ID, author
	return nil
}

// chooseAsked decides whether the author of the quoted object is asked for approval. The author
// is not asked if the author is the user, or may not see the note.
func (x *exchange) chooseAsked() {
	if x.quoted == nil {
		return
	}
	own := x.quoted.ID.Same(x.actor.ID)
	if own || !audience.Of(vocab.Addressing{To: x.to, Cc: x.cc}, x.actor.ID, "").MaySee(audience.Viewer{ID: x.quoted.ID}) {
		x.quoted = nil
	}
}

// setQuote writes the id of the quoted object into a note, under all names that servers read.
func setQuote(d vocab.Doc, quoted vocab.ID) {
	if quoted == "" {
		return
	}
	for _, name := range []string{"quote", "quoteUrl", "_misskey_quote"} {
		d[name] = string(quoted)
	}
}

// quoteLine returns the first line of a note that quotes. The line is for readers whose servers do
// not support quotes. Servers that support quotes hide it. The line is empty if the note quotes
// nothing.
func quoteLine(d vocab.Doc) string {
	quoted := html.EscapeString(string(vocab.QuoteOf(d)))
	if quoted == "" {
		return ""
	}
	return `<p class="quote-inline">RE: <a href="` + quoted + `">` + quoted + `</a></p>`
}

// setQuotePolicy writes into a public note who may quote it.
func setQuotePolicy(local *actor.Local, u vocab.Username, d vocab.Doc, isPublic bool) {
	if isPublic {
		d["interactionPolicy"] = local.QuotePolicy(u)
	}
}

// revokeQuote withdraws the permission of another post to quote a post of the user's (FEP-044f).
// It deletes the stamp, that is, the object that grants the permission. The Delete goes to the
// stamp's recipients and to the user's followers.
type revokeQuote struct{ deleteObject }

func (p *revokeQuote) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	quoting, err := f.findMeantID(ctx, x, "objectId", vocab.IDOf(p.ObjectID), "", append(handler.BringingTypes(), vocab.QuoteRequest)...)
	if err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		stamps, err := tx.Objects.ListStamps(ctx, x.actor.ID+"/", quoting)
		if err != nil {
			return err
		}
		if len(stamps) == 0 {
			return fault.New(fault.NotFound, "the object quotes nothing with the user's leave").WithCode("not_quoted").At("/params/objectId")
		}
		x.before = &stamps[0]
		p.object, err = x.before.Parse()
		return err
	})
	if err != nil {
		return err
	}
	if err := f.reachAll(ctx, x, p.object.Addressing); err != nil {
		return err
	}
	x.cc = append(x.cc, f.local.Followers(x.User))
	return nil
}
