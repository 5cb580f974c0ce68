package outbox

import (
	"context"
	"html"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// findQuoted finds what the note quotes: what everybody may see.
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

// chooseAsked leaves nobody to be asked whose leave to quote is not needed, or who may not see the
// note.
func (x *exchange) chooseAsked() {
	if x.quoted == nil {
		return
	}
	own := x.quoted.ID.Same(x.actor.ID)
	if own || !audience.Of(vocab.Addressing{To: x.to, Cc: x.cc}, x.actor.ID, "").MaySee(audience.Viewer{ID: x.quoted.ID}) {
		x.quoted = nil
	}
}

// setQuote says what a note quotes, in the forms that servers read.
func setQuote(d vocab.Doc, quoted vocab.ID) {
	if quoted == "" {
		return
	}
	for _, name := range []string{"quote", "quoteUrl", "_misskey_quote"} {
		d[name] = string(quoted)
	}
}

// quoteLine is what a note begins with for readers whose servers know no quotes; others hide it. It
// is empty when the note quotes nothing.
func quoteLine(d vocab.Doc) string {
	quoted := html.EscapeString(string(vocab.QuoteOf(d)))
	if quoted == "" {
		return ""
	}
	return `<p class="quote-inline">RE: <a href="` + quoted + `">` + quoted + `</a></p>`
}

// setQuotePolicy says of a public note who may quote it.
func setQuotePolicy(local *actor.Local, u vocab.Username, d vocab.Doc, isPublic bool) {
	if isPublic {
		d["interactionPolicy"] = local.QuotePolicy(u)
	}
}

// revokeQuote takes back that a post may quote one of the user's: the stamp goes, and with it what
// others were told (FEP-044f).
type revokeQuote struct{ deleteObject }

func (p *revokeQuote) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	quoting, err := f.findMeantID(ctx, x, "objectId", vocab.IDOf(p.ObjectID), "", append(handler.BringingTypes(), vocab.QuoteRequest)...)
	if err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		stamps, err := tx.StampsFor(ctx, x.actor.ID+"/", quoting)
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
