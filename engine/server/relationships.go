package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// person is an actor as the user's programs are shown one that they ask for.
type person struct {
	URI             vocab.ID `json:"uri"`
	Type            string   `json:"type"`
	Handle          string   `json:"handle"` // empty when its name cannot stand in one
	Name            string   `json:"name"`
	Icon            vocab.ID `json:"icon"`
	Summary         string   `json:"summary"` // sanitized HTML
	Page            string   `json:"page"`    // for people
	ApprovesFollows bool     `json:"approvesFollows"`
	MovedTo         vocab.ID `json:"movedTo,omitempty"`
	Relationship    ties     `json:"relationship"`
}

// ties are what stands between the user and an actor, each way.
type ties struct {
	Following  string `json:"following"`  // none, pending, accepted or rejected
	FollowedBy string `json:"followedBy"` // likewise
	Blocking   bool   `json:"blocking"`
	BlockedBy  bool   `json:"blockedBy"`
}

// getPerson finds the actor with a handle or uri, and says what stands between it and the user.
func (s *clientAPI) getPerson(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "handle", "uri")
	if err != nil {
		return err
	}
	if q.Has("handle") == q.Has("uri") {
		return fault.New(fault.Invalid, "ask for an actor by handle or by uri").WithCode("bad_query")
	}
	if ok, after := s.lookups.Allow(t.User.String()); !ok {
		return fault.New(fault.RateLimited, "your programs ask for too many actors").WithCode("rate_limited").After(after)
	}
	found, err := s.outbox.FindActor(r.Context(), t.User, isAssistantReader(t), q.Get("handle")+q.Get("uri"))
	if err != nil {
		return err
	}
	doc, err := vocab.ParseDoc(found.Raw)
	if err != nil {
		return fmt.Errorf("read the actor: %w", err)
	}
	card := vocab.CardOf(found.ID, doc)
	p := person{URI: found.ID, Type: found.Type, Handle: card.Handle, Name: card.Name, Icon: card.Icon, Summary: vocab.Sanitize(doc.Words("summary")), Page: found.Page(),
		ApprovesFollows: found.ApprovesFollowers, MovedTo: found.MovedTo}
	err = s.owners.Read(r.Context(), t.User, func(ctx context.Context, tx *db.Tx) error {
		is, err := tx.Standing(ctx, found.ID)
		p.Relationship = ties{orNone(is.Following), orNone(is.FollowedBy), is.Blocking, is.BlockedBy}
		return err
	})
	if err != nil {
		return err
	}
	return a.sendJSON(r, p)
}

func orNone(status string) string {
	if status == "" {
		return "none"
	}
	return status
}

// relationship is a follow or block in a list of them.
type relationship struct {
	ActorURI    vocab.ID  `json:"actorUri"`
	Type        string    `json:"type"`
	Status      string    `json:"status"`
	ActivityURI vocab.ID  `json:"activityUri"` // by which AcceptFollow and RejectFollow may name it
	Since       time.Time `json:"since"`
}

// relationshipPage is a page of them.
type relationshipPage struct {
	Items  []relationship          `json:"items"`
	Actors map[vocab.ID]vocab.Card `json:"actors"`
	Next   string                  `json:"next,omitempty"`
}

var (
	relationshipTypes    = []string{db.Follower, db.Following, db.Blocking}
	relationshipStatuses = []string{db.Pending, db.Accepted, db.Rejected}
)

const (
	usualRelationships = 50
	mostRelationships  = 200
)

// getRelationships lists the user's follows, both ways, and blocks, the newest first.
func (s *clientAPI) getRelationships(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "type", "status", "limit", "cursor")
	if err != nil {
		return err
	}
	kind, status := q.Get("type"), q.Get("status")
	if kind != "" && !slices.Contains(relationshipTypes, kind) || status != "" && !slices.Contains(relationshipStatuses, status) {
		return fault.New(fault.Invalid, "the type is follower, following or block, and the status pending, accepted or rejected").WithCode("bad_query")
	}
	limit, err := limitOf(q, usualRelationships, mostRelationships)
	if err != nil {
		return err
	}
	scope := t.User.String() + "/relationships/" + kind + "/" + status
	after, err := feed.DecodeCursor(scope, q.Get("cursor"))
	if err != nil {
		return err
	}
	page := relationshipPage{Items: []relationship{}}
	err = s.owners.Read(r.Context(), t.User, func(ctx context.Context, tx *db.Tx) error {
		found, err := tx.AllRelationships(ctx, kind, status, after, limit+1)
		if err != nil {
			return err
		}
		if len(found) > limit {
			found = found[:limit]
			last := found[limit-1]
			page.Next = feed.EncodeCursor(scope, db.Place{At: last.CreatedAt, ID: last.ID})
		}
		var actors []vocab.ID
		for _, f := range found {
			page.Items = append(page.Items, relationship{f.Actor, f.Type, f.Status, f.Activity, f.CreatedAt.UTC()})
			actors = append(actors, f.Actor)
		}
		page.Actors, err = tx.Cards(ctx, actors)
		return err
	})
	if err != nil {
		return fmt.Errorf("list relationships: %w", err)
	}
	s.showLocal(page)
	linkNext(a, r, q, page.Next)
	return a.sendJSON(r, page)
}

// showLocal shows users of this server as they are now.
func (s *clientAPI) showLocal(page relationshipPage) {
	for _, item := range page.Items {
		if u, isLocal := s.local.Owner(item.ActorURI); isLocal {
			if doc, err := s.local.Document(u); err == nil { // an account that is gone is shown by nothing
				page.Actors[item.ActorURI] = vocab.CardOf(item.ActorURI, doc)
			}
		}
	}
}
