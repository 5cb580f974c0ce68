package user

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Object is a stored object. A deleted one is a Tombstone.
type Object struct {
	ID        uuid.UUID
	URI       vocab.ID
	Published time.Time
	Raw       json.RawMessage
	UpdatedAt *time.Time // the time of the last change, as its author states it; nil: never changed
	DeletedAt *time.Time
	Readable  json.RawMessage // the result of vocab.Readable; nil: not made yet
	Author    vocab.ID        `db:"-"` // set for Add and Displace only
}

// Parse parses the stored document. If the document cannot be parsed, the fault is Internal,
// because the client that asked for it is not to blame.
func (o Object) Parse() (*vocab.Object, error) {
	d, err := vocab.ParseDoc(o.Raw)
	var parsed *vocab.Object
	if err == nil {
		parsed, err = vocab.ObjectOf(d)
	}
	if err != nil {
		return nil, fmt.Errorf("read stored object: %w", fault.Wrap(fault.Internal, "a stored document cannot be read", err))
	}
	return parsed, nil
}

const objectColumns = `id, uri, published, raw, updated_at, deleted_at, readable`

// Add stores an object, unless the object is stored already, or its author deleted it before it
// arrived. Add reports whether it stored the object.
func (t Objects) Add(ctx context.Context, o Object) (bool, error) {
	own := Owned{o.URI, o.Author}
	there, read := t.readAhead(o.URI)
	if buried, known := t.ahead.buried[own]; read && (known || there != nil) {
		if there != nil || buried {
			return false, nil
		}
		t.unsent.objects = append(t.unsent.objects, o)
		t.touched.touch(feeds, o.URI)
		t.ahead.forgetObject(o.URI) // readAhead now finds the object in t.unsent, and later the database has it
		return true, t.countRow(ctx, len(o.Raw)+len(o.Readable))
	}
	n, err := t.execBeside(ctx, "store object", `INSERT INTO objects (id, uri, published, raw, updated_at, readable)
		SELECT @id, @uri, @published, @raw, @updated, @readable WHERE NOT EXISTS (SELECT FROM tombstones WHERE digest = ANY(@keys)) ON CONFLICT (uri) DO NOTHING`,
		named{"id": o.ID, "uri": o.URI, "published": o.Published, "raw": o.Raw, "updated": o.UpdatedAt, "readable": o.Readable, "keys": [][]byte{own.key(), schema.Digest(o.URI)}})
	if n == 1 {
		t.touched.touch(feeds, o.URI)
	}
	return n == 1, err
}

// IsBuried reports whether the author of an object deleted it. Old rows do not say who deleted
// the object, and count as deletions by the author.
func (t Objects) IsBuried(ctx context.Context, o Owned) (buried bool, err error) {
	err = t.row(ctx, "look for tombstone", `SELECT EXISTS (SELECT FROM tombstones WHERE digest = ANY($1))`, []any{[][]byte{o.key(), schema.Digest(o.ID)}}, &buried)
	return buried, err
}

// Displace stores an object in place of an object with the same id that another actor of the same
// server stored. It removes the other actor's pins of the id, and those activities about the id
// that only an author may send (Types.Authored). It also removes the feed entries and requests of
// these activities.
func (t Objects) Displace(ctx context.Context, o Object) error {
	const squatting = ` USING activities a WHERE a.object_uri = $1 AND a.actor_uri <> $2 AND a.type = ANY($3)
		AND t.activity_uri = a.uri AND t.actor_uri = a.actor_uri`
	for _, q := range []string{
		`DELETE FROM feed t` + squatting,
		`DELETE FROM requests t` + squatting,
		`DELETE FROM activities a WHERE a.object_uri = $1 AND a.actor_uri <> $2 AND a.type = ANY($3)`,
	} {
		if _, err := t.exec(ctx, "displace object", q, o.URI, o.Author, t.types.Authored); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, "displace object", `DELETE FROM pins WHERE object_uri = $1 AND actor_uri <> $2`, o.URI, o.Author); err != nil {
		return err
	}
	_, err := t.exec(ctx, "displace object", `UPDATE objects SET id = @id, published = @published, raw = @raw, updated_at = @updated, readable = @readable, deleted_at = NULL, created_at = now() WHERE uri = @uri`,
		named{"uri": o.URI, "id": o.ID, "published": o.Published, "raw": o.Raw, "updated": o.UpdatedAt, "readable": o.Readable})
	return err
}

// Restore stores an object that its author deleted and now shows again, in place of its Tombstone.
// It removes the record of the deletion. Votes, pins and feed entries of the object do not come
// back.
func (t Objects) Restore(ctx context.Context, o Object) error {
	keys := [][]byte{Owned{o.URI, o.Author}.key(), schema.Digest(o.URI)}
	if _, err := t.exec(ctx, "restore object", `DELETE FROM tombstones WHERE digest = ANY($1)`, keys); err != nil {
		return err
	}
	return t.Displace(ctx, o)
}

// Find returns an object by its uri, or nil if there is none.
func (t Objects) Find(ctx context.Context, uri vocab.ID) (*Object, error) {
	if o, read := t.readAhead(uri); read {
		return o, nil
	}
	return one[Object](ctx, t.tx, "read object", `SELECT `+objectColumns+` FROM objects WHERE uri = $1`, uri)
}

// FindLiving returns what an object says, or nil if there is none or it was deleted.
func (t Objects) FindLiving(ctx context.Context, uri vocab.ID) (*vocab.Object, error) {
	stored, err := t.Find(ctx, uri)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return nil, err
	}
	return stored.Parse()
}

// Hold protects objects from being pruned until the transaction ends. It reports whether all of
// them are stored.
func (t Objects) Hold(ctx context.Context, uris []vocab.ID) (bool, error) {
	if len(uris) == 0 {
		return true, nil
	}
	var missing int
	err := t.row(ctx, "hold objects", `WITH held AS MATERIALIZED (SELECT uri FROM objects WHERE uri = ANY($1::text[]) ORDER BY uri FOR KEY SHARE)
		SELECT count(*) FROM unnest($1::text[]) AS u WHERE u NOT IN (SELECT uri FROM held)`, []any{texts(uris)}, &missing)
	return missing == 0, err
}

// FindPublic returns an object by its uri if the object addresses everybody. It returns a deleted
// object if the user's own Create of it addressed everybody. It returns nil for every other
// object.
func (t Objects) FindPublic(ctx context.Context, uri vocab.ID) (*Object, error) {
	return one[Object](ctx, t.tx, "read object", `SELECT `+objectColumns+` FROM objects WHERE uri = $1 AND CASE WHEN deleted_at IS NULL THEN `+addressesPublic+`
		ELSE EXISTS (SELECT FROM activities WHERE object_uri = $1 AND type = '`+vocab.Create+`' AND direction = $2 AND `+addressesPublic+`) END`, uri, Outbound)
}

// FindAll returns the objects with these uris, in no order.
func (t Objects) FindAll(ctx context.Context, uris []vocab.ID) ([]Object, error) {
	return collect[Object](ctx, t.tx, "read objects", `SELECT `+objectColumns+` FROM objects WHERE uri = ANY($1)`, texts(uris))
}

// Replace gives new contents to an object, unless the object is deleted or its stored version is
// newer. It reports whether it changed the object. Many servers write times in whole seconds. So
// of two changes within one second the change that arrives later counts.
func (t Objects) Replace(ctx context.Context, uri vocab.ID, raw, readable json.RawMessage, updated time.Time) (bool, error) {
	t.ahead.forgetObject(uri)
	n, err := t.execBeside(ctx, "replace object", `UPDATE objects SET raw = @raw, readable = @readable, updated_at = @updated, changed = @change
		WHERE uri = @uri AND deleted_at IS NULL AND coalesce(updated_at, published) <= @updated`,
		named{"uri": uri, "raw": raw, "readable": readable, "updated": updated, "change": uuid.Must(uuid.NewV7())})
	t.touched.touch(feeds, uri)
	return n == 1, err
}

// SetReadable stores the results of vocab.Readable for objects that were stored without a result.
// It does not change objects that have a result by now, because their contents may have changed
// since.
func (t Objects) SetReadable(ctx context.Context, made map[vocab.ID]json.RawMessage) error {
	ids := slices.Sorted(maps.Keys(made))
	texts := make([]string, len(ids))
	for n, id := range ids {
		texts[n] = string(made[id])
	}
	t.touched.touch(feeds, ids...)
	_, err := t.execBeside(ctx, "keep what readers are shown", `UPDATE objects o SET readable = r.readable::jsonb
		FROM unnest($1::text[], $2::text[]) AS r (uri, readable) WHERE o.uri = r.uri AND o.readable IS NULL`, ids, texts)
	return err
}

// idsOrNull returns ids for a column that is null when there are none. Nearly all rows have
// none, and null takes no space.
func idsOrNull(ids []vocab.ID) []string {
	if len(ids) == 0 {
		return nil
	}
	return texts(ids)
}

func texts(ids []vocab.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// ListBy returns the uris of the objects that an actor wrote and that are not deleted.
func (t Objects) ListBy(ctx context.Context, actor vocab.ID) (uris []vocab.ID, err error) {
	err = t.query(ctx, "list objects of actor", column(&uris), `SELECT uri FROM objects
		WHERE `+schema.WrittenBy("raw", "$1::text")+` AND deleted_at IS NULL ORDER BY uri`, actor)
	return uris, err
}
