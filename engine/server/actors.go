package server

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// checkPresent reports whether u is somebody here, without opening u's database. The fault is
// NotFound for nobody, who is half-made or suspended, Gone for who was deleted: the name is never
// used again.
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

// findResident returns the user that the path names, as present does.
func (s *access) findResident(r *http.Request, p httprouter.Params) (vocab.Username, error) {
	u, err := vocab.ParseUsername(p.ByName("user"))
	if err != nil {
		return u, errNothing
	}
	return u, s.checkPresent(r, u)
}

// actors shows the actors of the users and of the instance.
type actors struct{ *access }

// getActor serves an actor document. Nothing it does waits for a user's database, for what inboxes
// are at, or, but for a moment in secure mode, for the network: a peer may ask while we wait for
// an answer of that peer.
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
	if err != nil { // the user is there: a peer must not take missing keys for a missing user
		return fault.Wrap(fault.Unavailable, "the user's keys or profile cannot be read", err).WithCode("user_unavailable").WithHint(fault.Hint(err))
	}
	a.setCache(s.cachePolicy())
	a.sendTagged(r, contentType, actor.Raw)
	return nil
}

// showGone shows the keys of a user who is being deleted, as long as they are there: other servers
// prove by them that the user says so. Nothing but a tombstone is shown of one who is deleted.
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

// getInstanceActor serves the actor that signs our own requests, to everybody: two servers that
// first wanted to know each other's key would wait for ever.
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
