package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ignoredBecause explains each reason why an activity is accepted but stored for no user.
var ignoredBecause = map[string]string{
	inbox.IgnoredNobody:      "it names nobody here, and nobody here follows its sender",
	inbox.IgnoredUnrelated:   "its recipients here neither follow its sender, nor are named, nor have what it is about",
	inbox.IgnoredFollowers:   "it is for its sender's followers or server, and its recipients here are not among them",
	inbox.IgnoredStranger:    "it is a private message of a stranger, which its recipient does not take",
	inbox.IgnoredBlocked:     "its recipients block who is behind it, or the policy of this server refuses that actor since",
	inbox.IgnoredNoEffect:    "it changes nothing here: what it is about is not here, or is newer already",
	inbox.IgnoredRelay:       "a relay passed it on, and nobody here follows its author, or its author's server does not show it",
	inbox.IgnoredUnproven:    "somebody passed it on without a proof by its author, and its author's server does not confirm it",
	inbox.IgnoredContested:   "another actor of that server uses the id of what it brings, and that server does not show it as the sender's",
	inbox.IgnoredSenderGone:  "it waited for a user's database until its sender was deleted",
	inbox.IgnoredReport:      "it is a report that is about nobody here",
	inbox.IgnoredDisplaced:   "it is a report that gave way to one of a domain with fewer open reports",
	inbox.IgnoredGroupBudget: "it was announced by a group for which as much was fetched lately as its budget allows",
	inbox.IgnoredOverBudget:  "too much of its sender's domain was stored that day, so that it was kept for those alone who follow its sender",
}

// findIgnored returns the record of an activity that was accepted and stored for no user, or nil
// if there is no such record.
func findIgnored(ctx context.Context, in *instance.Instance, id vocab.ID) (*Ignored, error) {
	g, err := in.DB.Instance.Ignored.Find(ctx, id)
	if err != nil || g == nil {
		return nil, err
	}
	return &Ignored{At: g.At, Reason: g.Reason, Says: describeIgnored(g.At, g.Reason)}, nil
}

func describeIgnored(at time.Time, reason string) string {
	because := ignoredBecause[reason]
	if because == "" {
		because = reason // a newer version of lightweb stored a reason that is not in the table
	}
	return fmt.Sprintf("It was answered 202 on %s and kept for nobody: %s.", stamp(at), because)
}

// findIgnoredBody is findIgnored for the activity in the body of a request. It returns nil
// if the body is not an activity.
func findIgnoredBody(ctx context.Context, in *instance.Instance, x SignedRequest) (*Ignored, error) {
	a, err := handler.ParseRequest(x.Body, x.Request.Header)
	if err != nil {
		return nil, nil
	}
	return findIgnored(ctx, in, a.ID)
}
