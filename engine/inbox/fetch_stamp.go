package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchStamp fetches the approval stamp that a new, changed, boosted or pinned post gives for its
// quote (FEP-044f). If the stamp approves the quote, fetchStamp also fetches the quoted post.
// Only the author of the quoted post may approve, and users who receive the quote often do not
// hold the quoted post. If the server of the stamp or of the quoted post does not show it, the
// quoting post is still accepted, but its quote counts as not approved.
func (f *fetcher) fetchStamp(ctx context.Context, x *receiving) error {
	post, quoting := f.postToStore(x)
	stamp, quoted := vocab.ClaimedStamp(post), vocab.QuoteOf(post)
	if stamp == "" || stamp.Same(quoting) || quoted.Same(quoting) || x.fetched[stamp] != nil {
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

// postToStore returns the post that the recipients may store, and its id: the one that was fetched,
// or else the one that a Create or Update embeds. The post is nil if there is none, or if it is a
// local user's. The stamp of a local user's post was verified when the stamp came.
func (f *fetcher) postToStore(x *receiving) (vocab.Doc, vocab.ID) {
	a, id := x.Activity, x.Activity.Object.ID
	if len(x.fetched) == 0 && handler.HasWords(a.Type) {
		return a.Object.Doc, id
	}
	if subject := f.Handlers.Lookup(a).Subject; subject != nil {
		id = subject(a)
	}
	if o := x.fetched[id]; o != nil && !f.Local.IsLocal(id) {
		return o.Doc, o.ID
	}
	return nil, ""
}

// withoutWords returns the quoted post with its author and nothing else, because no recipient
// stores it.
func withoutWords(o *vocab.Object) (*vocab.Object, error) {
	return vocab.ObjectOf(vocab.Doc{"id": string(o.ID), "type": o.Type, "attributedTo": string(o.AttributedTo)})
}

// fetchForQuote fetches a stamp or a quoted post, if its server shows it. For a Group's Announce
// the group's budget pays.
func (f *fetcher) fetchForQuote(ctx context.Context, x *receiving, id vocab.ID) error {
	if f.Local.IsLocal(id) {
		return f.fetchLocal(ctx, x, id)
	}
	if f.Handlers.Lookup(x.Activity).Group && limitBy(f.bounds.fetchedForGroup, string(x.Actor.ID)) != nil {
		return nil
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
