package server

import (
	"context"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// getSynchronization shows the signer of the request which followers of a user are on the
// signer's own server, and never any other follower (FEP-8fcf). It refuses to show a list that is
// too long, because the other server would end the follows that an incomplete list lacks.
func (s *federation) getSynchronization(a *answer, r *http.Request, p httprouter.Params) error {
	a.addVary(whoAsks...)
	a.setCache(cachePrivate)
	contentType, err := a.chooseDocument(r)
	if err != nil {
		return err
	}
	signer, err := s.identifySigner(a, r)
	if err != nil {
		return err
	}
	u, err := s.findResident(r, p)
	if err != nil {
		return err
	}
	var followers []string
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *user.Tx) (err error) {
		followers, err = tx.Relationships.ListFollowers(ctx, signer.Origin(), vocab.MaxSynchronized+1)
		return err
	})
	if err != nil {
		return err
	}
	if len(followers) > vocab.MaxSynchronized {
		return errNothing
	}
	items := make([]any, len(followers))
	for i, id := range followers {
		items[i] = id
	}
	a.send(http.StatusOK, contentType, vocab.Doc{"@context": vocab.ContextAS, "id": string(s.local.FollowersAt(u)), "type": "OrderedCollection",
		"totalItems": len(items), "orderedItems": items}.JSON())
	return nil
}

// identifySigner returns the actor who signed the request. It accepts no token, because a token
// identifies a local user, not another server.
func (s *federation) identifySigner(a *answer, r *http.Request) (vocab.ID, error) {
	_, given := bearerToken(r)
	if !given {
		id, err := s.identifyAsker(a, r)
		if err == nil || fault.KindOf(err) != fault.Unauthenticated {
			return id, err
		}
	}
	a.Header().Set("WWW-Authenticate", wantsSignature)
	return "", fault.New(fault.Unauthenticated, "sign the request").WithCode("unsigned")
}
