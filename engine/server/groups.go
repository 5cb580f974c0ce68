package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// group is a set of actors that the user addresses together.
type group struct {
	ID      vocab.ID   `json:"id"` // the id by which the parameters to and cc name the group
	Name    string     `json:"name"`
	Members []vocab.ID `json:"members"`
}

// groupList is all groups of a user.
type groupList struct {
	Items []group `json:"items"`
}

// getGroups serves the user's groups, sorted by name. Nobody else learns that the user has any.
func (s *clientAPI) getGroups(a *answer, r *http.Request, _ httprouter.Params) error {
	u, err := s.authorizeReader(a, r)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	list := groupList{Items: []group{}}
	err = s.owners.Read(r.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		groups, err := tx.Groups.List(ctx)
		for _, g := range groups {
			list.Items = append(list.Items, group{ID: g.URI, Name: g.Name, Members: g.Members})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read groups: %w", err)
	}
	return a.sendJSON(r, list)
}
