package user

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
	ActivityDoc, ObjectDoc, Readable json.RawMessage // ActivityDoc has no object; Readable is the result of vocab.Readable
	Words                            string          // for the search index: the text form of a tsvector
}

// AddArchived stores posts, and their words in the search index. It returns how many of the
// posts were new.
func (t Posts) AddArchived(ctx context.Context, all []ArchivedPost) (added int, err error) {
	var ids []uuid.UUID
	var activities, objects, actors, activityDocs, objectDocs, readables, words []string
	var published []time.Time
	for _, p := range all {
		ids = append(ids, uuid.Must(uuid.NewV7()))
		activities, objects, actors = append(activities, string(p.Activity)), append(objects, string(p.Object)), append(actors, string(p.Actor))
		activityDocs, objectDocs, readables = append(activityDocs, string(p.ActivityDoc)), append(objectDocs, string(p.ObjectDoc)), append(readables, string(p.Readable))
		published, words = append(published, p.Published), append(words, p.Words)
	}
	n, err := t.exec(ctx, "store archived posts", `INSERT INTO archived_posts (id, activity_uri, object_uri, actor_uri, published, activity, object, readable)
		SELECT id, activity_uri, object_uri, actor_uri, published, activity::jsonb, object::jsonb, readable::jsonb
		FROM unnest(@ids::uuid[], @activities::text[], @objects::text[], @actors::text[], @published::timestamptz[], @activity_docs::text[], @object_docs::text[], @readables::text[])
			AS p (id, activity_uri, object_uri, actor_uri, published, activity, object, readable)
		ON CONFLICT (object_uri) DO NOTHING`,
		named{"ids": ids, "activities": activities, "objects": objects, "actors": actors, "published": published, "activity_docs": activityDocs,
			"object_docs": objectDocs, "readables": readables})
	if err != nil {
		return 0, err
	}
	_, err = t.execBeside(ctx, "put words of archived posts into index", `INSERT INTO search_index (uri, object_id, revision, published, words)
		SELECT p.object_uri, p.id, p.xmin::text, p.published, w::tsvector FROM unnest($1::text[], $2::text[]) AS x (u, w) JOIN archived_posts p ON p.object_uri = u
		ON CONFLICT (uri) DO NOTHING`, objects, words)
	return int(n), err
}

// FindFound returns the objects with these uris that the user holds or has archived, in the order
// of the parameter uris. It stops after the object with which the documents exceed MaxFeed bytes.
// If an object is both held and archived, it returns the held one, or the archived copy if the
// held one was deleted.
func (t Threads) FindFound(ctx context.Context, uris []vocab.ID) (found []HeldObject, err error) {
	err = t.query(ctx, "read found objects", upTo(MaxFeed, HeldObject.Bytes, &found), `SELECT * FROM (
			SELECT `+heldColumns+` FROM objects o`+itsCreate+` WHERE o.uri = ANY($1) AND o.deleted_at IS NULL
			UNION ALL SELECT p.id, p.object_uri, p.published, p.object, NULL, NULL, p.readable, p.actor_uri, p.activity, false, true FROM archived_posts p
			WHERE p.object_uri = ANY($1) AND NOT EXISTS (SELECT FROM objects o WHERE o.uri = p.object_uri AND o.deleted_at IS NULL)) AS f (id, uri)
		ORDER BY array_position($1, f.uri)`, texts(uris))
	return found, err
}

// ListArchived returns up to n archived posts after a place, the newest first, as entries of a
// feed. It stops after the post with which the documents exceed MaxFeed bytes.
func (t Posts) ListArchived(ctx context.Context, after *Place, n int) (out []FeedItem, err error) {
	p := after.orFirst()
	err = t.query(ctx, "read archived posts", upTo(MaxFeed, FeedItem.Bytes, &out), `SELECT id, activity_uri AS activity, actor_uri AS actor, published,
		'`+vocab.Create+`' AS type, activity AS raw, object_uri, object, readable, '' AS revision, '' AS object_revision, '' AS form, '' AS object_form FROM archived_posts
		WHERE (published, id) < ($1, $2) ORDER BY published DESC, id DESC LIMIT $3`, p.At, p.ID, n)
	return out, err
}
