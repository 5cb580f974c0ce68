package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// person is an actor that a client asked for.
type person struct {
	URI             vocab.ID `json:"uri"`
	Type            string   `json:"type"`
	Handle          string   `json:"handle"` // empty if the actor's name cannot be part of a handle
	Name            string   `json:"name"`
	Icon            vocab.ID `json:"icon"`
	Summary         string   `json:"summary"` // sanitized HTML
	Page            string   `json:"page"`    // a web page for people
	ApprovesFollows bool     `json:"approvesFollows"`
	MovedTo         vocab.ID `json:"movedTo,omitempty"`
	Relationship    ties     `json:"relationship"`
}

// ties are the relationships between the user and an actor, in both directions.
type ties struct {
	Following     string `json:"following"`     // none, pending, accepted or rejected
	FollowedBy    string `json:"followedBy"`    // likewise
	FriendOf      string `json:"friendOf"`      // none, sent, received or accepted
	CloseFriendOf string `json:"closeFriendOf"` // likewise
	Blocking      bool   `json:"blocking"`
	BlockedBy     bool   `json:"blockedBy"`
}

// tiesOf returns the relationships to an actor in the form that clients see.
func tiesOf(is user.Standing) ties {
	return ties{Following: orNone(is.Following), FollowedBy: orNone(is.FollowedBy), FriendOf: friendState(is.Friendship[user.FriendOf]),
		CloseFriendOf: friendState(is.Friendship[user.CloseFriendOf]), Blocking: is.Blocking, BlockedBy: is.BlockedBy}
}

// friendState returns the state of a friendship. If the friendship is pending, the state tells
// which of the two asked for it.
func friendState(r user.Relationship) string {
	if r.Status == user.Pending {
		return directions[r.Direction]
	}
	return orNone(r.Status)
}

// directions maps the stored direction of a friend request to the word that clients see.
var directions = map[string]string{user.Inbound: "received", user.Outbound: "sent"}

// getPerson finds the actor with a handle or uri, and shows its relationships to the user.
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
	if err := s.countLookup(a, payerOf(t)); err != nil {
		return err
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
	err = s.owners.Read(r.Context(), t.User, func(ctx context.Context, tx *user.Tx) error {
		is, err := tx.Relationships.FindStanding(ctx, found.ID)
		p.Relationship = tiesOf(is)
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

// relationship is a follow, friendship or block in a list of them.
type relationship struct {
	ActorURI    vocab.ID  `json:"actorUri"`
	Type        string    `json:"type"`
	Status      string    `json:"status"`
	Direction   string    `json:"direction,omitempty"` // of a friendship: sent when the user asked for it, else received
	ActivityURI vocab.ID  `json:"activityUri"`         // AcceptFollow, AcceptFriendRequest and the like may name it
	Since       time.Time `json:"since"`
}

// relationshipPage is a page of relationships.
type relationshipPage struct {
	Items  []relationship          `json:"items"`
	Actors map[vocab.ID]vocab.Card `json:"actors"`
	Next   string                  `json:"next,omitempty"`
}

var (
	relationshipTypes    = append([]string{user.Blocking}, user.RelationshipTypes...)
	relationshipStatuses = []string{user.Pending, user.Accepted, user.Rejected}
)

const (
	usualRelationships = 50
	mostRelationships  = 200
)

// getRelationships lists the user's follows in both directions, friendships and blocks, the newest
// first. If the query asks for the type mute, it lists what the user has muted instead.
func (s *clientAPI) getRelationships(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "type", "status", "direction", "limit", "cursor")
	if err != nil {
		return err
	}
	if q.Get("type") == muting {
		return s.listMutes(a, r, t.User, q)
	}
	of, err := readTies(q)
	if err != nil {
		return err
	}
	limit, err := limitOf(q, usualRelationships, mostRelationships)
	if err != nil {
		return err
	}
	scope := t.User.String() + "/relationships/" + of.Type + "/" + of.Status + "/" + of.Direction
	after, err := feed.DecodeCursor(scope, q.Get("cursor"))
	if err != nil {
		return err
	}
	page := relationshipPage{Items: []relationship{}}
	err = s.owners.Read(r.Context(), t.User, func(ctx context.Context, tx *user.Tx) error {
		found, err := tx.Relationships.ListAll(ctx, of, after, limit+1)
		if err != nil {
			return err
		}
		found, page.Next = cutRows(found, limit, scope, func(r user.Relationship) user.Place { return user.Place{At: r.CreatedAt, ID: r.ID} })
		var actors []vocab.ID
		for _, f := range found {
			page.Items = append(page.Items, relationship{f.Actor, f.Type, f.Status, directions[f.Direction], f.Activity, f.CreatedAt})
			actors = append(actors, f.Actor)
		}
		page.Actors, err = s.collectCards(ctx, tx, actors)
		return err
	})
	if err != nil {
		return fmt.Errorf("list relationships: %w", err)
	}
	linkNext(a, r, q, page.Next)
	return a.sendJSON(r, page)
}

// readTies reads which relationships a query asks for.
func readTies(q url.Values) (of user.Ties, err error) {
	of.Type, of.Status = q.Get("type"), q.Get("status")
	if of.Type != "" && !slices.Contains(relationshipTypes, of.Type) || of.Status != "" && !slices.Contains(relationshipStatuses, of.Status) {
		return of, fault.New(fault.Invalid, "the type is follower, following, friendOf, closeFriendOf, block or mute, and the status pending, accepted or rejected").WithCode("bad_query")
	}
	for stored, word := range directions {
		if word == q.Get("direction") {
			of.Direction = stored
		}
	}
	if of.Direction == "" && q.Has("direction") {
		return of, fault.New(fault.Invalid, "the direction is sent or received").WithCode("bad_query")
	}
	return of, nil
}

// collectCards returns a card for each of the actors: the current one for a local user, the user's
// copy for others, and an empty one if there is no copy.
func (s *clientAPI) collectCards(ctx context.Context, tx *user.Tx, actors []vocab.ID) (map[vocab.ID]vocab.Card, error) {
	cards, err := tx.Actors.FindCards(ctx, actors)
	if err != nil {
		return nil, err
	}
	for _, id := range actors {
		card := cards[id]
		if u, isLocal := s.local.Owner(id); isLocal {
			card = vocab.Card{}
			if doc, err := s.local.Document(u); err == nil { // the card of an account that is gone stays empty
				card = vocab.CardOf(id, doc)
			}
		}
		cards[id] = card
	}
	return cards, nil
}
