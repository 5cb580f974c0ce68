package server

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// getWelcomes hands out Welcomes that wait for a device of the user, or for any of the user's
// devices if the query names no device.
func (s *conversations) getWelcomes(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "device")
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead { // nothing is handed out
		return a.sendCreated(http.StatusOK, welcomeList{})
	}
	a.changes = true // the Welcomes are leased
	all, err := s.registry.Welcomes(r.Context(), t.User, q.Get("device"))
	if err != nil {
		return err
	}
	list := welcomeList{Items: []welcome{}}
	for _, w := range all {
		list.Items = append(list.Items, showWelcome(w))
	}
	return a.sendCreated(http.StatusOK, list)
}

// postConfirmation records that a device has joined by a Welcome. The body may name the group.
func (s *conversations) postConfirmation(a *answer, r *http.Request, p httprouter.Params) error {
	return s.change(a, r, p, "welcome", func(ctx context.Context, u vocab.Username, id uuid.UUID) error {
		var body struct {
			GroupID string `json:"groupId"`
		}
		if r.ContentLength != 0 {
			if err := s.readJSON(a, r, u, &body); err != nil {
				return err
			}
		}
		return s.registry.ConfirmWelcome(ctx, u, id, body.GroupID)
	})
}
