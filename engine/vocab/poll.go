package vocab

import "time"

// ClosingOf returns the time when a poll closes, which is the earlier of its members endTime and
// closed. The time is zero if the poll has neither. The result isClosed is true if the poll is
// closed but does not say since when, because its member closed is neither a time nor false
// (ActivityStreams vocabulary, closed).
func ClosingOf(poll Doc) (at time.Time, isClosed bool) {
	end, closed := poll.Time("endTime"), poll.Time("closed")
	if closed.IsZero() && poll["closed"] != nil && poll["closed"] != false {
		return time.Time{}, true
	}
	if closed.IsZero() || !end.IsZero() && end.Before(closed) {
		return end, false
	}
	return closed, false
}
