package user

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ahead holds rows that a transaction has read before its work asked for them. It lists the
// actors and uris whose rows were all read. If ahead lacks a row of such an actor or uri, the row
// does not exist. When a statement changes relationships or objects, the transaction drops these
// rows.
type ahead struct {
	actors        map[vocab.ID]bool // actors whose relationships and blocks were read
	blocked       map[vocab.ID]bool
	relationships map[relation]Relationship
	uris          map[vocab.ID]bool // uris that were looked up among the objects
	objects       map[vocab.ID]Object
	buried        map[Owned]bool // whether the author deleted the object
	asked         *asked
}

// asked has the rows that LockFor reads for a request to a conversation. They are valid until the
// transaction sends its next statement. Then the field asked becomes nil.
type asked struct {
	conversation uuid.UUID
	key          string // the idempotency key; empty: the request has none
	answer       *Answer
	addressees   []Addressee // the members when the conversation was locked
	caller       *Addressee  // the actor that asks; nil if it is no member
	lastSeq      int64       // of the conversation's log when it was locked
}

func (a *asked) isBy(actor vocab.ID) bool {
	return a != nil && a.caller != nil && a.caller.Actor == actor
}

// addressesTo returns the result of ListAddressees, if LockFor has read it.
func (a *asked) addressesTo(conversation uuid.UUID, left int64) ([]Addressee, bool) {
	if a == nil || a.conversation != conversation || left <= a.lastSeq {
		return nil, false
	}
	return a.addressees, true // nobody has left at a number that is not in the log
}

func (a *asked) answersTo(key string) bool { return a != nil && key != "" && a.key == key }

type relation struct {
	kind  string
	actor vocab.ID
}

// ClaimAhead claims ids as Claim does, and reads in the same round trip the rows that the
// handling of the claimed activities needs. These rows say which of the actors the user blocks,
// which relationships the actors have with the user, which of the objects are stored, and which
// their authors have deleted. ClaimAhead first takes the shared lock that HoldAudience takes, so
// that no activity of the user changes the blocks meanwhile.
func (t Activities) ClaimAhead(ctx context.Context, all []Owned, actors []vocab.ID, objects []Owned) (fresh map[Owned]bool, err error) {
	var won, shut, buried [][]byte
	uris := make([]vocab.ID, len(objects))
	for n, o := range objects {
		uris[n] = o.ID
	}
	var relationships []Relationship
	var stored []Object
	b := t.unsent.batch()
	b.Queue(holdAndClaim, keys(all), everybodys(all), audienceLock).Query(column(&won)) // first, because the lock must be held during the reads below
	b.Queue(blocked, digests(actors)).Query(column(&shut))
	b.Queue(`SELECT `+relationshipColumns+` FROM relationships WHERE actor_uri = ANY($1)`, texts(actors)).Query(into(&relationships))
	b.Queue(`SELECT `+objectColumns+` FROM objects WHERE uri = ANY($1)`, texts(uris)).Query(into(&stored))
	b.Queue(`SELECT digest FROM tombstones WHERE digest = ANY($1)`, append(keys(objects), everybodys(objects)...)).Query(column(&buried))
	if err := t.send(ctx, "claim activities", b); err != nil {
		return nil, err
	}
	t.ahead = ahead{actors: set(actors), blocked: having(actors, shut), relationships: map[relation]Relationship{},
		uris: set(uris), objects: map[vocab.ID]Object{}, buried: amongGraves(objects, buried)}
	for _, r := range relationships {
		t.ahead.relationships[relation{r.Type, r.Actor}] = r
	}
	for _, o := range stored {
		t.ahead.objects[o.URI] = o
	}
	return firstOf(all, won), nil
}

// amongGraves reports for each object whether its author deleted it. Old rows do not say who
// deleted the object, and count as deletions by the author.
func amongGraves(objects []Owned, found [][]byte) map[Owned]bool {
	there := map[string]bool{}
	for _, k := range found {
		there[string(k)] = true
	}
	buried := map[Owned]bool{}
	for _, o := range objects {
		buried[o] = there[string(o.key())] || there[string(schema.Digest(o.ID))]
	}
	return buried
}

// blockedOf returns which of the actors the user blocks. It returns nil if this was not read
// ahead for all of the actors.
func (a *ahead) blockedOf(actors []vocab.ID) map[vocab.ID]bool {
	if len(actors) == 1 && a.asked.isBy(actors[0]) {
		return map[vocab.ID]bool{actors[0]: a.asked.caller.Blocked}
	}
	for _, id := range actors {
		if !a.actors[id] {
			return nil
		}
	}
	return a.blocked
}

// relationship returns a relationship that was read ahead, or nil if there is none. The bool
// reports whether relationships of the actor were read ahead.
func (a *ahead) relationship(kind string, actor vocab.ID) (*Relationship, bool) {
	if r, there := a.relationships[relation{kind, actor}]; there {
		return &r, true
	}
	return nil, a.actors[actor]
}

// forgetActor and forgetObject drop rows that were read ahead, so that the next read goes to the
// database.
func (a *ahead) forgetActor(actor vocab.ID) {
	delete(a.actors, actor)
	for _, kind := range RelationshipTypes {
		delete(a.relationships, relation{kind, actor})
	}
}

func (a *ahead) forgetObject(uri vocab.ID) {
	delete(a.uris, uri)
	delete(a.objects, uri)
}

// readAhead returns the object with this uri if the transaction has it in memory. The bool
// reports whether the transaction knows, without a query, whether there is such an object. If the
// bool is true and the object is nil, there is no such object.
func (t *tx) readAhead(uri vocab.ID) (*Object, bool) {
	for _, o := range t.unsent.objects {
		if o.URI == uri {
			return &o, true
		}
	}
	if o, there := t.ahead.objects[uri]; there {
		return &o, true
	}
	return nil, t.ahead.uris[uri]
}

func set(ids []vocab.ID) map[vocab.ID]bool {
	s := make(map[vocab.ID]bool, len(ids))
	for _, id := range ids {
		s[id] = true
	}
	return s
}

// column reads rows of one column.
func column[T any](out *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*out, err = pgx.CollectRows(rows, pgx.RowTo[T])
		return err
	}
}
