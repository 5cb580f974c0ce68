package handler_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// The host of a conversation, to which it has invited alice, is deleted. The event of the end has
// the trust that alice had in the host until then.
func TestTheEndOfAConversationIsToldWithTheTrustInItsDeletedHost(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for want, given := range map[string]func(*peertest.Scene){
		user.TrustContact:  func(s *peertest.Scene) { s.Follows("p:/carol") },
		user.TrustStranger: func(s *peertest.Scene) { s.Followed("p:/carol") },
	} {
		s := stage.Scene(t)
		given(s)
		host := s.ID("p:/carol")
		hosted := user.JoinedConversation{ID: uuid.New(), URI: host + "/conversations/1", Host: host, GroupID: "g", Status: user.StatusActive, FormerGroups: []string{}}
		if err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error { return tx.Joined.Add(ctx, hosted, time.Now()) }); err != nil {
			t.Fatal(err)
		}
		s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`)
		if got := s.Column(t, s.Alice, `SELECT payload ->> 'trust' FROM event_outbox WHERE type = 'conversation.closed'`); !slices.Equal(got, []string{want}) {
			t.Errorf("the end is told with the trust %q, want %s", got, want)
		}
	}
}
