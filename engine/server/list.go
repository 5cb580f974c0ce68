package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
)

// limitOf returns how many items a request wants on a page.
func limitOf(q url.Values, usual, most int) (int, error) {
	if !q.Has("limit") {
		return usual, nil
	}
	n, err := strconv.ParseUint(q.Get("limit"), 10, 16)
	if err != nil || n == 0 || n > uint64(most) {
		return 0, fault.New(fault.Invalid, fmt.Sprintf("the limit must be 1 to %d", most)).WithCode("bad_limit")
	}
	return int(n), nil
}

// linkNext adds the address of the next page to the headers, unless the cursor is empty.
func linkNext(a *answer, r *http.Request, q url.Values, cursor string) {
	if cursor != "" {
		q.Set("cursor", cursor)
		a.Header().Set("Link", "<"+r.URL.Path+"?"+q.Encode()+`>; rel="next"`)
	}
}

// cutRows returns at most limit rows from the start of a list, and the cursor of the rows after
// them. The cursor is empty if no rows are left.
func cutRows[T any](rows []T, limit int, scope string, placeOf func(T) user.Place) (kept []T, next string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], feed.EncodeCursor(scope, placeOf(rows[limit-1]))
}
