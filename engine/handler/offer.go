package handler

// newOffer returns the handler of Offer: an actor proposes something, such as to be friends. It is
// stored and shown, and has no effect.
func newOffer() Handler {
	return Handler{Notifies: NoticeOfOwn, Relates: true}
}
