package handler

// offer: an actor proposes something, such as to be friends. It is stored and shown, and does nothing yet.
func offer() Handler {
	return Handler{Notifies: NoticeOfOwn, Relates: true}
}
