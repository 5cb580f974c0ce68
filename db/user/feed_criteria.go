package user

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// MaxScanned limits how many entries or activities are scanned for one page of a feed that
// selects its entries by a criterion.
const MaxScanned = 2000

// scanChunk is the number of entries that one query scans.
const scanChunk = 200

// scannedEntry is the part of an entry that a scan reads.
type scannedEntry struct {
	ID        uuid.UUID
	Published time.Time
	Actor     vocab.ID
	Tags      []string // of the object, as written there; empty unless the scan needs tags
	Fits      bool     // the entry meets the criterion that the query checks: the object is in the stream, or is public
}

// feedScan describes a scan of the main feed.
type feedScan struct {
	columns, tables string // columns and tables that are read besides those of the feed
	meets           func(scannedEntry) bool
}

// objectTags are the hashtags and free tags of an object.
const objectTags = `ARRAY(SELECT left(name #>> '{}', 130) FROM (
		SELECT jsonb_path_query(o.raw, '$.tag[*] ? (@.type == "Hashtag").name') AS name
		UNION ALL SELECT jsonb_path_query(o.raw, '$.lwTags[*]')
		UNION ALL SELECT jsonb_path_query(o.raw, '$.lwMetadata.tags[*]')) AS named LIMIT 200)`

// ListOfActors returns up to n entries of the main feed whose activity came from any of the
// actors: those after a place, the newest first. Like List, it stops after the entry with which
// the documents exceed MaxFeed bytes. It scans at most MaxScanned entries. The result "end" is
// the place of the last scanned entry, nil if the scan reached the end of the feed before it
// found n entries. After a stop by size, the next page begins after the last returned entry and
// not at "end".
func (t Feed) ListOfActors(ctx context.Context, actors []vocab.ID, after *Place, n int) (items []FeedItem, end *Place, err error) {
	return t.scanFeed(ctx, feedScan{`'{}'::text[] AS tags, false AS fits`, ``, func(e scannedEntry) bool { return slices.Contains(actors, e.Actor) }}, after, n)
}

// ListOfTag is like ListOfActors, but returns the entries whose object has a tag. It ignores
// case, and a leading # of the object's tags.
func (t Feed) ListOfTag(ctx context.Context, tag string, after *Place, n int) (items []FeedItem, end *Place, err error) {
	return t.scanFeed(ctx, feedScan{objectTags + ` AS tags, false AS fits`, scannedObjects, func(e scannedEntry) bool { return hasAnyTag(e.Tags, tag) }}, after, n)
}

// ListOfStream is like ListOfActors, but returns the entries whose object is in the stream s or
// has one of the tags in s.Tags.
func (t Feed) ListOfStream(ctx context.Context, s Stream, after *Place, n int) (items []FeedItem, end *Place, err error) {
	inStream := ` AS tags, EXISTS (SELECT FROM stream_objects s WHERE s.stream_id = '` + s.ID.String() + `' AND s.object_uri = a.object_uri) AS fits`
	return t.scanFeed(ctx, feedScan{objectTags + inStream, scannedObjects, func(e scannedEntry) bool { return e.Fits || hasAnyTag(e.Tags, s.Tags...) }}, after, n)
}

const scannedObjects = ` LEFT JOIN activities a ON a.uri = f.activity_uri AND a.actor_uri = f.actor_uri LEFT JOIN objects o ON o.uri = a.object_uri`

// hasAnyTag reports whether any of the names is one of the tags. It ignores case and a leading
// # of the names. It also compares the lower-case name, because the address of a tag's page has
// the tag in lower case, and EqualFold does not match the lower-case form of some letters, such
// as İ.
func hasAnyTag(names []string, tags ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		name = strings.TrimPrefix(name, "#")
		return slices.ContainsFunc(tags, func(tag string) bool {
			return strings.EqualFold(name, tag) || strings.EqualFold(strings.ToLower(name), tag)
		})
	})
}

// scanFeed returns up to n entries that a scan selects. The result "end" is the same as that of
// ListOfActors.
func (t Feed) scanFeed(ctx context.Context, s feedScan, after *Place, n int) (items []FeedItem, end *Place, err error) {
	read := func(after *Place) ([]scannedEntry, error) { return t.scanChunk(ctx, s, after) }
	found, end, err := scanEntries(read, s.meets, after, n)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, end, nil
	}
	items, err = t.items(ctx, feedRows{"read feed", feedEntry, feedTables, ` WHERE f.id = ANY(@found) ORDER BY f.published DESC, f.id DESC`, named{"found": found}})
	return items, end, err
}

// scanEntries scans at most MaxScanned entries, until n of them meet a criterion. It returns the
// ids of these n or fewer, and the place of the last scanned entry. The place is nil if the scan
// reached the end before it found n entries.
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

// scanChunk reads the next entries of a scan.
func (t Feed) scanChunk(ctx context.Context, s feedScan, after *Place) ([]scannedEntry, error) {
	p := after.orFirst()
	return collect[scannedEntry](ctx, t.tx, "scan feed", `SELECT f.id, f.published, f.actor_uri AS actor, `+s.columns+` FROM (
			SELECT id, activity_uri, actor_uri, published FROM feed WHERE (published, id) < ($1, $2) ORDER BY published DESC, id DESC LIMIT $3) AS f`+s.tables+`
		ORDER BY f.published DESC, f.id DESC`, p.At, p.ID, scanChunk)
}
