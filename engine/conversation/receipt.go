package conversation

import (
	"crypto/ed25519"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// receiptVersion is the first line of a receipt.
const receiptVersion = "lightweb-mls-receipt-1"

// receiptOf returns the text that the host of a conversation signs after it has put a message in
// order. Two different receipts for one number, or for the commits of one epoch, prove that the
// host tells members different things. The parameter previous is the hash of the message before
// e. It is empty for the first message.
func receiptOf(conversation vocab.ID, e user.LogEntry, previous []byte) []byte {
	return []byte(strings.Join([]string{receiptVersion, string(conversation), strconv.FormatInt(int64(e.Generation), 10), strconv.FormatInt(e.Epoch, 10),
		strconv.FormatInt(e.Seq, 10), hex.EncodeToString(e.Hash), hex.EncodeToString(previous)}, "\n"))
}

// provenReceipt returns the receipt of an entry if one of the keys verifies it. Else it returns
// nil, since an unverified receipt proves nothing.
func (e *entry) provenReceipt(conversation vocab.ID, keys []ed25519.PublicKey) []byte {
	if len(e.receipt) != ed25519.SignatureSize {
		return nil
	}
	said := receiptOf(conversation, user.LogEntry{Seq: e.seq, Generation: e.generation, Epoch: e.epoch, Hash: hashOf(e.message)}, e.previous)
	for _, k := range keys {
		if ed25519.Verify(k, said, e.receipt) {
			return e.receipt
		}
	}
	return nil
}
