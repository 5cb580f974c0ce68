package conversation

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// receiptVersion begins the text of a receipt.
const receiptVersion = "lightweb-mls-receipt-1"

// receiptOf returns the text that the host of a conversation signs when it has put a message in
// order. Two receipts that differ for one number, or for the commits of one epoch, prove that the
// host tells members different things. previous is the hash of the message before; empty for the
// first.
func receiptOf(conversation vocab.ID, e db.LogEntry, previous []byte) []byte {
	return []byte(strings.Join([]string{receiptVersion, string(conversation), strconv.FormatInt(int64(e.Generation), 10), strconv.FormatInt(e.Epoch, 10),
		strconv.FormatInt(e.Seq, 10), hex.EncodeToString(e.Hash), hex.EncodeToString(previous)}, "\n"))
}
