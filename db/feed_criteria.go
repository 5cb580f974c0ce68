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
	return t.scanFeed(ctx, feedScan{`'{}'::text[]`, ``, func(e scannedEntry) bool { return slices.Contains(actors, e.Actor) }}, after, n)
}

// FeedOfTag is FeedOfActors for the entries whose object has a tag, in whichever case and with or
// without its #.
func (t *Tx) FeedOfTag(ctx context.Context, tag string, after *Place, n int) (items []FeedItem, end *Place, err error) {
	isTag := func(name string) bool { return strings.EqualFold(strings.TrimPrefix(name, "#"), tag) }
	return t.scanFeed(ctx, feedScan{objectTags, ` LEFT JOIN activities a ON a.uri = f.activity_uri AND a.actor_uri = f.actor_uri
		LEFT JOIN objects o ON o.uri = a.object_uri`, func(e scannedEntry) bool { return slices.ContainsFunc(e.Tags, isTag) }}, after, n)
}

// scanFeed returns the entries that a scan finds, and where it stopped.
func (t *Tx) scanFeed(ctx context.Context, s feedScan, after *Place, n int) (items []FeedItem, end *Place, err error) {
	var found []uuid.UUID
	end = after
	for looked := 0; looked < MaxScanned && len(found) < n; looked += scanChunk {
		chunk, err := t.scanChunk(ctx, s, end)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range chunk {
			if len(found) == n {
				break
			}
			end = &Place{At: e.Published, ID: e.ID}
			if s.meets(e) {
				found = append(found, e.ID)
			}
		}
		if len(chunk) < scanChunk && len(found) < n {
			end = nil
			break
		}
	}
	if len(found) == 0 {
		return nil, end, nil
	}
	items, err = t.items(ctx, feedRows{"read feed", feedEntry, feedTables + ` WHERE f.id = ANY($1) ORDER BY f.published DESC, f.id DESC`, []any{found}})
	return items, end, err
}

// scanChunk reads what a scan looks at next.
func (t *Tx) scanChunk(ctx context.Context, s feedScan, after *Place) ([]scannedEntry, error) {
	p := after.orFirst()
	return collect[scannedEntry](ctx, t, "scan feed", `SELECT f.id, f.published, f.actor_uri, `+s.columns+` FROM (
			SELECT id, activity_uri, actor_uri, published FROM feed WHERE (published, id) < ($1, $2) ORDER BY published DESC, id DESC LIMIT $3) AS f`+s.tables+`
		ORDER BY f.published DESC, f.id DESC`, p.At, p.ID, scanChunk)
}
