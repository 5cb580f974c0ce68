package handler

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/vocab"
)

// note is the type of the objects of which conversations in the open are made.
const note = "Note"

// keepReceivedNote puts a private Note that is for the user alone into the conversation with its
// author. One that waits among the requests comes there once it is accepted.
func keepReceivedNote(ctx context.Context, tx Tx, r *Received, o *vocab.Object) error {
	if r.Request || r.IsSealed() || o.Type != note || !isBetween(r.Activity, o, r.Actor.ID, r.Me) {
		return nil
	}
	_, _, err := tx.AddPairNote(ctx, db.PairNote{User: r.Me, Partner: r.Actor.ID, Object: o.ID, At: r.Now})
	return err
}

// isBetween reports whether a post names one actor besides its author, and nobody else.
func isBetween(a *vocab.Activity, o *vocab.Object, author, other vocab.ID) bool {
	return audience.Counterpart(a.Addressing, author).Same(other) && (len(o.All()) == 0 || audience.Counterpart(o.Addressing, author).Same(other))
}

// keepSentNote puts a private Note of the user's to one actor into the conversation with it. Once
// that is encrypted nothing is said in the open any more, also when it is closed.
func keepSentNote(ctx context.Context, tx Tx, s *Sent, o *vocab.Object) error {
	partner := audience.Counterpart(s.Activity.Addressing, s.Actor.ID)
	isCollection := strings.HasPrefix(string(partner), string(s.Actor.ID)+"/")
	if partner == "" || isCollection || !audience.OfActivity(s.Activity, s.Actor.Followers).IsPrivate() {
		return nil
	}
	if o.Type != note {
		c, err := tx.PairConversation(ctx, partner)
		if err == nil && c != nil {
			err = conversation.CheckOpen(c)
		}
		return err
	}
	c, _, err := tx.AddPairNote(ctx, db.PairNote{User: s.Actor.ID, Partner: partner, Object: o.ID, Own: true, At: s.Now})
	if err != nil {
		return err
	}
	return conversation.CheckOpen(c)
}

// acceptLetters takes the private messages of a stranger, which begin a conversation or go on with
// one.
func acceptLetters(ctx context.Context, tx Tx, s *Sent) error {
	about, err := tx.AcceptRequests(ctx, s.Request, s.Now)
	if err != nil {
		return err
	}
	var letters []vocab.ID
	for _, id := range about {
		is, err := isLetterTo(ctx, tx, id, s.Request, s.Actor.ID)
		if err != nil {
			return err
		}
		if is {
			letters = append(letters, id)
		}
	}
	if len(letters) == 0 {
		return nil
	}
	pair := db.PairNote{User: s.Actor.ID, Partner: s.Request, At: s.Now}
	_, began, err := tx.AddPairNote(ctx, pair) // one that begins does so with them
	for _, id := range letters {
		if err != nil || began {
			return err
		}
		pair.Object = id
		_, _, err = tx.AddPairNote(ctx, pair)
	}
	return err
}

// isLetterTo reports whether a stored object is a private Note of an actor to another one alone.
func isLetterTo(ctx context.Context, tx Tx, id, author, to vocab.ID) (bool, error) {
	stored, err := tx.Object(ctx, id)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return false, err
	}
	o, err := stored.Parse()
	return err == nil && o.Type == note && audience.Counterpart(o.Addressing, author).Same(to), err
}

// closePair closes the encrypted conversation of the user with an actor when the user's rule does
// not permit it any more: neither of the two goes on in the open.
func (r *Registry) closePair(ctx context.Context, tx Tx, u vocab.Username, me, actor vocab.ID, own bool, now time.Time) error {
	ties, err := tx.TiesTo(ctx, []vocab.ID{actor})
	if err != nil || audience.Rule(r.profiles.User(u).Permissions.EncryptedChat).IsMet(ties[actor]) {
		return err
	}
	closed, err := tx.ClosePair(ctx, actor, own, now)
	if err != nil {
		return err
	}
	return tellClosed(ctx, tx, closed, me, actor, own, now)
}

func tellClosed(ctx context.Context, tx Tx, closed []vocab.ID, me, actor vocab.ID, own bool, now time.Time) error {
	for _, uri := range closed {
		by, trust := actor, TrustStranger
		if own {
			by, trust = me, TrustSelf
		}
		d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "conversation": string(uri), "actorUri": string(by), "trust": trust}
		if err := tx.AddEvent(ctx, db.Event{Type: "conversation.closed", Source: "local", Payload: d.JSON(), At: now}); err != nil {
			return err
		}
	}
	return nil
}
