package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchStamp fetches the stamp that a new or changed post claims for what it quotes (FEP-044f). A
// server that does not show it keeps nothing back: without it the quote is one that nobody is known
// to approve of.
func (f *fetcher) fetchStamp(ctx context.Context, x *receiving) error {
	if !handler.HasWords(x.Activity.Type) {
		return nil
	}
	id := vocab.ClaimedStamp(x.Activity.Object.Doc)
	if id == "" {
		return nil
	}
	if f.Local.IsLocal(id) {
		return f.fetchLocal(ctx, x, id)
	}
	o, _, err := f.fetchObject(ctx, x, id, nil)
	switch {
	case x.Activity == nil: // there is no room for it any more
		return err
	case err == nil && o.OwnAuthors():
		x.fetched[id] = o
	case err != nil:
		f.Log.InfoContext(ctx, "stamp not fetched", "activity", x.Activity.ID, "host", id.Host(), "err", err)
	}
	return ours(err)
}
