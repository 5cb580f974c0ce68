package user

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Vote is an actor's choice of one option of a Question.
type Vote struct {
	Question vocab.ID
	Actor    vocab.ID
	Option   int // its place among the options, from 0
}

// Add stores a vote, unless the actor has chosen this option before. If the parameter "once" is
// true, the actor has only one vote, so Add stores nothing after a vote for any option. The
// results are the numbers of added votes and voters, each 0 or 1.
func (t Votes) Add(ctx context.Context, v Vote, once bool, now time.Time) (votes, voters int64, err error) {
	before, err := t.count(ctx, `SELECT count(*) FROM votes WHERE question_uri = $1 AND actor_uri = $2`, v.Question, v.Actor)
	if err != nil || once && before > 0 {
		return 0, 0, err
	}
	votes, err = t.execBeside(ctx, "store vote", `INSERT INTO votes (question_uri, actor_uri, option, voted_at) VALUES (@question, @actor, @option, @now)
		ON CONFLICT DO NOTHING`, named{"question": v.Question, "actor": v.Actor, "option": v.Option, "now": now})
	if before == 0 {
		voters = votes
	}
	return votes, voters, err
}

// Remove removes all votes of an actor, and returns them sorted by Question.
func (t Votes) Remove(ctx context.Context, actor vocab.ID) ([]Vote, error) {
	return collect[Vote](ctx, t.tx, "remove votes", `WITH gone AS (DELETE FROM votes WHERE actor_uri = $1 RETURNING question_uri, actor_uri, option)
		SELECT question_uri AS question, actor_uri AS actor, option FROM gone ORDER BY question_uri, option`, actor)
}

// Recount replaces the document of an object that is not deleted by one with new counts. This
// does not count as a change by the author.
func (t Objects) Recount(ctx context.Context, uri vocab.ID, raw json.RawMessage) error {
	t.ahead.forgetObject(uri)
	t.touched.touch(feeds, uri)
	_, err := t.execBeside(ctx, "recount object", `UPDATE objects SET raw = $2 WHERE uri = $1 AND deleted_at IS NULL`, uri, raw)
	return err
}
