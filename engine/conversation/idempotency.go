package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// digestOf returns a digest of parts, each with its length before it.
func digestOf(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return h.Sum(nil)
}

// keyOf returns the name under which the answer to a request is kept. It is longer than the
// Idempotency-Key of an action may be, and that of one conversation, caller and operation.
func keyOf(c *db.HostedConversation, caller vocab.ID, op, key string) string {
	return "mls:" + hex.EncodeToString(digestOf(c.ID[:], []byte(caller), []byte(op), []byte(key)))
}

// storedAnswer returns what a request with that key was answered, nil when it is new.
func storedAnswer(ctx context.Context, tx *db.Tx, key string, digest []byte, now time.Time) (*Accepted, error) {
	stored, err := tx.StoredAnswer(ctx, key, now)
	if err != nil || stored == nil {
		return nil, err
	}
	if string(stored.Digest) != string(digest) {
		return nil, errKeyReuse
	}
	a := &Accepted{Replayed: true}
	return a, json.Unmarshal(stored.Answer, a)
}

func storeAnswer(ctx context.Context, tx *db.Tx, key string, digest []byte, a Accepted, now time.Time) error {
	answer, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return tx.StoreAnswer(ctx, key, db.Answer{Digest: digest, Answer: answer}, now)
}
