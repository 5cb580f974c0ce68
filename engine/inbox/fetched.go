package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxReaders is how many recipients are looked at for one who may be shown what the instance
// actor is not.
const maxReaders = 16

// fetchForReader fetches an object that the instance actor is refused once more, as a recipient
// of its id. Only the sender's own server is asked so: no sender can have a user's name told to
// another server. The error is the refusal when no recipient may ask.
func (f *fetcher) fetchForReader(ctx context.Context, x *receiving, id vocab.ID, refusal error) (*vocab.Object, error) {
	if x.relay || !id.SameOrigin(x.Actor.ID) {
		return nil, refusal
	}
	reader, err := f.chooseReader(ctx, x)
	if err != nil {
		return nil, err
	}
	if reader.IsZero() {
		return nil, refusal
	}
	o, _, err := f.fetchObject(ctx, x, id, &reader)
	if err == nil {
		x.reader = reader
	}
	return o, err
}

// chooseReader returns a recipient that the activity is meant for in person, else one who follows
// the sender when the activity is for followers, and at last one who asked to and whose database
// cannot say now whether the sender accepted. It is zero when there is none.
func (f *fetcher) chooseReader(ctx context.Context, x *receiving) (reader vocab.Username, err error) {
	meant := x.meantFor(f.Deps)
	if meant[x.User] && slices.Contains(x.Recipients, x.User) {
		return x.User, nil
	}
	if n := slices.IndexFunc(x.Recipients, func(u vocab.Username) bool { return meant[u] }); n >= 0 {
		return x.Recipients[n], nil
	}
	if !audience.IsForFollowers(x.Activity, f.Handlers.Lookup(x.Activity).Concern, x.Actor.Followers) {
		return reader, nil
	}
	followers, err := x.followersOf(ctx, f.Store, x.Actor.ID)
	if err != nil {
		return reader, err
	}
	known := slices.DeleteFunc(slices.Clone(x.Recipients), func(u vocab.Username) bool { return !followers[u] })
	for _, u := range known[:min(len(known), maxReaders)] {
		switch accepted, err := f.isAccepted(ctx, u, x.Actor.ID); {
		case err != nil: // the sender's server decides what it shows
			reader = cmp.Or(reader, u)
		case accepted:
			return u, nil
		}
	}
	return reader, nil
}

// isAccepted reports whether an actor has accepted that u follows it.
func (f *fetcher) isAccepted(ctx context.Context, u vocab.Username, actor vocab.ID) (accepted bool, err error) {
	err = f.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		following, err := tx.Relationship(ctx, db.Following, actor)
		accepted = following != nil && following.Status == db.Accepted
		return err
	})
	return accepted, err
}

// selectReadable returns what the user may read of what was fetched. An object that its origin
// showed to one user alone is for other users only if it addresses them itself. The object of an
// Announce that is not among it may be in the user's database, as the sender's own.
func (p *applier) selectReadable(ctx context.Context, x *applying) (map[vocab.ID]*vocab.Object, error) {
	all := x.fetched
	if !x.reader.IsZero() && x.reader != x.User {
		all = map[vocab.ID]*vocab.Object{}
		for id, o := range x.fetched {
			if isFor(x, o) {
				all[id] = o
			}
		}
	}
	id := x.Activity.Object.ID
	if x.Activity.Type != vocab.Announce || all[id] != nil {
		return all, nil
	}
	held, err := x.tx.Object(ctx, id)
	if err != nil || held == nil || held.DeletedAt != nil {
		return all, err
	}
	o, err := held.Parse()
	if err != nil || !o.AttributedTo.Same(x.Actor.ID) {
		return all, err
	}
	return map[vocab.ID]*vocab.Object{id: o}, nil
}

// isFor reports whether an object addresses the user itself, or the sender's followers when the
// user is one of them.
func isFor(x *applying, o *vocab.Object) bool {
	v := audience.Viewer{ID: x.Me}
	if x.Follows {
		v.Circles = []vocab.ID{x.Actor.Followers}
	}
	return audience.OfObject(o, x.Actor.Followers).MaySee(v)
}

// readerKey stands beside the ids in what the journal keeps of fetched objects, and is no id.
const readerKey = "reader"

// writeFetched writes what was fetched for a handler, and the reader, as the journal keeps them:
// a JSON object, by id.
func writeFetched(objects map[vocab.ID]*vocab.Object, reader vocab.Username) []byte {
	docs := make(map[string]json.RawMessage, len(objects)+1)
	for id, o := range objects {
		docs[string(id)] = o.Doc.JSON()
	}
	if !reader.IsZero() {
		docs[readerKey], _ = json.Marshal(reader) // a name can always be written
	}
	all, _ := json.Marshal(docs) // of documents that were parsed
	return all
}

// readFetched reads what writeFetched wrote.
func readFetched(fetched []byte) (all map[vocab.ID]*vocab.Object, reader vocab.Username, err error) {
	var docs map[string]json.RawMessage
	if err := json.Unmarshal(fetched, &docs); err != nil {
		return nil, reader, err
	}
	if name, there := docs[readerKey]; there {
		if err := json.Unmarshal(name, &reader); err != nil {
			return nil, reader, err
		}
		delete(docs, readerKey)
	}
	all = make(map[vocab.ID]*vocab.Object, len(docs))
	for asked, raw := range docs {
		id := vocab.IDOf(asked)
		d, err := vocab.ParseDoc(raw)
		if err != nil {
			return nil, reader, err
		}
		if all[id], err = vocab.ObjectOf(d); err != nil {
			return nil, reader, err
		}
	}
	return all, reader, nil
}
