package vocab

// The types of activities that this engine supports (ActivityStreams vocabulary §3; EmojiReact
// comes from LitePub, QuoteRequest from FEP-044f). Each type has a handler in engine/handler,
// which defines its behaviour. That package also has the traits that several types share, for the
// rest of the engine to read.
const (
	Accept       = "Accept"
	Add          = "Add"
	Announce     = "Announce"
	Block        = "Block"
	Create       = "Create"
	Delete       = "Delete"
	Dislike      = "Dislike"
	EmojiReact   = "EmojiReact"
	Flag         = "Flag"
	Follow       = "Follow"
	Like         = "Like"
	Move         = "Move"
	Offer        = "Offer"
	QuoteRequest = "QuoteRequest"
	Reject       = "Reject"
	Remove       = "Remove"
	Undo         = "Undo"
	Update       = "Update"
)
