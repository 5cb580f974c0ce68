package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Vote is one actor's choice of one option of a Question.
type Vote struct {
	Question vocab.ID
	Actor    vocab.ID
	Option   int // its place among the options, from 0
}

// AddVote keeps a vote, unless the actor has chosen that option before, or, with once, any. It
// returns how many votes and voters more there are: none, or one.
func (t *Tx) AddVote(ctx context.Context, v Vote, once bool, now time.Time) (votes, voters int64, err error) {
	before, err := t.count(ctx, `SELECT count(*) FROM votes WHERE question_uri = $1 AND actor_uri = $2`, v.Question, v.Actor)
	if err != nil || once && before > 0 {
		return 0, 0, err
	}
	votes, err = t.execBeside(ctx, "store vote", `INSERT INTO votes (question_uri, actor_uri, option, voted_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`, v.Question, v.Actor, v.Option, now)
	if before == 0 {
		voters = votes
	}
	return votes, voters, err
}

// RemoveVotes removes all votes of an actor, and returns them by Question.
func (t *Tx) RemoveVotes(ctx context.Context, actor vocab.ID) ([]Vote, error) {
	return collect[Vote](ctx, t, "remove votes", `WITH gone AS (DELETE FROM votes WHERE actor_uri = $1 RETURNING question_uri, actor_uri, option)
		SELECT * FROM gone ORDER BY question_uri, option`, actor)
}

// RecountObject gives a living object contents in which its author changed nothing: fresh counts.
func (t *Tx) RecountObject(ctx context.Context, uri vocab.ID, raw json.RawMessage) error {
	t.ahead.forgetObject(uri)
	t.touched.touch(feeds, uri)
	_, err := t.execBeside(ctx, "recount object", `UPDATE objects SET raw = $2 WHERE uri = $1 AND deleted_at IS NULL`, uri, raw)
	return err
}
