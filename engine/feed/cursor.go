// Package feed reads a user's feeds page by page, and encodes places in feeds and collections as
// opaque cursors.
package feed

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

// A cursor is base64url of: a byte for the version, the time of the place in microseconds since
// 1970, the id of the row, the number of rows before the place, and the beginning of a SHA-256
// over all that and the scope. Anybody can compute this checksum. It makes a cursor invalid in
// every list except its own, such as another user's feed.
const (
	cursorVersion  = 2
	cursorOffset   = 3
	cursorChecksum = 8
	cursorBytes    = 1 + 8 + 16 + cursorOffset + cursorChecksum // a multiple of 3, so that base64 has no unused bits, and each place has one text
	cursorText     = cursorBytes / 3 * 4

	maxOffset = 1<<(8*cursorOffset) - 1 // a larger offset is written as 0, which means that it is not known
)

// latest is later than every time that PostgreSQL returns for a row: the end of the year 9999.
var latest = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// EncodeCursor returns the cursor of a place. scope names the list that the place is in, such as
// "alice/feed/main".
func EncodeCursor(scope string, p user.Place) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(p.At.UnixMicro())) // two's complement, so that times before 1970 are read back correctly
	b = append(b, p.ID[:]...)
	if p.Offset > maxOffset {
		p.Offset = 0
	}
	b = append(b, byte(p.Offset>>16), byte(p.Offset>>8), byte(p.Offset))
	return base64.RawURLEncoding.EncodeToString(append(b, checksum(scope, b)...))
}

// DecodeCursor returns the place that EncodeCursor wrote for the same scope. For an empty text it
// returns nil, the beginning. The fault is Invalid for any other text, because each place has
// exactly one text.
func DecodeCursor(scope, s string) (*user.Place, error) {
	if s == "" {
		return nil, nil
	}
	bad := fault.New(fault.Invalid, "the cursor is not one that was given out here").WithCode("bad_cursor")
	if len(s) != cursorText {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != cursorBytes || b[0] != cursorVersion { // b may be too short, because even Strict ignores line ends
		return nil, bad
	}
	body, sum := b[:cursorBytes-cursorChecksum], b[cursorBytes-cursorChecksum:]
	if subtle.ConstantTimeCompare(sum, checksum(scope, body)) != 1 {
		return nil, bad
	}
	micros := binary.BigEndian.Uint64(body[1:])
	at := time.UnixMicro(int64(micros)).UTC()
	if at.Year() < 1 || !at.Before(latest) {
		return nil, bad
	}
	offset := int(body[25])<<16 | int(body[26])<<8 | int(body[27])
	return &user.Place{At: at, ID: [16]byte(body[9:25]), Offset: offset}, nil
}

func checksum(scope string, body []byte) []byte {
	h := sha256.New()
	h.Write(body) // no other body and scope give the same bytes, as bodies have one length
	h.Write([]byte(scope))
	return h.Sum(nil)[:cursorChecksum]
}
