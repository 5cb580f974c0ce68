package admin

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// GroupState is the progress of a consumer group on a user's stream. Each number is the part after
// the dash of an event's id. These numbers have gaps, so Lag may be too high.
type GroupState struct {
	User         vocab.Username `json:"user"`
	Group        string         `json:"group"`
	Consumers    int64          `json:"consumers"`
	Acknowledged uint64         `json:"acknowledged"` // every event up to this number is acknowledged
	Delivered    uint64         `json:"delivered"`    // the last number that was delivered to a consumer
	Pending      int64          `json:"pending"`      // events that were delivered but not acknowledged
	Last         uint64         `json:"last"`         // the last number on the stream
	Lag          uint64         `json:"lag"`          // Last minus Acknowledged, at most the length of the stream
}

// Group returns the progress of a group. The fault is NotFound when the stream has no such
// group.
func (s Streams) Group(ctx context.Context, u vocab.Username, group string) (GroupState, error) {
	if _, err := s.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return GroupState{}, err
	}
	if err := s.in.OpenRedis(ctx, false); err != nil {
		return GroupState{}, err
	}
	streams, users := s.in.Keyspace.Events, []vocab.Username{u}
	last, err := streams.Of(u).LastID(ctx, event.Stream)
	if err != nil {
		return GroupState{}, err
	}
	length, err := streams.Of(u).Length(ctx, event.Stream)
	if err != nil {
		return GroupState{}, err
	}
	found, err := streams.Groups(ctx, users, event.Stream)
	if err != nil {
		return GroupState{}, err
	}
	for _, g := range found[0] {
		if g.Name != group {
			continue
		}
		acknowledged := g.Delivered.Seq
		if g.Pending.Seq > 0 {
			acknowledged = g.Pending.Seq - 1
		}
		lag := min(last.Seq-min(acknowledged, last.Seq), uint64(length))
		return GroupState{u, group, g.Consumers, acknowledged, g.Delivered.Seq, g.Unacknowledged, last.Seq, lag}, nil
	}
	return GroupState{}, fault.New(fault.NotFound, fmt.Sprintf("the stream of %s has no group %.60q", u, group)).
		WithHint("there are llm and ws; a serving engine makes one that was lost within ten seconds")
}
