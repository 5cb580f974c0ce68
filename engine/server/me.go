package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// me is the user whose token a request carries, with the scopes of the token.
type me struct {
	User      string   `json:"user"`
	URI       vocab.ID `json:"uri"`
	Handle    string   `json:"handle"`
	Name      string   `json:"name"`
	Icon      vocab.ID `json:"icon"`
	Summary   string   `json:"summary"` // sanitized HTML
	Followers int      `json:"followers"`
	Following int      `json:"following"`
	Scopes    []string `json:"scopes"`
}

// getMe tells a client which user its token belongs to.
func (s *clientAPI) getMe(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authenticate(a, r)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	doc, err := s.local.Document(t.User)
	if err != nil {
		return fmt.Errorf("read the user's actor: %w", err)
	}
	id := s.local.ID(t.User)
	card := vocab.CardOf(id, doc)
	m := me{User: t.User.String(), URI: id, Handle: s.local.Handle(t.User), Name: card.Name, Icon: card.Icon, Summary: vocab.Sanitize(doc.Words("summary")), Scopes: t.Scopes}
	err = s.owners.Read(r.Context(), t.User, func(ctx context.Context, tx *user.Tx) (err error) {
		if m.Followers, err = tx.Relationships.Count(ctx, user.Follower); err != nil {
			return err
		}
		m.Following, err = tx.Relationships.Count(ctx, user.Following)
		return err
	})
	if err != nil {
		return fmt.Errorf("count relationships: %w", err)
	}
	return a.sendJSON(r, m)
}
