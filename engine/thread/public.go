package thread

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxPublicAncestors is the greatest number of ancestors of an object that are shown to everybody.
const maxPublicAncestors = 5

// PublicPost is a post of a thread as everybody sees it.
type PublicPost struct {
	user.Object
	Author    vocab.ID
	InReplyTo vocab.ID
	Shown     vocab.Doc
}

// Place returns the post's place in the thread.
func (p PublicPost) Place() user.Place { return user.Place{At: p.Published, ID: p.ID} }

// PublicThread is the public part of the thread around a public object of a user.
type PublicThread struct {
	Ancestors []PublicPost // the nearest public ones above it, without a gap; the topmost first
	Answers   []PublicPost // the oldest first
	End       *user.Place  // the place after which to look for more answers; nil if there are none
	Actors    map[vocab.ID]vocab.Card
}

// Public reads the public part of the thread around a public object. It leaves out posts by
// actors that the user blocks or the gate refuses. If a place is given, it reads only the answers
// after it, and no ancestors. It looks at n answers at most.
func (r *Reader) Public(ctx context.Context, tx *user.Tx, o *vocab.Object, after *user.Place, n int) (t PublicThread, err error) {
	if after == nil {
		if t.Ancestors, err = r.publicAncestors(ctx, tx, o.InReplyTo); err != nil {
			return t, fmt.Errorf("read ancestors: %w", err)
		}
	}
	listed, err := tx.Threads.ListPublic(ctx, o.ID, after, n)
	if err != nil {
		return t, err
	}
	var uris []vocab.ID
	for _, l := range listed {
		if l.URI != o.ID {
			uris = append(uris, l.URI)
		}
	}
	if len(listed) == n && n > 0 {
		t.End = &user.Place{At: listed[n-1].Published, ID: listed[n-1].ID}
	}
	held, err := tx.Threads.FindAll(ctx, uris)
	if err != nil {
		return t, err
	}
	if len(held) > 0 && len(held) < len(uris) {
		// The answers are large, so the next page reads the rest.
		last := held[len(held)-1]
		t.End = &user.Place{At: last.Published, ID: last.ID}
	}
	if t.Answers, err = r.showPublic(ctx, tx, held); err != nil {
		return t, fmt.Errorf("show answers: %w", err)
	}
	t.Actors, err = r.publicCards(ctx, tx, slices.Concat(t.Ancestors, t.Answers))
	return t, err
}

// publicAncestors returns up to maxPublicAncestors public ancestors of an object that answers
// parent. Going up from parent, it stops at the first ancestor that not everybody may see.
func (r *Reader) publicAncestors(ctx context.Context, tx *user.Tx, parent vocab.ID) ([]PublicPost, error) {
	if parent == "" {
		return nil, nil
	}
	chain, err := tx.Threads.ListAncestors(ctx, parent, maxPublicAncestors)
	if err != nil {
		return nil, err
	}
	shown, err := r.showPublic(ctx, tx, chain)
	unbroken := 0
	for unbroken < len(shown) && shown[len(shown)-1-unbroken].URI == chain[len(chain)-1-unbroken].URI {
		unbroken++
	}
	return shown[len(shown)-unbroken:], err
}

// showPublic returns the objects that everybody may see, in their order.
func (r *Reader) showPublic(ctx context.Context, tx *user.Tx, held []user.HeldObject) (shown []PublicPost, err error) {
	var pieces []*piece
	objects := map[vocab.ID]user.Object{}
	for _, h := range held {
		if p, err := readHeld(h); err == nil && h.DeletedAt == nil && !h.Waits && p.author != "" {
			pieces = append(pieces, p)
			objects[p.ID] = h.Object
		}
	}
	isPublic := func(p *piece) (bool, error) { return audience.IsPublic(p.to), nil }
	kept, err := r.keepVisible(ctx, tx, pieces, isPublic)
	for _, p := range kept {
		shown = append(shown, PublicPost{objects[p.ID], p.author, p.InReplyTo, vocab.Show(p.Doc, p.readable, nil)})
	}
	return shown, err
}

// publicCards returns the cards of the authors of posts.
func (r *Reader) publicCards(ctx context.Context, tx *user.Tx, posts []PublicPost) (map[vocab.ID]vocab.Card, error) {
	var authors []vocab.ID
	var pieces []*piece
	for _, p := range posts {
		authors = append(authors, p.Author)
		pieces = append(pieces, &piece{author: p.Author})
	}
	cards, err := tx.Actors.FindCards(ctx, authors)
	if err == nil {
		r.addCards(cards, pieces)
	}
	return cards, err
}
