package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
)

// How many actions an LLM engine may do in the user's name.
const (
	assistantHourly = 60
	assistantDaily  = 500
)

// restrain refuses what an LLM engine may not do although its scope has the action: more than so much, and words that are
// not public to somebody with whom the user does not talk.
func (o *Outbox) restrain(ctx context.Context, tx *db.Tx, x *exchange) error {
	hour, day, err := tx.CountActions(ctx, x.Token, x.now)
	if err != nil {
		return err
	}
	if hour >= assistantHourly || day >= assistantDaily {
		return fault.New(fault.RateLimited, "the token may do 60 actions an hour and 500 a day").WithCode("assistant_limit").After(10 * time.Minute)
	}
	if x.activity.Type != "Create" || x.activity.Public() {
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
