package server

import (
	"net/http"
	"slices"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/outbox"
)

// actionList describes actions.
type actionList struct {
	Items []outbox.Description `json:"items"`
}

// getActions describes the actions that a client may dispatch with its token.
func (s *clientAPI) getActions(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authenticate(a, r)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	list := actionList{Items: []outbox.Description{}}
	for _, d := range outbox.Describe() {
		if slices.ContainsFunc(d.Scopes, t.Has) {
			list.Items = append(list.Items, d)
		}
	}
	return a.sendJSON(r, list)
}
