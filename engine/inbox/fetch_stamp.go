package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchStamp fetches the approval stamp that a new or changed post gives for its quote
// (FEP-044f). If the stamp approves the quote, fetchStamp also fetches the quoted post, because
// only its author may approve, and a user who receives the quote often does not hold that post.
// When its server does not show the stamp or the quoted post, the new or changed post is still
// accepted; its quote then counts as not approved.
func (f *fetcher) fetchStamp(ctx context.Context, x *receiving) error {
	if !handler.HasWords(x.Activity.Type) {
		return nil
	}
	post := x.Activity.Object.Doc
	stamp, quoting, quoted := vocab.ClaimedStamp(post), x.Activity.Object.ID, vocab.QuoteOf(post)
	if stamp == "" || stamp.Same(quoting) || quoted.Same(quoting) {
		return nil
	}
	if err := f.fetchForQuote(ctx, x, stamp); err != nil {
		return err
	}
	if !vocab.StampOf(x.fetched[stamp]).Approves(quoting, quoted) {
		delete(x.fetched, stamp)
		return nil
	}
	if x.fetched[quoted] != nil {
		return nil
	}
	if err := f.fetchForQuote(ctx, x, quoted); err != nil || x.fetched[quoted] == nil {
		return err
	}
	var err error
	x.fetched[quoted], err = withoutWords(x.fetched[quoted])
	return err
}

// withoutWords returns the quoted post with its author and nothing else, because no recipient
// stores it.
func withoutWords(o *vocab.Object) (*vocab.Object, error) {
	return vocab.ObjectOf(vocab.Doc{"id": string(o.ID), "type": o.Type, "attributedTo": string(o.AttributedTo)})
}

// fetchForQuote fetches a stamp or a quoted post, if its server shows it.
func (f *fetcher) fetchForQuote(ctx context.Context, x *receiving, id vocab.ID) error {
	if f.Local.IsLocal(id) {
		return f.fetchLocal(ctx, x, id)
	}
	o, _, err := f.fetchObject(ctx, x, id, nil)
	switch {
	case x.Activity == nil: // no memory was free to parse it again
		return err
	case err == nil && o.OwnAuthors():
		x.fetched[id] = o
	case err != nil:
		f.Log.InfoContext(ctx, "object of a quote not fetched", "activity", x.Activity.ID, "host", id.Host(), "err", err)
	}
	return onlyOurs(err)
}
