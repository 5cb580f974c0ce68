package thread

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	fillTime = 10 * time.Second
	atOnce   = 4 // objects that are fetched at the same time
)

// filling is a thread that is being completed from other servers.
type filling struct {
	*Reader
	Query
	*collected

	mu      sync.Mutex
	objects int            // how many objects may still be fetched
	lists   int            // how many collections and pages may still be fetched
	domains map[string]int // how many objects of each domain were fetched
	asked   map[vocab.ID]bool
}

// fillThread adds to a thread the objects that other servers show and the user's database lacks.
// First it fetches the missing ancestors. Then it fetches the objects that the owner of the thread
// lists. If there is no such list, it fetches the replies to the requested object, the replies to
// those, and so on (FEP-f228). It stores none of the objects. If a server does not answer, the
// thread lacks the objects of that server, and other objects that can be found only through them.
// After fillTime, fillThread stops fetching. The fault is RateLimited if too many threads were
// filled in for the user.
func (r *Reader) fillThread(ctx context.Context, q Query, c *collected) error {
	if ok, after := r.fillings.Allow(q.User.String()); !ok {
		return fault.New(fault.RateLimited, "your programs have too many threads filled in").WithCode("rate_limited").After(after)
	}
	within, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	f := &filling{Reader: r, Query: q, collected: c, objects: policy.FilledObjects, lists: policy.FilledCollections, domains: map[string]int{}, asked: map[vocab.ID]bool{}}
	if err := f.climb(within); err != nil && within.Err() == nil {
		return err
	}
	if listed, ok := f.listThread(within); ok {
		f.attach(f.fetchAll(within, listed))
	} else {
		f.fetchReplies(within)
	}
	f.isCut = f.isCut || within.Err() != nil
	if err := r.Store.Read(ctx, q.User, f.collectBeyond); err != nil {
		return err
	}
	f.sortReplies()
	return nil
}

// collectBeyond collects, from the user's database, the answers to the replies that were fetched.
func (f *filling) collectBeyond(ctx context.Context, tx *user.Tx) error {
	var fetched []vocab.ID
	for _, p := range f.replies {
		if !p.isHeld {
			fetched = append(fetched, p.ID)
		}
	}
	return f.collectAnswers(ctx, tx, fetched)
}

// climb fetches the ancestors above the topmost known object, up to the first object of the
// thread or to maxAncestors. Each ancestor is named by the object below it, which is the requested
// object, an object in the user's database, or an ancestor that climb has fetched before.
func (f *filling) climb(ctx context.Context) error {
	for parent := f.top().InReplyTo; parent != "" && len(f.ancestors) < maxAncestors && f.spend(parent); parent = f.top().InReplyTo {
		p, err := f.find(ctx, parent)
		if err != nil {
			f.logMissing(ctx, parent, err)
			return nil
		}
		if f.known[p.ID] {
			return nil
		}
		f.known[p.ID] = true
		f.ancestors = append([]*piece{p}, f.ancestors...)
		if err := f.Store.Read(ctx, f.User, f.collectAncestors); err != nil {
			return err
		}
	}
	f.isCut = f.isCut || len(f.ancestors) == maxAncestors && f.top().InReplyTo != ""
	return nil
}

// find gets an object and its author in the way in which an action of the user gets them, so the
// object's server may learn who the user is. The object was named to the user, or is on this
// server.
func (f *filling) find(ctx context.Context, id vocab.ID) (*piece, error) {
	o, by, err := f.Finder.FindObject(ctx, f.User, id)
	if err != nil {
		return nil, err
	}
	return readFetched(o, by)
}

// spend reports whether an object may be fetched, and counts the object if it may. No object is
// fetched twice.
func (f *filling) spend(id vocab.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	domain := policy.RegistrableDomain(id.Host())
	switch {
	case f.asked[id] || f.known[id]:
		return false
	case f.objects == 0 || f.domains[domain] == policy.FilledOfDomain:
		f.isCut = true
		return false
	}
	f.objects--
	f.domains[domain]++
	f.asked[id] = true
	return true
}

// fetchAll fetches the objects that are not known yet, at most atOnce of them at the same time.
func (f *filling) fetchAll(ctx context.Context, ids []vocab.ID) (pieces []*piece) {
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	found := make([]*piece, len(ids))
	for n, id := range ids {
		if !f.spend(id) {
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			p, err := f.fetch(ctx, id)
			if err != nil {
				f.logMissing(ctx, id, err)
				return
			}
			found[n] = p
		})
	}
	all.Wait()
	for _, p := range found {
		if p != nil {
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// fetch gets an object that another actor has named, together with the author of the object. The
// object's server does not learn for which user the object is fetched.
func (f *filling) fetch(ctx context.Context, id vocab.ID) (*piece, error) {
	if f.Local.IsLocal(id) {
		return f.find(ctx, id)
	}
	o, _, err := f.Others.Object(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	if o.Doc.IsActivity() || vocab.IsActorType(o.Type) || !o.OwnAuthors() {
		return nil, fault.New(fault.Protocol, "it is no object that an actor of its server wrote")
	}
	by, err := f.Others.Resolve(ctx, o.AttributedTo)
	if err != nil {
		return nil, err
	}
	return readFetched(o, by)
}

func (f *filling) logMissing(ctx context.Context, id vocab.ID, err error) {
	f.Log.DebugContext(ctx, "thread not filled in", "user", f.User, "object", id, "err", err)
}

// attach adds to the thread the pieces that answer the requested object or a reply in the thread,
// and returns them.
func (f *filling) attach(pieces []*piece) (attached []*piece) {
	inside := map[vocab.ID]bool{f.item.ID: true}
	for _, p := range f.replies {
		inside[p.ID] = true
	}
	for isNew := true; isNew; {
		isNew = false
		for _, p := range pieces {
			if inside[p.InReplyTo] && !f.known[p.ID] {
				f.known[p.ID], inside[p.ID], isNew = true, true, true
				attached = append(attached, p)
			}
		}
	}
	f.replies = append(f.replies, attached...)
	return attached
}
