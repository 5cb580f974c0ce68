package db

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// MaxScanned is how many entries of the main feed are looked at for one page of a feed that has
// those of them that meet a criterion.
const MaxScanned = 2000

// scanChunk is how many entries are looked at in one query.
const scanChunk = 200

// scannedEntry is what a scan looks at.
type scannedEntry struct {
	ID        uuid.UUID
	Published time.Time
	Actor     vocab.ID
	Tags      []string // of the object, as they are written there; only of a scan for tags
	Fits      bool     // as the tables of the scan tell: the object is in the stream, or for everybody
}

// feedScan looks through the main feed.
type feedScan struct {
	columns, tables string // beyond the feed's own
	meets           func(scannedEntry) bool
}

// objectTags are the hashtags and free tags of an object.
const objectTags = `ARRAY(SELECT left(name #>> '{}', 130) FROM (
		SELECT jsonb_path_query(o.raw, '$.tag[*] ? (@.type == "Hashtag").name') AS name
		UNION ALL SELECT jsonb_path_query(o.raw, '$.lwTags[*]')
		UNION ALL SELECT jsonb_path_query(o.raw, '$.lwMetadata.tags[*]')) AS named LIMIT 200)`

// FeedOfActors returns those entries after a place, the newest first, by which actors posted or
// boosted something: up to n, and large ones as Feed does. It looks at MaxScanned entries at most;
// end is where it stopped, nil at the end of the feed.
func (t *Tx) FeedOfActors(ctx context.Context, actors []vocab.ID, after *Place, n int) (items []FeedItem, end *Place, err error) {
	return t.scanFeed(ctx, feedScan{`'{}'::text[], false`, ``, func(e scannedEntry) bool { return slices.Contains(actors, e.Actor) }}, after, n)
}

// FeedOfTag is FeedOfActors for the entries whose object has a tag, in whichever case and with or
// without its #.
func (t *Tx) FeedOfTag(ctx context.Context, tag string, after *Place, n int) (items []FeedItem, end *Place, err error) {
	return t.scanFeed(ctx, feedScan{objectTags + `, false`, scannedObjects, func(e scannedEntry) bool { return hasAnyTag(e.Tags, tag) }}, after, n)
}

// FeedOfStream is FeedOfActors for the entries whose object is in a stream of the user's, or has a
// tag of it.
func (t *Tx) FeedOfStream(ctx context.Context, s Stream, after *Place, n int) (items []FeedItem, end *Place, err error) {
	inStream := `, EXISTS (SELECT FROM stream_objects s WHERE s.stream_id = '` + s.ID.String() + `' AND s.object_uri = a.object_uri)`
	return t.scanFeed(ctx, feedScan{objectTags + inStream, scannedObjects, func(e scannedEntry) bool { return e.Fits || hasAnyTag(e.Tags, s.Tags...) }}, after, n)
}

const scannedObjects = ` LEFT JOIN activities a ON a.uri = f.activity_uri AND a.actor_uri = f.actor_uri LEFT JOIN objects o ON o.uri = a.object_uri`

// hasAnyTag reports whether one of the names is one of the tags, in whichever case and with or
// without its #. The address of the page of a tag has it in small letters, and some of them, as
// that of İ, fold to no capital.
func hasAnyTag(names []string, tags ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		name = strings.TrimPrefix(name, "#")
		return slices.ContainsFunc(tags, func(tag string) bool {
			return strings.EqualFold(name, tag) || strings.EqualFold(strings.ToLower(name), tag)
		})
	})
}

// scanFeed returns the entries that a scan finds, and where it stopped.
func (t *Tx) scanFeed(ctx context.Context, s feedScan, after *Place, n int) (items []FeedItem, end *Place, err error) {
	read := func(after *Place) ([]scannedEntry, error) { return t.scanChunk(ctx, s, after) }
	found, end, err := scanEntries(read, s.meets, after, n)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, end, nil
	}
	items, err = t.items(ctx, feedRows{"read feed", feedEntry, feedTables + ` WHERE f.id = ANY($1) ORDER BY f.published DESC, f.id DESC`, []any{found}})
	return items, end, err
}

// scanEntries looks at MaxScanned entries at most for up to n that meet a criterion, and returns
// them with where it stopped, nil at the end.
func scanEntries(read func(after *Place) ([]scannedEntry, error), meets func(scannedEntry) bool, after *Place, n int) (found []uuid.UUID, end *Place, err error) {
	end = after
	for looked := 0; looked < MaxScanned && len(found) < n; looked += scanChunk {
		chunk, err := read(end)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range chunk {
			if len(found) == n {
				break
			}
			end = &Place{At: e.Published, ID: e.ID}
			if meets(e) {
				found = append(found, e.ID)
			}
		}
		if len(chunk) < scanChunk && len(found) < n {
			return found, nil, nil
		}
	}
	return found, end, nil
}

// scanChunk reads what a scan looks at next.
func (t *Tx) scanChunk(ctx context.Context, s feedScan, after *Place) ([]scannedEntry, error) {
	p := after.orFirst()
	return collect[scannedEntry](ctx, t, "scan feed", `SELECT f.id, f.published, f.actor_uri, `+s.columns+` FROM (
			SELECT id, activity_uri, actor_uri, published FROM feed WHERE (published, id) < ($1, $2) ORDER BY published DESC, id DESC LIMIT $3) AS f`+s.tables+`
		ORDER BY f.published DESC, f.id DESC`, p.At, p.ID, scanChunk)
}
