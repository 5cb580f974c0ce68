package inbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errSenderGone says that an activity waited until its sender was deleted: nothing of it is kept.
var errSenderGone = fault.New(fault.Gone, "the sender is not known any more")

// again makes of what the journal holds what Receive had made of the request, as of then: what carries no date has that of
// its arrival, however long it waited. Nobody is asked for anything. An error that is not passing says that it cannot be
// done.
func (i *Inbox) again(ctx context.Context, u vocab.Username, w db.Waiting) (*applying, error) {
	a, err := vocab.ParseActivity(w.Raw)
	if err != nil {
		return nil, fmt.Errorf("read the activity again: %w", err)
	}
	sender, err := i.remembered(ctx, a.Actor)
	switch {
	case err != nil:
		return nil, err
	case sender == nil && a.Type == vocab.Delete:
		sender = &vocab.Actor{ID: a.Actor} // as Receive takes it from one who is gone
	case sender == nil:
		return nil, errSenderGone
	}
	fetched, reader, err := readFetched(w.Fetched)
	if err != nil {
		return nil, fmt.Errorf("read what was fetched again: %w", err)
	}
	target, err := i.movedTo(ctx, u, a, sender)
	if err != nil {
		return nil, err
	}
	forwarders, err := i.forwarders(ctx, w.Forwarders)
	if err != nil {
		return nil, err
	}
	return &applying{raw: asStored(a), payer: w.Payer, fetched: fetched, reader: reader, Received: handler.Received{Forwarders: forwarders, User: u, Me: i.Local.ID(u), Activity: a, Actor: sender,
		Target: target, Named: w.Named, Now: w.ReceivedAt}}, nil
}

// forwarders returns those of the actors that the instance knows.
func (i *Inbox) forwarders(ctx context.Context, ids []vocab.ID) (all []*vocab.Actor, err error) {
	for _, id := range ids {
		a, err := i.remembered(ctx, id)
		if err != nil {
			return nil, err
		}
		if a != nil {
			all = append(all, a)
		}
	}
	return all, nil
}

// remembered returns an actor as the instance knows it, nil when it knows none, or there is none here.
func (i *Inbox) remembered(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	a, err := i.Actors.Known(ctx, id)
	switch fault.KindOf(err) {
	case fault.NotFound, fault.NoUser:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up actor %s: %w", id, err)
	}
	return a, nil
}

// movedTo returns the target of a Move that both accounts have confirmed, as they were when it came.
func (i *Inbox) movedTo(ctx context.Context, u vocab.Username, a *vocab.Activity, old *vocab.Actor) (*vocab.Actor, error) {
	if a.Type != vocab.Move {
		return nil, nil
	}
	target, err := i.remembered(ctx, a.Target.ID)
	if err != nil || target == nil || !handler.Moved(old, target) {
		return nil, err
	}
	return target, i.Store.Acquaint(ctx, target.ID, []vocab.Username{u}, true)
}

// idOf returns the id that an activity nobody can read seems to have.
func idOf(raw []byte) vocab.ID {
	var a struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.ID == "" {
		return "about:unreadable"
	}
	return vocab.IDOf(a.ID)
}
