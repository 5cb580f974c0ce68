package vocab

import "time"

// ClosingOf returns when a poll closes: at the earlier of its endTime and its closed. The time is
// zero if it has neither. isClosed is true if the poll is closed at any time, because its closed
// is neither a time nor false (ActivityStreams vocabulary, closed).
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
