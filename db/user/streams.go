package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Stream is a public collection of objects that the user chooses.
type Stream struct {
	ID        uuid.UUID
	Name      string
	Tags      []string
	URI       vocab.ID
	Activity  vocab.ID // the Add that published it
	CreatedAt time.Time
	Objects   int // how many are in it
}

const readStreams = `SELECT s.id, s.name, s.tags, s.uri, s.activity_uri AS activity, s.created_at,
	(SELECT count(*) FROM stream_objects o WHERE o.stream_id = s.id) AS objects FROM streams s`

// List returns all streams of the user, by name.
func (t Streams) List(ctx context.Context) ([]Stream, error) {
	return collect[Stream](ctx, t.tx, "list streams", readStreams+` ORDER BY s.name`)
}

// Find returns a stream by its id, nil when there is none.
func (t Streams) Find(ctx context.Context, uri vocab.ID) (*Stream, error) {
	return one[Stream](ctx, t.tx, "read stream", readStreams+` WHERE s.uri = $1`, uri)
}

// Add makes an empty stream.
func (t Streams) Add(ctx context.Context, s Stream) error {
	t.touched.touch(FeaturedPages, s.URI)
	_, err := t.exec(ctx, "add stream", `INSERT INTO streams (id, name, tags, uri, activity_uri, created_at) VALUES (@id, @name, coalesce(@tags::text[], '{}'), @uri, @activity, @created)`,
		named{"id": s.ID, "name": s.Name, "tags": s.Tags, "uri": s.URI, "activity": s.Activity, "created": s.CreatedAt})
	return err
}

// Remove removes a stream. The objects that were in it stay.
func (t Streams) Remove(ctx context.Context, uri vocab.ID) error {
	t.touched.touch(FeaturedPages, uri)
	_, err := t.exec(ctx, "remove stream", `DELETE FROM streams WHERE uri = $1`, uri)
	return err
}

// StreamObject is an object in a stream, with its place.
type StreamObject struct {
	Object   vocab.ID
	ID       uuid.UUID
	Activity vocab.ID // the Add
	AddedAt  time.Time
}

const readStreamObjects = `SELECT o.object_uri AS object, o.id, o.activity_uri AS activity, o.added_at FROM stream_objects o JOIN streams s ON s.id = o.stream_id WHERE s.uri = @stream`

// ListObjects returns up to n objects of a stream after a place, the last added first.
func (t Streams) ListObjects(ctx context.Context, stream vocab.ID, after *Place, n int) ([]StreamObject, error) {
	if after == nil {
		return collect[StreamObject](ctx, t.tx, "list objects of stream", readStreamObjects+` ORDER BY o.added_at DESC, o.id DESC LIMIT @n`, named{"stream": stream, "n": n})
	}
	return collect[StreamObject](ctx, t.tx, "list objects of stream", readStreamObjects+` AND (o.added_at, o.id) < (@at, @id) ORDER BY o.added_at DESC, o.id DESC LIMIT @n`,
		named{"stream": stream, "n": n, "at": after.At, "id": after.ID})
}

// FindObject returns an object of a stream, nil when the object is not in the stream.
func (t Streams) FindObject(ctx context.Context, stream, object vocab.ID) (*StreamObject, error) {
	return one[StreamObject](ctx, t.tx, "read object of stream", readStreamObjects+` AND o.object_uri = @object`, named{"stream": stream, "object": object})
}

// AddObject puts an object into a stream, unless the stream has it already.
func (t Streams) AddObject(ctx context.Context, stream vocab.ID, o StreamObject) error {
	t.touched.touch(FeaturedPages, stream)
	_, err := t.exec(ctx, "add object to stream", `INSERT INTO stream_objects (stream_id, object_uri, id, activity_uri, added_at)
		SELECT id, @object, @id, @activity, @added FROM streams WHERE uri = @stream ON CONFLICT DO NOTHING`,
		named{"stream": stream, "object": o.Object, "id": o.ID, "activity": o.Activity, "added": o.AddedAt})
	return err
}

// RemoveObject takes an object out of a stream.
func (t Streams) RemoveObject(ctx context.Context, stream, object vocab.ID) error {
	t.touched.touch(FeaturedPages, stream)
	_, err := t.exec(ctx, "remove object from stream", `DELETE FROM stream_objects o USING streams s WHERE s.id = o.stream_id AND s.uri = $1 AND o.object_uri = $2`, stream, object)
	return err
}
