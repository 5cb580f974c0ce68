package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	indexBatch = 500  // objects in one transaction
	editBatch  = 5000 // activities and edits of objects that are read in one transaction
	maxBatches = 4    // batches that are indexed before a search is answered
	// overlap is the time by which the index looks back for objects and activities. It looks
	// back because transactions may end in another order than their ids were made.
	overlap = time.Minute
	// setBack is the time by which the first pass of a process looks back further. Before the
	// process began, a clock that was ahead by up to this time may have been set back. Since
	// then, new ids are lower than earlier ones.
	setBack = time.Hour
	// batchTime is the longest time of a batch that Run indexes. A batch can take long in a
	// database that is read for the first time.
	batchTime = 2 * time.Minute
)

// pass is one walk through the objects and activities that came or changed since the last pass.
type pass struct {
	*Searcher
	user    vocab.Username
	isBegun bool
	// The field at is the position of this pass, and stored is the progress in the database.
	// The pass begins earlier than stored, by the time overlap.
	at     user.SearchProgress
	stored user.SearchProgress
}

func (s *Searcher) newPass(u vocab.Username) *pass { return &pass{Searcher: s, user: u} }

// indexBatches indexes at most the given number of batches, and reports whether nothing is left.
func (p *pass) indexBatches(ctx context.Context, batches int) (complete bool, err error) {
	for range batches {
		if complete, err = p.indexBatch(ctx); complete || err != nil {
			return complete, err
		}
	}
	return false, nil
}

// indexBatch indexes one batch, and reports whether nothing is left. Changed objects come first,
// then new objects.
func (p *pass) indexBatch(ctx context.Context) (complete bool, err error) {
	var found []user.Unindexed
	var edits user.Edits
	areChanged := false
	err = p.Store.Read(ctx, p.user, func(ctx context.Context, tx *user.Tx) error {
		if err := p.begin(ctx, tx); err != nil {
			return err
		}
		if edits, err = tx.Search.ListEdits(ctx, p.at.Activities, editBatch); err != nil {
			return err
		}
		if found, err = tx.Search.ListChanged(ctx, edits.Objects); err != nil {
			return err
		}
		if areChanged = len(found) > 0; !areChanged {
			found, err = tx.Search.ListUnindexed(ctx, p.at.Objects, indexBatch)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read what is not indexed: %w", err)
	}
	// If objects have changed, the same activities are read again, until none of their objects is
	// left.
	if !areChanged {
		p.at.Activities = laterOf(p.at.Activities, edits.Last)
		if len(found) > 0 {
			p.at.Objects = found[len(found)-1].ID
		}
	}
	if err := p.storeBatch(ctx, found); err != nil {
		return false, err
	}
	return len(found) == 0 && edits.Looked < editBatch, nil
}

// begin finds out where the pass begins. The very first pass reads every object in its current
// state. So of the activities it reads only those of the last hour.
func (p *pass) begin(ctx context.Context, tx *user.Tx) error {
	if p.isBegun {
		return nil
	}
	stored, err := tx.Search.FindProgress(ctx)
	if err != nil {
		return err
	}
	if stored != nil {
		p.stored = p.untilNow(*stored)
	} else {
		p.stored.Activities = idAt(p.Now())
	}
	if _, passed := p.passed.Load(p.user); !passed {
		p.stored = user.SearchProgress{Objects: stepBack(p.stored.Objects, setBack), Activities: stepBack(p.stored.Activities, setBack)}
	}
	p.at = user.SearchProgress{Objects: stepBack(p.stored.Objects, overlap), Activities: stepBack(p.stored.Activities, overlap)}
	p.isBegun = true
	return nil
}

// storeBatch stores the words of objects, and how far the index has come.
func (p *pass) storeBatch(ctx context.Context, found []user.Unindexed) error {
	reached := p.untilNow(user.SearchProgress{Objects: laterOf(p.stored.Objects, p.at.Objects), Activities: laterOf(p.stored.Activities, p.at.Activities)})
	if reached == p.stored && len(found) == 0 {
		return nil
	}
	all := make([]user.Indexed, len(found))
	for n, o := range found {
		all[n] = user.Indexed{Unindexed: o, Words: WordsOf(o.Raw, o.Readable)}
	}
	err := p.Store.Write(ctx, p.user, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Search.PutIndexed(ctx, all); err != nil {
			return err
		}
		return tx.Search.SetProgress(ctx, reached)
	})
	if err != nil {
		return fmt.Errorf("store index: %w", err)
	}
	p.stored = reached
	p.passed.Store(p.user, true)
	return nil
}

// WordsOf returns the words of a stored object as the index has them, or "" if the object cannot
// be parsed. The parameter shown is the object's readable form; if it is missing, WordsOf makes
// it.
func WordsOf(object, shown json.RawMessage) string {
	d, err := vocab.ParseDoc(object)
	if err != nil {
		return ""
	}
	return writeVector(splitWords(objectText(d, vocab.ReadableOf(d, shown))))
}

// idAt returns the lowest id that can be made at a time. Ids are UUIDs of version 7 (RFC 9562
// §5.7).
func idAt(at time.Time) (id uuid.UUID) {
	ms := at.UnixMilli()
	for n := range 6 {
		id[n] = byte(ms >> (40 - 8*n))
	}
	id[6], id[8] = 0x70, 0x80
	return id
}

// stepBack returns an id that is earlier than id by the time d. If id is no UUID of version 7, such
// as the zero id of a new index, stepBack returns id itself.
func stepBack(id uuid.UUID, d time.Duration) uuid.UUID {
	if id.Version() != 7 {
		return id
	}
	sec, nsec := id.Time().UnixTime()
	return idAt(time.Unix(sec, nsec).Add(-d))
}

// untilNow returns the progress, but at most the present time. If the clock was set back, the
// progress is ahead of the clock, and new ids are lower than the ids that the index has reached.
func (p *pass) untilNow(reached user.SearchProgress) user.SearchProgress {
	now := idAt(p.Now())
	return user.SearchProgress{Objects: earlierOf(reached.Objects, now), Activities: earlierOf(reached.Activities, now)}
}

// earlierOf returns the earlier of two ids.
func earlierOf(a, b uuid.UUID) uuid.UUID {
	if bytes.Compare(a[:], b[:]) < 0 {
		return a
	}
	return b
}

// laterOf returns the later of two ids.
func laterOf(a, b uuid.UUID) uuid.UUID {
	if bytes.Compare(a[:], b[:]) < 0 {
		return b
	}
	return a
}
