package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxReaders is the greatest number of recipients that chooseReader looks at to find one that
// the sender has accepted as a follower.
const maxReaders = 16

// fetchForReader fetches an object again, after the object's server refused it to the instance
// actor. This time a recipient of the activity signs the request. An object that is not on the
// sender's server is not fetched in this way, because the sender could then disclose a user's name
// to the object's server. In that case fetchForReader returns the error refusal. It also returns
// refusal if a relay passed the activity on, or if no recipient may ask for the object.
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

// chooseReader returns the recipient in whose name an object is fetched. If the activity is
// meant for recipients in person, the result is one of them. Otherwise, if the activity is for
// followers, the result is a recipient that the sender has accepted as a follower. If there is
// none, the result is a recipient who may follow the sender, but whose database cannot be read
// now. If there is no such recipient either, the result is zero.
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
		case err != nil: // it is not known here whether u is accepted; the sender's server decides whether to show the object
			reader = cmp.Or(reader, u)
		case accepted:
			return u, nil
		}
	}
	return reader, nil
}

// isAccepted reports whether the actor has accepted u as its follower.
func (f *fetcher) isAccepted(ctx context.Context, u vocab.Username, actor vocab.ID) (accepted bool, err error) {
	err = f.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		accepted, err = tx.Relationships.IsAccepted(ctx, user.Following, actor)
		return err
	})
	return accepted, err
}

// selectReadable returns the fetched objects that the user may read. If they were fetched in the
// name of another user, the user may read only the objects whose own addressing includes the user.
// If the user may not read the object of an Announce, or it was not fetched, selectReadable looks
// for the stored object in the user's database. If the sender is the author of the stored object,
// only this object is returned.
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
	o, err := x.tx.Objects.FindLiving(ctx, id)
	if err != nil || o == nil || !o.AttributedTo.Same(x.Actor.ID) {
		return all, err
	}
	return map[vocab.ID]*vocab.Object{id: o}, nil
}

// isFor reports whether an object addresses the user, or addresses the sender's followers and the
// user is one of them.
func isFor(x *applying, o *vocab.Object) bool {
	v := audience.Viewer{ID: x.Me}
	if x.Follows {
		v.Circles = []vocab.ID{x.Actor.Followers}
	}
	return audience.OfObject(o, x.Actor.Followers).MaySee(v)
}

// Keys in the JSON object that writeFetched writes, beside the ids of the objects. They are not
// valid ids, so they differ from the keys of all objects.
const (
	readerKey = "reader" // the reader
	provenKey = "proven" // true if the object has its author's proof, and its server was not asked
)

// writeFetched encodes the fetched objects for the journal, with the user in whose name they were
// fetched, and whether an author's proof replaces the fetch (see handler.Received).
func writeFetched(objects map[vocab.ID]*vocab.Object, reader vocab.Username, proven bool) []byte {
	docs := make(map[string]json.RawMessage, len(objects)+2)
	for id, o := range objects {
		docs[string(id)] = o.Doc.JSON()
	}
	if !reader.IsZero() {
		docs[readerKey], _ = json.Marshal(reader) // no error, because a name can always be encoded
	}
	if proven {
		docs[provenKey] = json.RawMessage("true")
	}
	all, _ := json.Marshal(docs) // no error: the documents were parsed before
	return all
}

// readFetched decodes the output of writeFetched.
func readFetched(fetched []byte) (all map[vocab.ID]*vocab.Object, reader vocab.Username, proven bool, err error) {
	var docs map[string]json.RawMessage
	if err := json.Unmarshal(fetched, &docs); err != nil {
		return nil, reader, false, err
	}
	if name, there := docs[readerKey]; there {
		if err := json.Unmarshal(name, &reader); err != nil {
			return nil, reader, false, err
		}
		delete(docs, readerKey)
	}
	if _, proven = docs[provenKey]; proven {
		delete(docs, provenKey)
	}
	all = make(map[vocab.ID]*vocab.Object, len(docs))
	for asked, raw := range docs {
		id := vocab.IDOf(asked)
		d, err := vocab.ParseDoc(raw)
		if err != nil {
			return nil, reader, proven, err
		}
		if all[id], err = vocab.ObjectOf(d); err != nil {
			return nil, reader, proven, err
		}
	}
	return all, reader, proven, nil
}
