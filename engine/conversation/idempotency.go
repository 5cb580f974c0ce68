package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// digestOf returns a digest of parts, each of them preceded by its length.
func digestOf(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return h.Sum(nil)
}

// keyOf returns the key under which the answer to a request is stored. It is longer than any
// permitted Idempotency-Key of an action, so the two cannot collide. The key differs for each
// conversation, caller and operation.
func keyOf(conversation uuid.UUID, caller vocab.ID, op, key string) string {
	return "mls:" + hex.EncodeToString(digestOf(conversation[:], []byte(caller), []byte(op), []byte(key)))
}

// storedAnswer returns the answer that an earlier request with the same key got, or nil if there
// was no such request in the last 24 hours. If that request had another digest, storedAnswer
// returns an error, because the key was used for two requests.
func storedAnswer(ctx context.Context, tx *user.Tx, key string, digest []byte, now time.Time) (*Accepted, error) {
	stored, err := tx.Answers.Find(ctx, key, now)
	if err != nil || stored == nil {
		return nil, err
	}
	if string(stored.Digest) != string(digest) {
		return nil, errKeyReuse
	}
	a := &Accepted{Replayed: true}
	return a, json.Unmarshal(stored.Answer, a)
}

func storeAnswer(tx *user.Tx, key string, digest []byte, a Accepted, now time.Time) error {
	answer, err := json.Marshal(a)
	if err != nil {
		return err
	}
	tx.Answers.Add(key, user.Answer{Digest: digest, Answer: answer}, now)
	return nil
}
