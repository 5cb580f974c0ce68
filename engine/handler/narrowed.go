package handler

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// HideNarrowed makes the stored version of a public post private if an Update makes the post less
// public and its new version is not for the user. Only the audience changes: the user keeps the
// words, addressed to their author alone, and nothing that is public shows the post any longer.
// The new audience is not stored, because it is not for the user to know either.
func HideNarrowed(ctx context.Context, tx *user.Tx, r *Received) error {
	o, err := authoredObject(r)
	if err != nil {
		return passIgnored(err)
	}
	stored, err := tx.Objects.Find(ctx, o.ID)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return err
	}
	before, err := stored.Parse()
	if err != nil || !before.AttributedTo.Same(r.Actor.ID) || isUndated(r, o) {
		return err
	}
	return passIgnored(hideNarrowed(ctx, tx, r, stored, before, o))
}

// passIgnored returns err, or nil if err says that the activity is ignored.
func passIgnored(err error) error {
	if errors.Is(err, ErrIgnored) {
		return nil
	}
	return err
}

// hideNarrowed does the work of HideNarrowed for a living post that the sender wrote. It returns
// ErrIgnored unless an error prevents the change.
func hideNarrowed(ctx context.Context, tx *user.Tx, r *Received, stored *user.Object, before, o *vocab.Object) error {
	was, err := addressingBefore(ctx, tx, before)
	if err != nil {
		return err
	}
	after := o.Addressing.With(r.Activity.Addressing)
	switch {
	case r.Mine(o.ID) || !audience.IsPublic(was) || audience.IsPublic(after) || audience.IsUnaddressed(after):
		return ErrIgnored
	case !embedsAll(r.Activity) && isOlderCopy(o, before):
		return ErrIgnored
	}
	d := audience.Narrow(before.Doc, before.AttributedTo)
	_, err = tx.Objects.Replace(ctx, stored.URI, d.JSON(), stored.Readable, NotAfter(changedAt(r, o), r.Now))
	return ignoredUnless(err)
}

// storedForm returns an object as it is stored for the first time. Hidden recipients are not
// stored. So an object that has no others is addressed to its author alone; otherwise the
// addressing of its Create would count, which may be for everybody.
func storedForm(o *vocab.Object) (doc, readable json.RawMessage) {
	if audience.IsHidden(o.Addressing) {
		o = o.ForAuthor()
	}
	return o.Stored()
}

// updatedForm returns a new version o of an object as it is stored in place of the version before,
// which is nil if none is stored. If o has no addressing of its own, it gets the open addressing of
// its Update, because the author has replaced that of its Create. If o is only for hidden
// recipients, it is addressed to its author alone. If the Update addresses nobody either, o keeps
// the open addressing of the version before.
func updatedForm(ctx context.Context, tx *user.Tx, r *Received, o, before *vocab.Object) (doc, readable json.RawMessage, err error) {
	to, isOwn := o.Addressing, !audience.IsUnaddressed(o.Addressing)
	if !isOwn {
		to = r.Activity.Addressing
	}
	isHidden := audience.IsHidden(to)
	if isHidden {
		o = o.ForAuthor()
	}
	doc, readable = o.Stored()
	if isOwn && !isHidden || before == nil && len(audience.Open(to)) == 0 {
		return doc, readable, nil
	}
	d, err := vocab.ParseDoc(doc)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case isHidden:
		if was, err := wasPublic(ctx, tx, before); err != nil || !was {
			return doc, readable, err
		}
		audience.Mark(d)
	case audience.IsUnaddressed(to):
		audience.CopyStored(d, before.Doc)
	default:
		from, _ := r.Activity.Doc.WithCanonicalIDs()
		audience.CopyOpen(d, from)
	}
	return d.JSON(), readable, nil
}

// wasPublic reports whether a stored object is public, or was public before its author narrowed its
// audience (see audience.IsNarrowed).
func wasPublic(ctx context.Context, tx *user.Tx, before *vocab.Object) (bool, error) {
	was, err := addressingBefore(ctx, tx, before)
	return audience.IsPublic(was) || audience.IsNarrowed(before.Doc), err
}

// addressingBefore returns the addressing of a stored object: its own, or that of its Create if it
// has none.
func addressingBefore(ctx context.Context, tx *user.Tx, before *vocab.Object) (vocab.Addressing, error) {
	if !audience.IsUnaddressed(before.Addressing) {
		return before.Addressing, nil
	}
	held, err := tx.Threads.Find(ctx, before.ID)
	if err != nil || held == nil {
		return vocab.Addressing{}, err
	}
	return held.AddressingOf(before)
}

// changedAt returns the time at which the author changed a post, as its Update says, or zero if
// the Update does not say it.
func changedAt(r *Received, o *vocab.Object) time.Time {
	if !o.Updated.IsZero() {
		return o.Updated
	}
	return r.Activity.Published
}
