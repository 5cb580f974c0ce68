package thread

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// collected is the part of a thread that was found so far.
type collected struct {
	item               *piece
	ancestors, replies []*piece
	known              map[vocab.ID]bool // the ids of all these pieces, and of the objects that readNew skipped
	isCut              bool              // the thread has more objects than these
}

func newCollected(item *piece) *collected {
	return &collected{item: item, known: map[vocab.ID]bool{item.ID: true}}
}

// all returns what was collected, in the order in which it is shown.
func (c *collected) all() []*piece { return slices.Concat(c.ancestors, []*piece{c.item}, c.replies) }

// collectHeld collects the objects of the thread that are in the user's database.
func (c *collected) collectHeld(ctx context.Context, tx *user.Tx) error {
	if err := c.collectAncestors(ctx, tx); err != nil {
		return err
	}
	return c.collectAnswers(ctx, tx, []vocab.ID{c.item.ID})
}

// top returns the topmost object of the thread that is known.
func (c *collected) top() *piece {
	if len(c.ancestors) > 0 {
		return c.ancestors[0]
	}
	return c.item
}

// collectAncestors collects the ancestors of top that are in the user's database.
func (c *collected) collectAncestors(ctx context.Context, tx *user.Tx) error {
	parent, room := c.top().InReplyTo, maxAncestors-len(c.ancestors)
	if parent == "" {
		return nil
	}
	chain, err := tx.Threads.ListAncestors(ctx, parent, room+1)
	if err != nil {
		return err
	}
	bytes := 0
	for _, a := range chain {
		bytes += a.Bytes()
	}
	c.isCut = c.isCut || len(chain) > room || bytes > user.MaxFeed
	c.ancestors = append(c.readNew(chain[max(0, len(chain)-room):]), c.ancestors...)
	return nil
}

// collectAnswers collects the answers to some objects, then the answers to those answers, and so
// on.
func (c *collected) collectAnswers(ctx context.Context, tx *user.Tx, to []vocab.ID) error {
	looked, bytes := 0, 0
	for level, depth := to, 0; len(level) > 0; depth++ {
		answers, err := tx.Threads.ListAnswers(ctx, level, maxLooked-looked+1, user.MaxFeed-bytes)
		if err != nil {
			return err
		}
		if depth == maxDepth {
			c.isCut = c.isCut || len(answers) > 0
			return nil
		}
		isLong := looked+len(answers) > maxLooked
		if isLong {
			answers = answers[:maxLooked-looked]
		}
		level = nil
		for n, a := range answers {
			if bytes += a.Bytes(); bytes > user.MaxFeed {
				c.isCut = true
				return nil
			}
			if !c.known[a.URI] {
				level = append(level, a.URI)
			}
			c.replies = append(c.replies, c.readNew(answers[n:n+1])...)
		}
		if looked += len(answers); isLong {
			c.isCut = true
			return nil
		}
	}
	return nil
}

// readNew reads the objects that are not known yet, except for those that wait among the requests
// (private messages of strangers). It skips an object that cannot be read.
func (c *collected) readNew(held []user.HeldObject) (pieces []*piece) {
	for _, h := range held {
		if c.known[h.URI] {
			continue
		}
		c.known[h.URI] = true
		if p, err := readHeld(h); err == nil && !p.waits {
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// arrange returns the thread with the objects that may be shown.
func (c *collected) arrange(shown []Object, actors map[vocab.ID]vocab.Card) (Thread, error) {
	t := Thread{Ancestors: []Object{}, Replies: []Object{}, Actors: actors, Truncated: c.isCut}
	places := map[vocab.ID]*[]Object{}
	for _, p := range c.ancestors {
		places[p.ID] = &t.Ancestors
	}
	for _, p := range c.replies {
		places[p.ID] = &t.Replies
	}
	isThere := false
	for _, o := range shown {
		if place := places[o.URI]; place != nil {
			*place = append(*place, o)
		} else {
			t.Item, isThere = o, true
		}
	}
	if !isThere {
		return Thread{}, errNone
	}
	if len(t.Replies) > maxReplies {
		t.Replies, t.Truncated = t.Replies[:maxReplies], true
	}
	return t, nil
}
