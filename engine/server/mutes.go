package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// muting is the type of relationship that lists what the user has muted.
const muting = "mute"

// mute is an actor, a domain or a word that the user has muted.
type mute struct {
	Type     string   `json:"type"`
	ActorURI vocab.ID `json:"actorUri,omitempty"`
	Domain   string   `json:"domain,omitempty"`
	Keyword  string   `json:"keyword,omitempty"`
}

// mutePage is all that the user has muted. It has no limit of its own, because the size of the
// user's file is limited.
type mutePage struct {
	Items  []mute                  `json:"items"`
	Actors map[vocab.ID]vocab.Card `json:"actors"`
}

// listMutes lists what the user's file mutes, in the order of the file.
func (s *clientAPI) listMutes(a *answer, r *http.Request, u vocab.Username, q url.Values) error {
	if len(q) > 1 {
		return fault.New(fault.Invalid, "mutes come all at once, and have no status and no direction").WithCode("bad_query")
	}
	muted := s.profiles.User(u).Moderation
	page := mutePage{Items: []mute{}}
	for _, id := range muted.MutedActors {
		page.Items = append(page.Items, mute{Type: muting, ActorURI: id})
	}
	for _, d := range muted.MutedDomains {
		page.Items = append(page.Items, mute{Type: muting, Domain: d})
	}
	for _, k := range muted.MutedKeywords {
		page.Items = append(page.Items, mute{Type: muting, Keyword: k})
	}
	err := s.owners.Read(r.Context(), u, func(ctx context.Context, tx *user.Tx) (err error) {
		page.Actors, err = s.collectCards(ctx, tx, muted.MutedActors)
		return err
	})
	if err != nil {
		return fmt.Errorf("list mutes: %w", err)
	}
	return a.sendJSON(r, page)
}
