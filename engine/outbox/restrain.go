package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// countAttempt counts what an LLM engine tries before anything is looked up for it, and refuses
// more than so much.
func (o *Outbox) countAttempt(ctx context.Context, x *exchange) error {
	return o.Store.Write(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		may, err := tx.CountAttempt(ctx, x.Token, x.now, policy.Attempts.Hourly, policy.Attempts.Daily)
		if err == nil && !may {
			err = fault.New(fault.RateLimited, "the token may try 60 actions an hour and 500 a day").WithCode("assistant_limit").After(10 * time.Minute)
		}
		return err
	})
}

// restrainAssistant refuses what an LLM engine may not do although its scope has the action: words
// that are not public to somebody the user does not talk with.
func (o *Outbox) restrainAssistant(ctx context.Context, tx *db.Tx, x *exchange) error {
	if x.activity.Type != vocab.Create || audience.IsPublic(x.activity.Addressing) {
		return nil
	}
	for _, a := range x.named {
		talks, err := tx.TalksWith(ctx, o.Local.Followers(x.User), a.ID)
		if err != nil {
			return err
		}
		if !talks {
			return fault.New(fault.Forbidden, "the token may write in private only to actors the user already talks with").WithCode("stranger")
		}
	}
	return nil
}
