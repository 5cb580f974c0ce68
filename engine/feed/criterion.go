package feed

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The feeds that have the entries of the main feed that meet a criterion are named by one of these
// and the name of a group or tag, or the last part of a stream's id. Nothing is copied for them.
const (
	GroupPrefix  = "group."  // posts and boosts by the members of a group of the user's
	TagPrefix    = "tag."    // posts that have a tag, in whichever case
	StreamPrefix = "stream." // posts that are in a stream of the user's, or have a tag of it
)

// maxCriterion is how many characters the name of a group or tag has.
const maxCriterion = 128

func errNoFeed() error {
	return fault.New(fault.NotFound, "there is no such feed").WithCode("no_such_feed")
}

// resolveName returns the one name of a feed that may be written in several ways: tags have no #
// and are in lower case. The fault is NotFound for what cannot be a feed.
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

// selectEntries returns entries of a feed that is none of All, and where it stopped looking: nil at
// the end of that or of the main feed. The fault is NotFound when there is no
// such group or stream.
func selectEntries(ctx context.Context, tx *db.Tx, feed string, after *db.Place, n int) ([]db.FeedItem, *db.Place, error) {
	if feed == Archive {
		items, err := tx.ArchivedPosts(ctx, after, n)
		return items, nil, err
	}
	if tag, is := strings.CutPrefix(feed, TagPrefix); is {
		return tx.FeedOfTag(ctx, tag, after, n)
	}
	if id, is := strings.CutPrefix(feed, StreamPrefix); is {
		s, err := streamCalled(ctx, tx, id)
		if err != nil {
			return nil, nil, err
		}
		return tx.FeedOfStream(ctx, s, after, n)
	}
	members, err := membersOf(ctx, tx, strings.TrimPrefix(feed, GroupPrefix))
	if err != nil {
		return nil, nil, err
	}
	return tx.FeedOfActors(ctx, members, after, n)
}

func streamCalled(ctx context.Context, tx *db.Tx, id string) (db.Stream, error) {
	all, err := tx.Streams(ctx)
	if err != nil {
		return db.Stream{}, err
	}
	n := slices.IndexFunc(all, func(s db.Stream) bool { return s.ID.String() == id })
	if n < 0 {
		return db.Stream{}, errNoFeed()
	}
	return all[n], nil
}

func membersOf(ctx context.Context, tx *db.Tx, group string) ([]vocab.ID, error) {
	g, err := tx.Group(ctx, group)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, errNoFeed()
	}
	return g.Members, nil
}
