package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newUndo returns the handler of Undo: an actor takes back an activity of its own (ActivityPub
// §7.12). If that activity arrives after its Undo, it takes no effect as long as its id is
// remembered (see receiveUndo and Effects.TakenAway).
func newUndo(types *Registry) Handler {
	u := undoer{types}
	return Handler{
		Concern:   audience.Concern{Holders: true, Owner: true},
		Final:     true,
		TakesAway: true,
		TakesBack: true,
		Ends:      true,
		Lasting:   true,
		About: func(a *vocab.Activity) vocab.ID {
			if types.OfType(a.Object.Type()).About == nil {
				return ""
			}
			return vocab.IDOf(a.Object.Doc.Text("object"))
		},
		Check:    u.checkUndo,
		Again:    readmitUndo,
		Received: u.receiveUndo,
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if takeBack := types.OfType(s.Activity.Object.Type()).SentUndone; takeBack != nil {
				return takeBack(ctx, tx, s)
			}
			return nil
		},
	}
}

// undoer takes back activities by the Undone functions of their handlers.
type undoer struct{ types *Registry }

func (u undoer) isFinal(kind string) bool { return u.types.OfType(kind).Final }

func (u undoer) checkUndo(a *vocab.Activity) error {
	o := a.Object
	if o.IsZero() {
		return fault.New(fault.Invalid, "the activity needs an object").At("/object")
	}
	if o.ID != "" && !o.ID.SameOrigin(a.Actor) {
		return fault.New(fault.Invalid, "an actor can only undo what it did").WithCode("foreign_object").At("/object/id")
	}
	by, err := o.Doc.Ref("actor")
	if err != nil {
		return err
	}
	if by.ID != "" && !by.ID.Same(a.Actor) {
		return fault.New(fault.Invalid, "an actor can only undo what it did").WithCode("foreign_object").At("/object/actor")
	}
	for _, name := range []string{"object", "target"} {
		if _, err := o.Doc.Ref(name); err != nil && !u.isFinal(o.Type()) {
			return fault.Wrap(fault.Invalid, "several things cannot be undone at once", err).At("/object/" + name)
		}
	}
	return nil
}

// doing is the activity that an Undo takes back.
type doing struct {
	id     vocab.ID // empty if the Undo leaves it out
	kind   string   // empty if only the id is known
	about  vocab.ID
	target vocab.ID
	stored bool // kind, about and target are from the stored activity, not from the Undo
	others bool // the id belongs to a stored activity of another actor; only the id is set
}

// receiveUndo takes back an activity. If there is nothing to take back, only the id of the
// activity is stored. Not even the id is stored if the sender is a stranger, or there is no room
// for its ids (see mayRemember). An Undo is sent to everybody who knows the actor, but it concerns
// only those who have the activity.
func (u undoer) receiveUndo(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
	d, err := u.findDoing(ctx, tx, r)
	done := u.types.OfType(d.kind)
	switch {
	case err != nil:
		return Effects{}, err
	case d.others:
		return Effects{TakenAway: d.id}, ErrIgnored
	case done.Final:
		return Effects{}, ErrIgnored
	}
	return u.takeBack(ctx, tx, r, d)
}

// takeBack takes back an activity of the sender of r, by the function Undone of its handler.
func (u undoer) takeBack(ctx context.Context, tx *user.Tx, r *Received, d doing) (Effects, error) {
	done, did := u.types.OfType(d.kind), false
	if done.Undone != nil {
		var err error
		if did, err = done.Undone(ctx, tx, r, d); err != nil {
			return Effects{}, err
		}
	}
	e, err := r.disableActivity(ctx, tx, d, did, d.kind == "" || done.Answers)
	if err != nil {
		return Effects{}, err
	}
	e.Changed = did && done.Relates
	if d.stored {
		return e, tx.Activities.Remove(ctx, r.own(d.id))
	}
	if !did {
		return e, ErrIgnored
	}
	return e, nil
}

// disableActivity prevents an activity of the sender from taking effect later, if the activity
// or the sender concerns the user. The id of a stored activity is in the database already; that
// of another one is stored only if there is room. did tells whether something was taken back, and
// answers whether the activity may be an answer (see UndoneID).
func (r *Received) disableActivity(ctx context.Context, tx *user.Tx, d doing, did, answers bool) (Effects, error) {
	if d.id == "" {
		return Effects{}, nil
	}
	concerned := d.stored || did && r.Remembers
	if !concerned {
		var err error
		if concerned, err = r.mayRemember(ctx, tx); err != nil {
			return Effects{}, err
		}
	}
	if !concerned {
		return Effects{TakenAway: d.id}, nil
	}
	ids := []user.Owned{r.own(d.id)}
	e := Effects{Disabled: []vocab.ID{d.id}, Remembered: true}
	if answers && !d.stored {
		ids, e.Disabled = append(ids, r.own(UndoneID(d.id))), append(e.Disabled, UndoneID(d.id))
	}
	_, err := tx.Activities.Claim(ctx, ids)
	return e, err
}

// mayRemember reports whether the user's database should store an id of the sender that it does
// not have yet. It returns true if there is room for the id, and the user and the sender have a
// relationship or the database has something else of the sender.
func (r *Received) mayRemember(ctx context.Context, tx *user.Tx) (bool, error) {
	if !r.Remembers {
		return false, nil
	}
	return tx.Actors.IsHeld(ctx, r.Actor.ID, r.Activity.ID)
}

// findDoing returns the activity that an Undo takes back: the stored one, or else the one that
// the Undo embeds. A Block is also found by its id alone, although not each one is stored.
func (u undoer) findDoing(ctx context.Context, tx *user.Tx, r *Received) (doing, error) {
	o := r.Activity.Object
	if o.ID != "" {
		if d, err := findStored(ctx, tx, r.own(o.ID)); err != nil || d.stored {
			return d, err
		}
		if other, err := tx.Activities.Find(ctx, o.ID); err != nil || other != nil {
			return doing{id: o.ID, others: other != nil}, err
		}
	}
	if u.isFinal(o.Type()) {
		return doing{kind: o.Type()}, nil
	}
	if o.ID != "" && o.Type() == "" {
		if b, err := tx.Blocks.Find(ctx, user.Inbound, r.Actor.ID); err != nil || b != nil && b.Activity.Same(o.ID) {
			return doing{id: o.ID, kind: vocab.Block, about: r.Me}, err
		}
	}
	about, err := o.Doc.Ref("object")
	if err != nil {
		return doing{}, err
	}
	target, err := o.Doc.Ref("target")
	return doing{id: o.ID, kind: o.Type(), about: about.ID, target: target.ID}, err
}

// findStored returns the stored activity with this id and actor. The field stored of the result is
// false if there is none.
func findStored(ctx context.Context, tx *user.Tx, a user.Owned) (doing, error) {
	stored, err := tx.Activities.FindBy(ctx, a)
	if err != nil || stored == nil {
		return doing{}, err
	}
	did, err := stored.Parse()
	if err != nil {
		return doing{}, err
	}
	return doing{id: a.ID, kind: stored.Type, about: stored.Object, target: did.Target.ID, stored: true}, nil
}
