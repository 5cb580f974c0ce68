package outbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// findObject returns the object that a parameter names, and its author. It reads the object
// from the user's database, or else from the database of the local user who wrote it, or else
// fetches it from its server. An object that the user may not see is not found.
func (f *finder) findObject(ctx context.Context, x *exchange, name, value string) (*vocab.Object, *vocab.Actor, error) {
	id, err := parseIdentifier(name, value)
	if err != nil {
		return nil, nil, err
	}
	if id, err = f.findMeantID(ctx, x, name, id, "", handler.BringingTypes()...); err != nil {
		return nil, nil, err
	}
	obj, err := f.lookUpObject(ctx, x, id)
	if isUnheld(err) {
		return nil, nil, refuseUnheld(name)
	}
	if e := fault.Of(err); e != nil && (e.Kind == fault.NotFound || e.Kind == fault.Gone) {
		return nil, nil, fault.Wrap(e.Kind, "there is no such object", err).At("/params/" + name)
	}
	if err != nil {
		return nil, nil, err
	}
	switch {
	case obj.Type == "Tombstone":
		return nil, nil, fault.New(fault.Gone, "the object was deleted").At("/params/" + name)
	case vocab.IsActorType(obj.Type), obj.Doc.IsActivity(), !obj.OwnAuthors():
		return nil, nil, badParam(name, name+" names no object that an actor of its server wrote")
	}
	if err := x.checkTaken(obj, name); err != nil {
		return nil, nil, err
	}
	x.spelling = x.spelling.Add(obj.ID, obj.Written)
	if obj.AttributedTo.Same(x.actor.ID) {
		return obj, x.actor, nil
	}
	author, err := f.actorsFor(x).Resolve(ctx, obj.AttributedTo)
	if isUnheld(err) {
		return nil, nil, refuseUnheld(name)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find author of %s: %w", id, err)
	}
	return obj, author, nil
}

// checkTaken refuses an action that objects of this type do not support. An action that answers
// or quotes the object is checked as a Reply.
func (x *exchange) checkTaken(o *vocab.Object, name string) error {
	action := x.Action.Name
	if name == "inReplyTo" || name == "quote" {
		action = "Reply"
	}
	switch {
	case action == "" || conversation.ManifestOf(o.Type).Takes(action): // without an action, FindObject only reads the object
		return nil
	case len(conversation.TypesTaking(action)) > 0: // the action is only for reviewable types
		return badParam(name, "objects of this type cannot be disliked").WithCode("not_reviewable")
	}
	return badParam(name, "the action is not for objects of this type").WithCode("not_for_type")
}

// findMeantID returns the id of the object that a parameter means. If the parameter names a stored
// activity of one of the types, the object of that activity is meant. Otherwise the named id
// itself is meant. If the parameter "by" is not empty, only activities of that actor count.
func (f *finder) findMeantID(ctx context.Context, x *exchange, name string, id, by vocab.ID, types ...string) (vocab.ID, error) {
	var objects []vocab.ID
	err := f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		objects, err = tx.Activities.ListObjects(ctx, id, types, by, !x.Assistant)
		return err
	})
	switch {
	case err != nil || len(objects) == 0:
		return id, err
	case len(objects) > 1:
		return "", fault.New(fault.Conflict, "several actors of that server use this id: give that of the object").WithCode("ambiguous_id").At("/params/" + name)
	}
	return objects[0], nil
}

func (f *finder) lookUpObject(ctx context.Context, x *exchange, id vocab.ID) (*vocab.Object, error) {
	stored, err := f.storedObject(ctx, x.User, id)
	if stored != nil && x.Assistant {
		err = f.checkNotWaiting(ctx, x.User, id)
	}
	if err != nil {
		return nil, err
	}
	if stored != nil {
		x.held = append(x.held, id)
		return stored, nil
	}
	if x.Assistant {
		return nil, errUnheld
	}
	if f.local.IsLocal(id) {
		if stored, err = f.findLocalObject(ctx, x, id); err != nil {
			return nil, err
		}
	} else if stored, err = f.fetchObject(ctx, x, id); err != nil {
		return nil, err
	}
	x.fetched = append(x.fetched, stored)
	return stored, nil
}

// checkNotWaiting returns errUnheld for an object that waits among the requests.
func (f *finder) checkNotWaiting(ctx context.Context, u vocab.Username, id vocab.ID) error {
	return f.store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		waits, err := tx.Requests.IsAbout(ctx, id)
		if err == nil && waits {
			err = errUnheld
		}
		return err
	})
}

func (f *finder) storedObject(ctx context.Context, u vocab.Username, id vocab.ID) (obj *vocab.Object, err error) {
	err = f.store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		row, err := tx.Objects.Find(ctx, id)
		if err != nil || row == nil {
			return err
		}
		obj, err = row.Parse()
		return err
	})
	return obj, err
}

// findLocalObject returns an object of another user of this server, if the user may see it. A
// user that the author blocks does not see the author's non-public objects.
func (f *finder) findLocalObject(ctx context.Context, x *exchange, id vocab.ID) (*vocab.Object, error) {
	hidden := fault.New(fault.NotFound, "there is no such object here")
	owner, _, ok := f.local.Holder(id)
	if !ok || owner == x.User || f.checkActive(ctx, f.local.ID(owner)) != nil {
		return nil, hidden
	}
	obj, err := f.storedObject(ctx, owner, id)
	if err == nil && obj == nil {
		obj, err = f.findCreatedObject(ctx, owner, id)
	}
	if err != nil {
		return nil, err
	}
	if obj == nil || !obj.AttributedTo.Same(f.local.ID(owner)) || !audience.OfObject(obj, "").MaySee(audience.Viewer{ID: x.actor.ID}) {
		return nil, hidden // followers need no post for followers only from here, because it was delivered to them
	}
	if audience.IsPublic(obj.Addressing) {
		return obj, nil
	}
	var block *user.Block
	err = f.store.Read(ctx, owner, func(ctx context.Context, tx *user.Tx) (err error) {
		block, err = tx.Blocks.Find(ctx, user.Outbound, x.actor.ID)
		return err
	})
	if err == nil && block != nil {
		err = hidden
	}
	return obj, err
}

// findCreatedObject returns the object that u made by the Create whose id is create, or nil if
// there is no such object.
func (f *finder) findCreatedObject(ctx context.Context, u vocab.Username, create vocab.ID) (*vocab.Object, error) {
	var objects []vocab.ID
	err := f.store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		objects, err = tx.Activities.ListObjects(ctx, create, []string{vocab.Create}, f.local.ID(u), false)
		return err
	})
	if err != nil || len(objects) == 0 {
		return nil, err
	}
	return f.storedObject(ctx, u, objects[0])
}

// fetchObject fetches an object from its server. If the id is that of a Create, it fetches the
// object that the Create made, on the same server.
func (f *finder) fetchObject(ctx context.Context, x *exchange, id vocab.ID) (*vocab.Object, error) {
	obj, _, err := f.objects.Object(ctx, id, &x.User)
	if err == nil && obj.Type == vocab.Create {
		if made, bad := obj.Doc.Ref("object"); bad == nil && made.ID.SameOrigin(id) {
			obj, _, err = f.objects.Object(ctx, made.ID, &x.User)
		}
	}
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Protocol, fault.NoHost, fault.NotAcceptable:
		return nil, fault.Wrap(fault.NotFound, "no object is there", err)
	}
	return obj, err
}

// noteSpelling records how the object's own server writes the object's id, if the object is
// stored.
func (x *exchange) noteSpelling(ctx context.Context, tx *user.Tx, id vocab.ID) error {
	if id == "" {
		return nil
	}
	stored, err := tx.Objects.Find(ctx, id)
	if err != nil || stored == nil {
		return err
	}
	obj, err := stored.Parse()
	if err != nil {
		return err
	}
	x.spelling = x.spelling.Add(obj.ID, obj.Written)
	return nil
}
