package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchStamp fetches the approval stamp that a new or changed post gives for its quote
// (FEP-044f). When the stamp's server does not show it, the post is still accepted; its quote
// then counts as not approved.
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
	case x.Activity == nil: // no memory was free to parse it again
		return err
	case err == nil && o.OwnAuthors():
		x.fetched[id] = o
	case err != nil:
		f.Log.InfoContext(ctx, "stamp not fetched", "activity", x.Activity.ID, "host", id.Host(), "err", err)
	}
	return ours(err)
}
