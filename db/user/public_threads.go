package user

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// PublicObject is the part of a public object that is needed to list it in a collection.
type PublicObject struct {
	ID        uuid.UUID
	URI       vocab.ID
	Published time.Time
	By        json.RawMessage // a document with the object's attributedTo alone
}

// maxPublicThread and maxPublicDepth limit the part of a thread that strangers can read.
// maxPublicThread limits the number of its objects, and the number of answers to one object.
// maxPublicDepth limits the levels of answers.
const (
	maxPublicThread = 1000
	maxPublicDepth  = 40
)

// maxAnswersRead limits how many answers to an object are read to find the answers that strangers
// may read. It costs as much to read other answers, such as those of an author that the user
// blocks.
const maxAnswersRead = 5000

const publicColumns = `o.id, o.uri, o.published, jsonb_build_object('attributedTo', o.raw -> 'attributedTo') AS by`

// isListed holds for an object o that is public, not deleted, and by no author that the user
// blocks.
var isListed = publicIn("o.raw") + ` AND o.deleted_at IS NULL
	AND NOT EXISTS (SELECT FROM jsonb_path_query(o.raw, '$.attributedTo[*]') AS by JOIN blocks b ON b.direction = 'outbound'
		AND b.digest = sha256(convert_to(coalesce(by ->> 'id', by #>> '{}'), 'UTF8')))`

// ListPublicAnswers returns up to n public answers to an object after a place, the oldest
// first. It leaves out answers of authors that the user blocks.
func (t Threads) ListPublicAnswers(ctx context.Context, to vocab.ID, after *Place, n int) ([]PublicObject, error) {
	p := after.orOldest()
	return collect[PublicObject](ctx, t.tx, "list public answers", fmt.Sprintf(`SELECT `+publicColumns+` FROM (SELECT o.id, o.uri, o.published, o.raw FROM (
				SELECT id, uri, published, raw, deleted_at FROM objects o WHERE `+answers("@to")+` LIMIT %d) o
			WHERE `+isListed+` LIMIT %d) o
		WHERE (o.published, o.id) > (@at, @id) ORDER BY o.published, o.id LIMIT @n`, maxAnswersRead, maxPublicThread), named{"to": to, "at": p.At, "id": p.ID, "n": n})
}

// ListPublic returns up to n public objects of a thread after a place, the oldest first
// (FEP-f228). The parameter root is the first object of the thread. ListPublic leaves out answers
// to objects that are not listed themselves, so it returns nothing of a thread whose root is
// private or deleted.
func (t Threads) ListPublic(ctx context.Context, root vocab.ID, after *Place, n int) ([]PublicObject, error) {
	p := after.orOldest()
	return collect[PublicObject](ctx, t.tx, "list public thread", fmt.Sprintf(`WITH RECURSIVE down (uri, depth) AS (
			SELECT o.uri, 0 FROM objects o WHERE o.uri = @root AND `+isListed+`
			UNION SELECT o.uri, down.depth + 1 FROM down JOIN objects o ON `+answers("down.uri")+` WHERE down.depth < %d AND `+isListed+`)
		SELECT `+publicColumns+` FROM (SELECT DISTINCT uri FROM (SELECT uri FROM down LIMIT %d) bounded) few JOIN objects o ON o.uri = few.uri
		WHERE (o.published, o.id) > (@at, @id) ORDER BY o.published, o.id LIMIT @n`, maxPublicDepth, maxPublicThread), named{"root": root, "at": p.At, "id": p.ID, "n": n})
}
