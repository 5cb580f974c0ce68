package actor

import (
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// QuotePolicy returns the part of u's public posts that says who may quote them (FEP-044f). Peers
// show this part to people before they ask to quote. The answer to such a request depends on u's
// configuration at that time. If nobody may quote, the policy names u alone, because JSON-LD
// treats an empty list as a missing one.
func (l *Local) QuotePolicy(u vocab.Username) vocab.Doc {
	may := l.ID(u)
	switch l.profiles.User(u).Quotes {
	case registry.AnyoneQuotes:
		may = vocab.Public
	case registry.FollowersQuote:
		may = l.Followers(u)
	}
	return vocab.Doc{"canQuote": vocab.Doc{"automaticApproval": []any{string(may)}}}
}
