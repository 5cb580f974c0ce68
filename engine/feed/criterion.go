package feed

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Prefixes of the feeds that select entries of the main feed. The rest of the name is a group, a
// tag, or the last part of a stream's id. Nothing is stored for these feeds.
const (
	GroupPrefix  = "group."  // posts and boosts by the members of one of the user's groups
	TagPrefix    = "tag."    // posts that have a tag, in upper or lower case
	StreamPrefix = "stream." // posts that are in one of the user's streams, or have a tag of this stream
)

// maxCriterion is the length of the longest name of a group or tag, in characters.
const maxCriterion = 128

func errNoFeed() error {
	return fault.New(fault.NotFound, "there is no such feed").WithCode("no_such_feed")
}

// resolveName returns the canonical name of a feed, which people may write in several ways. In
// this name, tags have no # and are in lower case. The fault is NotFound if no feed can have the
// name.
func resolveName(feed string) (string, error) {
	if feed == Archive || slices.Contains(All, feed) {
		return feed, nil
	}
	if group, is := strings.CutPrefix(feed, GroupPrefix); is && isCriterion(group) {
		return feed, nil
	}
	if stream, is := strings.CutPrefix(feed, StreamPrefix); is {
		id, err := uuid.Parse(stream)
		if err != nil {
			return "", errNoFeed()
		}
		return StreamPrefix + id.String(), nil
	}
	tag, is := strings.CutPrefix(feed, TagPrefix)
	if tag = strings.ToLower(strings.TrimPrefix(tag, "#")); !is || !isCriterion(tag) {
		return "", errNoFeed()
	}
	return TagPrefix + tag, nil
}

func isCriterion(name string) bool { return name != "" && utf8.RuneCountInString(name) <= maxCriterion }

// selectEntries returns up to n entries of a feed that All does not list, and the place of the
// last entry of the main feed that it scanned. The place is nil if selectEntries reached the end
// of the main feed before it found n entries, and always for the feed Archive. The fault is
// NotFound if there is no such group or stream.
func selectEntries(ctx context.Context, tx *user.Tx, feed string, after *user.Place, n int) ([]user.FeedItem, *user.Place, error) {
	if feed == Archive {
		items, err := tx.Posts.ListArchived(ctx, after, n)
		return items, nil, err
	}
	if tag, is := strings.CutPrefix(feed, TagPrefix); is {
		return tx.Feed.ListOfTag(ctx, tag, after, n)
	}
	if id, is := strings.CutPrefix(feed, StreamPrefix); is {
		s, err := streamCalled(ctx, tx, id)
		if err != nil {
			return nil, nil, err
		}
		return tx.Feed.ListOfStream(ctx, s, after, n)
	}
	members, err := membersOf(ctx, tx, strings.TrimPrefix(feed, GroupPrefix))
	if err != nil {
		return nil, nil, err
	}
	return tx.Feed.ListOfActors(ctx, members, after, n)
}

func streamCalled(ctx context.Context, tx *user.Tx, id string) (user.Stream, error) {
	all, err := tx.Streams.List(ctx)
	if err != nil {
		return user.Stream{}, err
	}
	n := slices.IndexFunc(all, func(s user.Stream) bool { return s.ID.String() == id })
	if n < 0 {
		return user.Stream{}, errNoFeed()
	}
	return all[n], nil
}

func membersOf(ctx context.Context, tx *user.Tx, group string) ([]vocab.ID, error) {
	g, err := tx.Groups.Find(ctx, group)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, errNoFeed()
	}
	return g.Members, nil
}
