package thread

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxListed is the greatest number of ids that are read from one collection.
const maxListed = 200

// listThread returns the ids that the owner of the thread lists, and whether there is such a list.
// A list that is not on the server of its stated owner does not count. If a list states no owner,
// it must be on the server of the object that names it.
func (f *filling) listThread(ctx context.Context) ([]vocab.ID, bool) {
	for _, p := range append(slices.Clone(f.ancestors[:min(1, len(f.ancestors))]), f.item) {
		of, err := p.Doc.Ref("context")
		if err != nil || of.ID == "" {
			continue
		}
		if f.Local.IsLocal(of.ID) {
			ids, err := f.listOwn(ctx, of.ID)
			if err != nil {
				f.logMissing(ctx, of.ID, err)
			}
			return ids, err == nil
		}
		thread, err := f.fetchList(ctx, of.ID)
		if err != nil {
			f.logMissing(ctx, of.ID, err)
			continue
		}
		owners, err := thread.IDs("attributedTo")
		if len(owners) == 0 {
			owners = []vocab.ID{p.ID}
		}
		if err != nil || slices.ContainsFunc(owners, func(id vocab.ID) bool { return !id.SameOrigin(of.ID) }) {
			continue
		}
		return f.listItems(ctx, of.ID, thread), true
	}
	return nil, false
}

// listOwn returns the public objects of a thread that a local user began.
func (f *filling) listOwn(ctx context.Context, thread vocab.ID) (ids []vocab.ID, err error) {
	owner, _, ok := f.Local.Holder(thread)
	root, isThread := strings.CutSuffix(string(thread), string(f.Local.Thread("")))
	if !ok || !isThread {
		return nil, fault.New(fault.NotFound, "there is no such thread here")
	}
	err = f.Store.Read(ctx, owner, func(ctx context.Context, tx *user.Tx) error {
		begins, err := tx.Objects.FindPublic(ctx, vocab.ID(root))
		if err != nil || begins == nil {
			return err
		}
		listed, err := tx.Threads.ListPublic(ctx, begins.URI, nil, maxListed)
		for _, o := range listed {
			ids = append(ids, o.URI)
		}
		return err
	})
	return ids, err
}

// fetchReplies fetches the replies to the requested object and to its known replies, then the
// replies to those, and so on.
func (f *filling) fetchReplies(ctx context.Context) {
	for level := append([]*piece{f.item}, f.replies...); len(level) > 0; {
		var listed []vocab.ID
		for _, p := range level {
			listed = append(listed, f.listReplies(ctx, p)...)
		}
		level = f.attach(f.fetchAll(ctx, listed))
	}
}

// listReplies returns the ids that the server of an object lists as replies to it.
func (f *filling) listReplies(ctx context.Context, p *piece) []vocab.ID {
	of, err := p.Doc.Ref("replies")
	switch {
	case err != nil || of.IsZero() || f.Local.IsLocal(p.ID):
		return nil
	case of.ID == "": // a list without an id, inside the object
		return f.listItems(ctx, p.ID, of.Doc)
	case !of.ID.SameOrigin(p.ID):
		return nil
	}
	replies, err := f.fetchList(ctx, of.ID)
	if err != nil {
		f.logMissing(ctx, of.ID, err)
		return nil
	}
	return f.listItems(ctx, p.ID, replies)
}

// fetchList fetches a collection or a page of one, unless too many were fetched.
func (f *filling) fetchList(ctx context.Context, id vocab.ID) (vocab.Doc, error) {
	if f.lists == 0 {
		f.isCut = true
		return nil, fault.New(fault.RateLimited, "enough collections were fetched for this thread")
	}
	f.lists--
	return f.Others.Collection(ctx, id)
}

// listItems returns the ids in a collection and its pages. It fetches pages only from one server,
// that of the id "on".
func (f *filling) listItems(ctx context.Context, on vocab.ID, list vocab.Doc) (ids []vocab.ID) {
	for list != nil && len(ids) < maxListed {
		for _, name := range []string{"orderedItems", "items"} {
			some, err := list.IDs(name)
			if err != nil {
				return ids
			}
			ids = append(ids, some...)
		}
		follows := "first"
		if kind, err := list.Type(); err == nil && strings.HasSuffix(kind, "Page") {
			follows = "next"
		}
		next, err := list.Ref(follows)
		if list = next.Doc; list != nil {
			continue
		}
		if err != nil || !next.ID.SameOrigin(on) {
			break
		}
		if list, err = f.fetchList(ctx, next.ID); err != nil {
			f.logMissing(ctx, next.ID, err)
			break
		}
	}
	return ids[:min(len(ids), maxListed)]
}

// sortReplies sorts the replies by their depth in the thread, and replies of one depth by the
// time of their publication.
func (c *collected) sortReplies() {
	depths := map[vocab.ID]int{c.item.ID: 0}
	for range c.replies {
		isNew := false
		for _, p := range c.replies {
			if above, isThere := depths[p.InReplyTo]; isThere && depths[p.ID] == 0 {
				depths[p.ID], isNew = above+1, true
			}
		}
		if !isNew {
			break
		}
	}
	slices.SortStableFunc(c.replies, func(a, b *piece) int {
		return cmp.Or(cmp.Compare(depths[a.ID], depths[b.ID]), a.Published.Compare(b.Published))
	})
}
