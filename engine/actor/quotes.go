package actor

import (
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// QuotePolicy returns what a public post of u's says of who may quote it (FEP-044f). It is what
// peers show people before they ask; who asks is answered by what u has settled by then. Nobody is
// written as the author alone: an empty list is none in JSON-LD.
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
