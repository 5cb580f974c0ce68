package thread

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
)

// findItem returns the requested object: from the user's database, or else from the object's own
// server.
func (r *Reader) findItem(ctx context.Context, q Query) (*piece, error) {
	item, err := r.findHeld(ctx, &q)
	if err == nil && item == nil {
		item, err = r.fetchItem(ctx, q)
	}
	switch {
	case err != nil:
		return nil, err
	case item.waits && q.Assistant:
		return nil, errNone
	case item.Type == "Tombstone":
		return nil, fault.New(fault.Gone, "the object was deleted")
	}
	item.isAsked = true
	return item, nil
}

// findHeld returns the object from the user's database, or nil if it is not there. If q.URI is
// the id of an activity that brought an object, findHeld replaces it with the id of that object.
func (r *Reader) findHeld(ctx context.Context, q *Query) (item *piece, err error) {
	err = r.Store.Read(ctx, q.User, func(ctx context.Context, tx *user.Tx) error {
		about, err := tx.Activities.ListObjects(ctx, q.URI, handler.BringingTypes(), "", !q.Assistant)
		if err != nil {
			return err
		}
		if len(about) > 1 {
			return fault.New(fault.Conflict, "several actors of that server use this id: give that of the object").WithCode("ambiguous_id")
		}
		if len(about) == 1 {
			q.URI = about[0]
		}
		held, err := tx.Threads.Find(ctx, q.URI)
		if err != nil || held == nil {
			return err
		}
		item, err = readHeld(*held)
		return err
	})
	return item, err
}

// fetchItem gets the object from its own server, in the way in which an action of the user gets
// it.
func (r *Reader) fetchItem(ctx context.Context, q Query) (*piece, error) {
	if q.Assistant {
		return nil, errNone
	}
	if ok, after := r.Lookups.Allow(q.User.String()); !ok {
		return nil, fault.New(fault.RateLimited, "your programs ask for too many objects").WithCode("rate_limited").After(after)
	}
	o, by, err := r.Finder.FindObject(ctx, q.User, q.URI)
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Forbidden, fault.Unprocessable, fault.NoHost:
		return nil, errNone
	}
	if err != nil {
		return nil, err
	}
	return readFetched(o, by)
}
