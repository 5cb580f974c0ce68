package vocab

// The types of activities that this engine knows (ActivityStreams vocabulary §3; EmojiReact is
// LitePub's, QuoteRequest that of FEP-044f). Each has a handler: engine/handler says what it does,
// and the rest of the engine asks there for everything that several types share.
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
