package feed

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/vocab"
)

// All are the feeds that every user has.
var All = []string{Main, Notifications, Requests}

// Cache returns the cache in front of the database.
func (c *Cached) Cache() *cache.Cache { return c.cache }

// warmTries is the number of times that Warm reads the beginning of a feed: to make its token, to
// make its page, and to see that both are there.
const warmTries = 3

// Warm reads a feed, so that the first pages of its index and the documents that these pages name
// are cached. The parameter pages is the greatest number of pages to read. Warm returns how many
// pages and entries it has read. If the feed keeps changing meanwhile, it is not cached.
func (c *Cached) Warm(ctx context.Context, u vocab.Username, feed string, pages int) (made, entries int, err error) {
	var after *user.Place
	for range warmTries - 1 {
		if _, err := c.Page(ctx, u, feed, nil, 1); err != nil {
			return 0, 0, err
		}
	}
	for entries < pages*c.cache.PageSize {
		rest := c.cache.PageSize - entries%c.cache.PageSize // only a read at the beginning of a page makes the page
		page, err := c.Page(ctx, u, feed, after, min(MaxLimit, rest))
		if err != nil {
			return made, entries, err
		}
		entries += len(page.Entries)
		if after = page.Next; after == nil {
			break
		}
	}
	return (entries + c.cache.PageSize - 1) / c.cache.PageSize, entries, nil
}
