package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// answerRequest is the common part of AcceptRequest and DeclineRequest. Its parameters name the
// stranger whose private messages wait as a request, either by the id of one of the messages or
// by the id of the stranger. The activity is stored but sent to nobody, so the stranger is not
// told.
type answerRequest struct {
	ActivityID string `json:"activityId" schema:"activity,either"`
	ActorURI   string `json:"actorUri" schema:"actor,either"`
}

// acceptRequest moves a stranger's waiting messages to the feed, and later messages go to the
// feed, too. declineRequest removes the waiting messages.
type (
	acceptRequest  struct{ answerRequest }
	declineRequest struct{ answerRequest }
)

func (p *answerRequest) checkParams() error {
	return checkEither("activityId", p.ActivityID, "actorUri", p.ActorURI)
}

func (p *answerRequest) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if p.ActorURI != "" {
		x.request, err = f.actorID(ctx, x, p.ActorURI)
		x.request = x.request.Canonical()
		return err
	}
	id, err := parseIdentifier("activityId", p.ActivityID)
	if err != nil {
		return err
	}
	return f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		senders, err := tx.Requests.FindSenders(ctx, id.Canonical())
		switch {
		case err != nil:
			return err
		case len(senders) == 0:
			return refuseNoRequest()
		case len(senders) > 1:
			return refuseAmbiguous()
		}
		x.request = senders[0]
		return nil
	})
}

func refuseNoRequest() error {
	return fault.New(fault.NotFound, "there is no such request").WithCode("no_request").At("/params")
}

func (p *answerRequest) lockName() string { return "requests" }

func (p *acceptRequest) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Accept, string(x.request)
}

func (p *declineRequest) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Reject, string(x.request)
}

// findEarlier returns the earlier Accept, if the stranger was accepted before and no message
// waits. It refuses the action if the user blocks the stranger.
func (p *acceptRequest) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	if err := checkUnblocked(ctx, tx, x.request, "/params"); err != nil {
		return "", err
	}
	n, err := tx.Requests.Count(ctx, x.request, "")
	switch {
	case err != nil || n.OfActor > 0:
		return "", err
	case !n.Accepted:
		return "", refuseNoRequest()
	}
	before, err := tx.Activities.Latest(ctx, vocab.Accept, x.actor.ID, x.request)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

func (p *declineRequest) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	n, err := tx.Requests.Count(ctx, x.request, "")
	if err == nil && n.OfActor == 0 {
		err = refuseNoRequest()
	}
	return "", err
}
