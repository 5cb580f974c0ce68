package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Caches are the caches of users' feeds.
type Caches struct{ in *instance.Instance }

// MaxWarmPages is the greatest number of pages of a feed that Rebuild caches again.
const MaxWarmPages = 20

// RebuildChoice says which cached data to delete, and which to cache again.
type RebuildChoice struct {
	Users     []vocab.Username    // all users if empty
	Feeds     []string            // all feeds if empty
	Objects   bool                // also delete the documents of activities and objects
	Actors    bool                // also delete the cards of actors
	Flush     bool                // delete all that Objects and Actors delete, and cache nothing again
	WarmPages int                 // pages of each feed to cache again: 0 to MaxWarmPages
	DryRun    bool                // only count
	Progress  func(done, all int) // called after each user; may be nil
}

// RebuildReport is the result of Rebuild. There is no cache if Redis is private and no engine
// serves, or if the private Redis is only a stand-in.
type RebuildReport struct {
	Users   []RebuiltUser `json:"users"`
	Failed  int           `json:"failed"`
	Millis  int64         `json:"elapsed_ms"`
	DryRun  bool          `json:"dry_run"`
	Skipped bool          `json:"skipped"` // there is no cache
}

// RebuiltUser is the result for one user.
type RebuiltUser struct {
	User    vocab.Username `json:"user"`
	Deleted int            `json:"deleted_keys"`
	Feeds   int            `json:"feeds"`
	Pages   int            `json:"pages"`   // pages of the index that were cached again
	Objects int            `json:"objects"` // entries whose documents were cached again
	Millis  int64          `json:"elapsed_ms"`
	Error   string         `json:"error,omitempty"`
	Hint    string         `json:"hint,omitempty"`
}

// Rebuild deletes the cached data of users and caches the first pages of their feeds again. It
// never touches a stream or a session. Without a serving engine it caches nothing, because an
// engine ignores cached data that is older than its own start. An error with one user does not
// stop the others. The fault is Busy when another process rebuilds, NoUser when a named user does
// not exist, Usage for a choice that makes no sense, and Unavailable when Redis does not answer.
func (cs Caches) Rebuild(ctx context.Context, c RebuildChoice) (r RebuildReport, err error) {
	began := time.Now()
	r = RebuildReport{Users: []RebuiltUser{}, DryRun: c.DryRun}
	if err := c.check(); err != nil {
		return r, err
	}
	release, err := cs.in.DB.Instance.Locks.Rebuild(ctx)
	if err != nil {
		return r, err
	}
	defer release()
	users, err := chooseUsers(ctx, cs.in, c.Users, len(c.Users) == 0)
	if err != nil {
		return r, err
	}
	isServed, err := cs.in.DB.Instance.Locks.IsServed(ctx)
	if err != nil {
		return r, err
	}
	if !isServed && cs.in.Config.Redis.URL.Reveal() == "" {
		r.Skipped = true
		return r, nil
	}
	if err := cs.in.OpenRedis(ctx, false); err != nil {
		return r, err
	}
	feeds := cs.in.NewCachedFeeds(cs.in.DB.Databases)
	if feeds == nil {
		r.Skipped = true
		return r, nil
	}
	lists, layers := c.scope()
	deleted, err := feeds.Cache().Sweep(ctx, users, lists, layers, c.DryRun)
	if err != nil {
		return r, fmt.Errorf("delete from the cache: %w", err)
	}
	if !isServed || c.DryRun || c.Flush {
		c.WarmPages = 0
	}
	for n, u := range users {
		one := c.warm(ctx, feeds, u)
		if one.Deleted = deleted[u]; one.Error != "" {
			r.Failed++
		}
		if ctx.Err() != nil {
			return r, fault.Wrap(fault.Busy, fmt.Sprintf("time ran out when %d of %d users had their feeds again", n, len(users)), ctx.Err())
		}
		r.Users = append(r.Users, one)
		if c.Progress != nil {
			c.Progress(n+1, len(users))
		}
	}
	r.Millis = time.Since(began).Milliseconds()
	return r, nil
}

func (c *RebuildChoice) check() error {
	for _, f := range c.Feeds {
		if !slices.Contains(feed.All, f) {
			return fault.New(fault.Usage, fmt.Sprintf("%.60q is no feed", f)).WithHint("take main, notifications or requests")
		}
	}
	if c.WarmPages < 0 || c.WarmPages > MaxWarmPages {
		return fault.New(fault.Usage, fmt.Sprintf("%d pages are not from 0 to %d", c.WarmPages, MaxWarmPages))
	}
	if len(c.Feeds) == 0 {
		c.Feeds = feed.All
	}
	return nil
}

// scope returns the lists and layers of the cache that the choice deletes.
func (c RebuildChoice) scope() (lists, layers []string) {
	lists = slices.Clone(c.Feeds)
	if c.Objects || c.Flush {
		layers = append(layers, cache.Objects)
	}
	if c.Actors || c.Flush {
		lists, layers = append(lists, feed.Cards), append(layers, cache.Actors)
	}
	return lists, layers
}

// warm caches the pages of one user again.
func (c RebuildChoice) warm(ctx context.Context, feeds *feed.Cached, u vocab.Username) RebuiltUser {
	began := time.Now()
	r := RebuiltUser{User: u, Feeds: len(c.Feeds)}
	if c.WarmPages == 0 {
		return r
	}
	for _, name := range c.Feeds {
		pages, entries, err := feeds.Warm(ctx, u, name, c.WarmPages)
		r.Pages += pages
		r.Objects += entries
		if err != nil {
			r.Error, r.Hint = err.Error(), fault.Hint(err)
		}
	}
	r.Millis = time.Since(began).Milliseconds()
	return r
}
