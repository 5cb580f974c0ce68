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
	was, err := AddressingBefore(ctx, tx, before)
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

// addressByUpdate returns the stored form of a new version with the open addressing of its Update,
// if the version has none of its own. Otherwise the addressing of its Create would count, which the
// author has replaced. If the Update names its recipients only in bto or bcc, the version is
// addressed to its author alone. If the Update addresses nobody either, the version keeps the open
// addressing of the version before.
func addressByUpdate(a *vocab.Activity, o, before *vocab.Object, doc json.RawMessage) (json.RawMessage, error) {
	if !audience.IsUnaddressed(o.Addressing) {
		return doc, nil
	}
	d, err := vocab.ParseDoc(doc)
	if err != nil {
		return nil, err
	}
	switch {
	case audience.IsUnaddressed(a.Addressing):
		audience.CopyStored(d, before.Doc)
	case len(audience.Open(a.Addressing)) == 0:
		d = audience.Narrow(d, o.AttributedTo)
	default:
		from, _ := a.Doc.WithCanonicalIDs()
		audience.CopyOpen(d, from)
	}
	return d.JSON(), nil
}

// AddressingBefore returns the addressing of a stored object: its own, or that of its Create if it
// has none.
func AddressingBefore(ctx context.Context, tx *user.Tx, before *vocab.Object) (vocab.Addressing, error) {
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
