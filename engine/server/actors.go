package server

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// checkPresent returns nil if u is an active user of this server. It does not open u's database.
// The fault is Gone for a user who is deleted or being deleted, because the name is never used
// again. The fault is NotFound if there is no such user, or if the user is suspended or not
// completely made yet.
func (s *access) checkPresent(r *http.Request, u vocab.Username) error {
	state, err := s.store.Instance.Users.State(r.Context(), u)
	switch {
	case fault.KindOf(err) == fault.NoUser:
		return errNothing
	case err != nil:
		return err
	case state == instance.UserDeleting || state == instance.UserDeleted:
		return fault.New(fault.Gone, "the user is not here any more")
	case state != instance.UserActive:
		return errNothing
	}
	return nil
}

// findResident returns the user that the path names. It fails as checkPresent does.
func (s *access) findResident(r *http.Request, p httprouter.Params) (vocab.Username, error) {
	u, err := vocab.ParseUsername(p.ByName("user"))
	if err != nil {
		return u, errNothing
	}
	return u, s.checkPresent(r, u)
}

// actors shows the actors of the users and of the instance.
type actors struct{ *access }

// getActor serves an actor document. It does not wait for a user's database or for the work of
// inboxes. It waits for the network only in secure mode, and no longer than the constant
// patience. It must not wait long, because a peer may ask for the document while this server
// waits for an answer of that peer.
func (s *actors) getActor(a *answer, r *http.Request, p httprouter.Params) error {
	contentType, unacceptable := a.chooseDocument(r)
	toPage := s.local.HasPages() && prefersPage(r)
	if unacceptable != nil && !toPage {
		return unacceptable
	}
	if s.secureMode {
		a.addVary(whoAsks...)
	}
	if err := s.introduceReader(a, r); err != nil {
		return err
	}
	u, err := s.findResident(r, p)
	if toPage && err == nil {
		a.sendElsewhere(s.local.Page(u))
		return nil
	}
	if unacceptable != nil {
		return unacceptable
	}
	if fault.KindOf(err) == fault.Gone {
		return s.showGone(a, r, u, contentType)
	}
	if err != nil {
		return err
	}
	actor, err := s.local.Actor(u)
	if err != nil { // the user exists, and a peer must not take missing keys for a missing user
		return fault.Wrap(fault.Unavailable, "the user's keys or profile cannot be read", err).WithCode("user_unavailable").WithHint(fault.Hint(err))
	}
	a.setCache(s.cachePolicy())
	a.sendTagged(r, contentType, actor.Raw)
	return nil
}

// showGone serves the keys of a user who is being deleted, while the keys exist, because other
// servers verify the user's Delete with them. Afterwards it serves a Tombstone.
func (s *actors) showGone(a *answer, r *http.Request, u vocab.Username, contentType string) error {
	a.setCache("no-store")
	state, err := s.store.Instance.Users.State(r.Context(), u)
	if err != nil {
		return err
	}
	if state == instance.UserDeleting {
		if d, err := s.local.KeyDocument(u); err == nil {
			a.send(http.StatusOK, contentType, d.JSON())
			return nil
		}
	}
	a.setCache(s.cachePolicy())
	a.send(http.StatusGone, contentType, vocab.Doc{"@context": vocab.ContextAS, "id": string(s.local.ID(u)), "type": "Tombstone",
		"formerType": "Person"}.JSON())
	return nil
}

// getInstanceActor serves the actor that signs this server's own requests. It never asks for a
// signature, because two servers that each required the other's key first would wait for ever.
func (s *actors) getInstanceActor(a *answer, r *http.Request, _ httprouter.Params) error {
	contentType, err := a.chooseDocument(r)
	if err != nil {
		return err
	}
	d, err := s.local.InstanceDocument()
	if err != nil {
		return err
	}
	a.setCache(cachePublic)
	a.sendTagged(r, contentType, d.JSON())
	return nil
}
