package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// answers makes the answers to dispatches. It stores an answer if the dispatch has an
// Idempotency-Key.
type answers struct {
	store    Store
	handlers *handler.Registry
	log      *slog.Logger
}

// answer is the stored form of a Result.
type answer struct {
	Activity vocab.ID `json:"activityId"`
	Object   vocab.ID `json:"objectId,omitempty"`
	Job      *Job     `json:"job,omitempty"`

	Accepted     *conversation.Accepted `json:"accepted,omitempty"`
	Conversation uuid.UUID              `json:"conversationId,omitzero"`

	Unresolved []string `json:"unresolved,omitempty"`
}

// replayAnswer answers x with the stored answer if an action with the same Idempotency-Key was
// answered in the last 24 hours. It reports whether there was such an action. It refuses x if the
// key was used for another action.
func (s *answers) replayAnswer(ctx context.Context, x *exchange) (bool, error) {
	var stored *user.Answer
	err := s.store.Write(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		stored, err = tx.Answers.Find(ctx, x.IdempotencyKey, x.now)
		return err
	})
	if err != nil || stored == nil {
		return false, err
	}
	if !bytes.Equal(stored.Digest, x.digest) {
		return false, fault.New(fault.Unprocessable, "the Idempotency-Key was used for another action").WithCode("idempotency_key_reuse")
	}
	x.answer = answer{}
	if err := json.Unmarshal(stored.Answer, &x.answer); err != nil {
		return false, fmt.Errorf("read stored answer: %w", err)
	}
	x.replayed = true
	return true, s.respond(ctx, x)
}

// answerAgain returns the answer to an action that has nothing left to do, because an earlier
// activity did the same. The answer describes the earlier activity and the present state of its
// deliveries.
func (s *answers) answerAgain(ctx context.Context, tx *user.Tx, earlier vocab.ID, now time.Time) (answer, error) {
	a := answer{Activity: earlier}
	stored, err := tx.Activities.Find(ctx, earlier)
	if err != nil {
		return a, err
	}
	if stored != nil {
		did, err := stored.Parse()
		if err != nil {
			return a, err
		}
		a.Object = s.handlers.ObjectOf(did)
	}
	sent, err := tx.Jobs.FindSent(ctx, earlier, now)
	if sent != nil {
		a.Job = &Job{JobID: sent.ID.String(), Recipients: sent.Recipients, Counts: sent.JobCounts}
	}
	return a, err
}

// keepAnswer stores the answer under the Idempotency-Key, if the dispatch has one. storeDispatch
// calls keepAnswer before it stores the activity. So the next statement of a second dispatch with
// the same key waits until the transaction of the first one ends.
func (s *answers) keepAnswer(tx *user.Tx, x *exchange) error {
	if x.IdempotencyKey == "" {
		return nil
	}
	stored, err := vocab.Marshal(x.answer)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	tx.Answers.Add(x.IdempotencyKey, user.Answer{Digest: x.digest, Answer: stored}, x.now)
	return nil
}
