package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	indexBatch = 500  // objects in one transaction
	editBatch  = 5000 // activities that are looked at in one transaction
	maxBatches = 4    // before a search is answered
	// overlap is how far back the index looks for objects and activities: they are stored in
	// transactions that end in another order than their ids were made.
	overlap = time.Minute
)

// pass is a walk through what has come or changed since the last one.
type pass struct {
	*Searcher
	user    vocab.Username
	isBegun bool
	at      db.SearchProgress // how far it is: behind what is stored at its beginning, by the overlap
	stored  db.SearchProgress
}

func (s *Searcher) newPass(u vocab.Username) *pass { return &pass{Searcher: s, user: u} }

// indexBatches indexes so many batches at most, and reports whether nothing is left.
func (p *pass) indexBatches(ctx context.Context, batches int) (complete bool, err error) {
	for range batches {
		if complete, err = p.indexBatch(ctx); complete || err != nil {
			return complete, err
		}
	}
	return false, nil
}

// indexBatch indexes one batch, and reports whether nothing is left: first what activities changed,
// then what has come.
func (p *pass) indexBatch(ctx context.Context) (complete bool, err error) {
	var found []db.Unindexed
	var edits db.Edits
	areChanged := false
	err = p.Store.Read(ctx, p.user, func(ctx context.Context, tx *db.Tx) error {
		if err := p.begin(ctx, tx); err != nil {
			return err
		}
		if edits, err = tx.EditsAfter(ctx, p.at.Activities, editBatch); err != nil {
			return err
		}
		if found, err = tx.ChangedObjects(ctx, edits.Objects); err != nil {
			return err
		}
		if areChanged = len(found) > 0; !areChanged {
			found, err = tx.UnindexedObjects(ctx, p.at.Objects, indexBatch)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read what is not indexed: %w", err)
	}
	if !areChanged { // else the same activities are looked at again, until nothing of theirs is left
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

// begin finds out where the pass begins. Of the activities before the first one nothing is to be
// learnt: what they changed is read as it is now.
func (p *pass) begin(ctx context.Context, tx *db.Tx) error {
	if p.isBegun {
		return nil
	}
	stored, err := tx.SearchProgress(ctx)
	if err != nil {
		return err
	}
	if stored != nil {
		p.stored = *stored
	} else {
		p.stored.Activities = idAt(p.Now())
	}
	p.at = db.SearchProgress{Objects: stepBack(p.stored.Objects), Activities: stepBack(p.stored.Activities)}
	p.isBegun = true
	return nil
}

// storeBatch stores the words of objects and how far the index has come.
func (p *pass) storeBatch(ctx context.Context, found []db.Unindexed) error {
	reached := db.SearchProgress{Objects: laterOf(p.stored.Objects, p.at.Objects), Activities: laterOf(p.stored.Activities, p.at.Activities)}
	if reached == p.stored && len(found) == 0 {
		return nil
	}
	all := make([]db.Indexed, len(found))
	for n, o := range found {
		all[n] = db.Indexed{Unindexed: o, Words: WordsOf(o.Raw, o.Readable)}
	}
	err := p.Store.Write(ctx, p.user, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.PutIndexed(ctx, all); err != nil {
			return err
		}
		return tx.SetSearchProgress(ctx, reached)
	})
	if err != nil {
		return fmt.Errorf("store index: %w", err)
	}
	p.stored = reached
	return nil
}

// WordsOf returns the words of a stored object as the index has them, none when it cannot be read.
// The words that its readers are shown may be missing: then they are made.
func WordsOf(object, shown json.RawMessage) string {
	d, err := vocab.ParseDoc(object)
	if err != nil {
		return ""
	}
	readable, err := vocab.ParseDoc(shown)
	if shown == nil || err != nil {
		readable = vocab.Readable(d, nil)
	}
	return writeVector(splitWords(objectText(d, readable)))
}

// idAt returns the first id of a time (RFC 9562 §5.7).
func idAt(at time.Time) (id uuid.UUID) {
	ms := at.UnixMilli()
	for n := range 6 {
		id[n] = byte(ms >> (40 - 8*n))
	}
	id[6], id[8] = 0x70, 0x80
	return id
}

// stepBack returns an id as much earlier as transactions may take.
func stepBack(id uuid.UUID) uuid.UUID {
	if id.Version() != 7 {
		return id
	}
	sec, nsec := id.Time().UnixTime()
	return idAt(time.Unix(sec, nsec).Add(-overlap))
}

// laterOf returns the later one of two ids.
func laterOf(a, b uuid.UUID) uuid.UUID {
	if bytes.Compare(a[:], b[:]) < 0 {
		return b
	}
	return a
}
