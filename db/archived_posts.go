package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ArchivedPost is a post that the user wrote under another account.
type ArchivedPost struct {
	Activity, Object, Actor          vocab.ID
	Published                        time.Time
	ActivityDoc, ObjectDoc, Readable json.RawMessage // the activity without its object
}

// AddArchivedPosts stores posts, and returns how many of them were not there.
func (t *Tx) AddArchivedPosts(ctx context.Context, all []ArchivedPost) (added int, err error) {
	var ids []uuid.UUID
	var activities, objects, actors, activityDocs, objectDocs, readables []string
	var published []time.Time
	for _, p := range all {
		ids = append(ids, uuid.Must(uuid.NewV7()))
		activities, objects, actors = append(activities, string(p.Activity)), append(objects, string(p.Object)), append(actors, string(p.Actor))
		activityDocs, objectDocs, readables = append(activityDocs, string(p.ActivityDoc)), append(objectDocs, string(p.ObjectDoc)), append(readables, string(p.Readable))
		published = append(published, p.Published)
	}
	n, err := t.exec(ctx, "store archived posts", `INSERT INTO archived_posts (id, activity_uri, object_uri, actor_uri, published, activity, object, readable)
		SELECT id, activity_uri, object_uri, actor_uri, published, activity::jsonb, object::jsonb, readable::jsonb
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[])
			AS p (id, activity_uri, object_uri, actor_uri, published, activity, object, readable)
		ON CONFLICT (object_uri) DO NOTHING`, ids, activities, objects, actors, published, activityDocs, objectDocs, readables)
	return int(n), err
}

// ArchivedPosts returns up to n archived posts after a place, the newest first, as entries of a
// feed; when they are large, those up to the first that goes beyond MaxFeed.
func (t *Tx) ArchivedPosts(ctx context.Context, after *Place, n int) (out []FeedItem, err error) {
	p := after.orFirst()
	err = t.query(ctx, "read archived posts", upTo(MaxFeed, FeedItem.Bytes, &out), `SELECT id, activity_uri, actor_uri, published,
		'`+vocab.Create+`', activity, object_uri, object, readable, xmin::text, xmin::text FROM archived_posts
		WHERE (published, id) < ($1, $2) ORDER BY published DESC, id DESC LIMIT $3`, p.At, p.ID, n)
	return out, err
}
