// Package user reads and writes users' databases in transactions. A database holds all data of
// one user.
package user

// Tx is a transaction on one user's database. It is valid only during the call of the function to
// which it is passed. It has a field for each noun of the database, that is, for each kind of
// data. The code that uses a Tx must not wait for the network, for Redis or for another database.
type Tx struct {
	*tx

	Activities    Activities
	Objects       Objects
	Posts         Posts
	Actors        Actors
	Relationships Relationships
	Blocks        Blocks
	Feed          Feed
	Requests      Requests
	Streams       Streams
	Threads       Threads
	Reactions     Reactions
	Votes         Votes
	Pins          Pins
	Groups        Groups
	Events        Events
	Answers       Answers
	Poison        Poison
	Audits        Audits
	Search        Search
	Deliveries    Deliveries
	Jobs          Jobs
	Conversations Conversations
	Pairs         Pairs
	Hosted        Hosted
	Joined        Joined
	Messages      Messages
	KeyPackages   KeyPackages
	Welcomes      Welcomes
}

// newTx returns a transaction that begins with the statement begin.
func newTx(types Types, begin string) *Tx {
	t := &tx{types: types, isLook: begin == beginLook, unsent: unsent{begin: begin}}
	t.all = &Tx{tx: t,
		Activities:    Activities{t},
		Objects:       Objects{t},
		Posts:         Posts{t},
		Actors:        Actors{t},
		Relationships: Relationships{t},
		Blocks:        Blocks{t},
		Feed:          Feed{t},
		Requests:      Requests{t},
		Streams:       Streams{t},
		Threads:       Threads{t},
		Reactions:     Reactions{t},
		Votes:         Votes{t},
		Pins:          Pins{t},
		Groups:        Groups{t},
		Events:        Events{t},
		Answers:       Answers{t},
		Poison:        Poison{t},
		Audits:        Audits{t},
		Search:        Search{t},
		Deliveries:    Deliveries{t},
		Jobs:          Jobs{t},
		Conversations: Conversations{t},
		Pairs:         Pairs{t},
		Hosted:        Hosted{t},
		Joined:        Joined{t},
		Messages:      Messages{t},
		KeyPackages:   KeyPackages{t},
		Welcomes:      Welcomes{t},
	}
	return t.all
}

// The nouns of a user's database.
type (
	// Activities holds received and sent activities, and the ids that are claimed.
	Activities struct{ *tx }
	// Objects holds objects of activities, and the ids of deleted objects (see Grave).
	Objects struct{ *tx }
	// Posts holds the user's own posts as everybody sees them, and archived ones.
	Posts struct{ *tx }
	// Actors holds copies of remote actors, and their moves to other accounts. It also finds
	// and removes the rows that the database has of an actor.
	Actors struct{ *tx }
	// Relationships holds follows and friendships, and the pending requests for them.
	Relationships struct{ *tx }
	// Blocks holds actors that the user blocks, or that block the user.
	Blocks struct{ *tx }
	// Feed holds the entries of the user's feeds, and the marks of how far they are read.
	Feed struct{ *tx }
	// Requests holds private messages of strangers that wait for the user's decision.
	Requests struct{ *tx }
	// Streams holds public collections that the user fills with objects.
	Streams struct{ *tx }
	// Threads holds posts and the answers to them.
	Threads struct{ *tx }
	// Reactions holds likes, boosts and emoji reactions.
	Reactions struct{ *tx }
	// Votes holds answers to questions.
	Votes struct{ *tx }
	// Pins holds posts that actors show first.
	Pins struct{ *tx }
	// Groups holds groups of actors that the user made.
	Groups struct{ *tx }
	// Events holds events for the user's clients: those that wait to be emitted, and the newest
	// of those that were emitted.
	Events struct{ *tx }
	// Answers holds answers to requests, by idempotency key.
	Answers struct{ *tx }
	// Poison holds activities that could not be handled.
	Poison struct{ *tx }
	// Audits holds records of the actions that clients dispatched in the user's name.
	Audits struct{ *tx }
	// Search holds the index of words in objects, and finds objects and actors.
	Search struct{ *tx }
	// Deliveries holds activities that must be sent to inboxes, here and on other servers.
	Deliveries struct{ *tx }
	// Jobs holds deliveries grouped by their activity, for reports.
	Jobs struct{ *tx }
	// Conversations holds federated and encrypted conversations, and their members.
	Conversations struct{ *tx }
	// Pairs holds conversations of two: those in private Notes, and those that are encrypted.
	Pairs struct{ *tx }
	// Hosted holds encrypted conversations that the user hosts. This database orders their
	// messages.
	Hosted struct{ *tx }
	// Joined holds copies of encrypted conversations that another actor hosts, or that have no
	// host.
	Joined struct{ *tx }
	// Messages holds MLS messages that arrived for the user's devices.
	Messages struct{ *tx }
	// KeyPackages holds MLS key packages of the user's devices.
	KeyPackages struct{ *tx }
	// Welcomes holds MLS Welcomes that wait for a device.
	Welcomes struct{ *tx }
)
