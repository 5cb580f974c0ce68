package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// SuspendedActor is an actor of another server that this server refuses.
type SuspendedActor struct {
	ID      vocab.ID `json:"id"`
	Handle  string   `json:"handle,omitempty"` // if the actor's server ever confirmed it
	Comment string   `json:"comment"`
}

// ListSuspended returns the suspended actors, sorted by id.
func (as Actors) ListSuspended(ctx context.Context) ([]SuspendedActor, error) {
	s, err := as.in.Registry.Server()
	if err != nil {
		return nil, err
	}
	out := make([]SuspendedActor, len(s.SuspendedActors))
	for i, id := range s.SuspendedActors {
		out[i] = SuspendedActor{ID: id, Comment: s.Comments[string(id)]}
		known, err := as.in.DB.Instance.Actors.Find(ctx, id)
		if err != nil && fault.KindOf(err) != fault.Invalid { // Invalid: an old copy that cannot be parsed is ignored
			return nil, err
		}
		if known != nil && known.Handle != "" {
			out[i].Handle = "@" + known.Handle
		}
	}
	return out, nil
}

// Suspension suspends actors, or ends their suspension.
type Suspension struct {
	Actors  []string // ids or handles
	Remove  bool
	Comment string // for actors that are added; if empty, the stored comment stays
}

// SuspensionReport is the result of a suspension. After the end of suspensions, Unconfirmed is
// empty, and Users and Following are 0.
type SuspensionReport struct {
	Changed     []vocab.ID `json:"changed"`
	Unchanged   []vocab.ID `json:"unchanged"`
	Unconfirmed []vocab.ID `json:"unconfirmed"` // those of Changed that their servers did not confirm
	Users       int        `json:"users"`       // active users acquainted with an actor in Changed
	Following   int        `json:"following"`   // active users who may follow an actor in Changed
}

// Suspend suspends the actors in the policy, or ends their suspension. A serving engine applies
// the change within a second. Suspend looks up handles, and also ids, because an id may be the
// address of the actor's page. An id that cannot be looked up is used as it is. To end a
// suspension, Suspend asks no other server. The fault is Invalid for an actor of this server,
// Conflict if all actors were suspended before, NotFound if none was suspended, and Partial if
// only some actors changed. If a handle cannot be looked up, the fault is that of the lookup.
func (as Actors) Suspend(ctx context.Context, c Suspension) (SuspensionReport, error) {
	r := SuspensionReport{Changed: []vocab.ID{}, Unchanged: []vocab.ID{}, Unconfirmed: []vocab.ID{}}
	if err := checkComment(c.Comment); err != nil {
		return r, err
	}
	ids := make([]vocab.ID, len(c.Actors))
	unconfirmed := map[vocab.ID]bool{}
	for i, written := range c.Actors {
		id, confirmed, err := as.findSuspect(ctx, written, c.Remove)
		if err != nil {
			return r, err
		}
		ids[i], unconfirmed[id] = id, !confirmed
	}
	err := as.in.Registry.UpdateServer(func(s *registry.Server) (bool, error) {
		for _, id := range ids {
			if changeList(s, &s.SuspendedActors, id, c.Remove, c.Comment) {
				r.Changed = append(r.Changed, id)
			} else if !slices.Contains(r.Changed, id) {
				r.Unchanged = append(r.Unchanged, id)
			}
		}
		if c.Remove {
			return len(r.Changed) > 0, nil
		}
		r.Unconfirmed = slices.DeleteFunc(slices.Clone(r.Changed), func(id vocab.ID) bool { return !unconfirmed[id] })
		var err error
		r.Users, r.Following, err = as.countAcquainted(ctx, r.Changed)
		return len(r.Changed) > 0, err
	})
	if err != nil {
		return r, err
	}
	return r, unchangedFault(r.Unchanged, len(r.Changed), c.Remove, "suspended", "lightweb actor list --suspended")
}

// findSuspect returns the id of an actor, and whether the actor's server has ever confirmed it. If
// remove is true, it does not check that, and confirmed is true.
func (as Actors) findSuspect(ctx context.Context, written string, remove bool) (id vocab.ID, confirmed bool, err error) {
	if strings.Contains(written, "://") {
		id, confirmed, err = as.findByID(ctx, written, remove)
	} else {
		id, err = as.findByHandle(ctx, written, remove)
		confirmed = err == nil
	}
	if err == nil && as.in.Local.IsLocal(id) {
		err = fault.New(fault.Invalid, fmt.Sprintf("%s is an actor of this server", id))
	}
	return id.Canonical(), confirmed, err
}

// findByID looks up an id. If remove is true, it only parses the id.
func (as Actors) findByID(ctx context.Context, written string, remove bool) (vocab.ID, bool, error) {
	id, err := vocab.ParseID(written)
	if err != nil || remove {
		return id, true, err
	}
	a, err := as.in.Actors.Resolve(ctx, id)
	if err != nil {
		as.in.Log.DebugContext(ctx, "actor not looked up", "actor", id, "err", err)
		return id, false, nil // an actor can be suspended even if its server does not answer
	}
	return a.ID, true, nil
}

// findByHandle first looks for a stored actor with the handle, because requests to the server of a
// suspended actor may be forbidden. If there is none and remove is false, it asks another server.
func (as Actors) findByHandle(ctx context.Context, handle string, remove bool) (vocab.ID, error) {
	a, err := as.in.Actors.KnownHandle(ctx, handle)
	switch {
	case err != nil:
		return "", err
	case a == nil && remove:
		return "", fault.New(fault.NotFound, fmt.Sprintf("nobody is known as %.100q", handle)).WithHint("lightweb actor list --suspended shows ids, which will do")
	case a == nil:
		a, err = as.in.Actors.Handle(ctx, handle)
	}
	if err != nil {
		return "", err
	}
	return a.ID, nil
}

// countAcquainted counts the active users who are acquainted with one of the actors, and those who
// may follow one of them.
func (as Actors) countAcquainted(ctx context.Context, actors []vocab.ID) (users, following int, err error) {
	known := map[bool]map[vocab.Username]bool{false: {}, true: {}}
	for _, id := range actors {
		for follows, found := range known {
			names, err := as.in.DB.Instance.Acquaintances.Users(ctx, id, follows)
			if err != nil {
				return 0, 0, err
			}
			for _, u := range names {
				found[u] = true
			}
		}
	}
	return len(known[false]), len(known[true]), nil
}
