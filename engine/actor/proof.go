package actor

import (
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Prove returns an activity of u's as it is stored and sent: with a proof by u's Ed25519 key (FEP-8b32). The fault is
// Unavailable while the keys cannot be read.
func (l *Local) Prove(u vocab.Username, d vocab.Doc, now time.Time) (json.RawMessage, error) {
	keys, err := l.keys.Keys(u)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "the user's keys cannot be read", err).WithCode("keys_unavailable").WithHint(fault.Hint(err))
	}
	if d, err = proof.Sign(d, vocab.ID(keys.Ed25519.ID), keys.Ed25519.Private, now); err != nil {
		return nil, err
	}
	return d.JSON(), nil
}
