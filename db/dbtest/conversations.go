package dbtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// These are the actors in the conversations that Hosted makes.
const (
	AliceActor vocab.ID = "https://us.example/users/alice"
	bobActor   vocab.ID = "https://peer.example/users/bob"
)

// began is the time at which every conversation that Hosted makes begins.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Hosted stores a conversation at an MLS epoch in u's database. AliceActor hosts it, and bob is
// a member.
func Hosted(t *testing.T, c *db.Cluster, u vocab.Username, epoch int64) user.HostedConversation {
	t.Helper()
	id := uuid.New()
	h := user.HostedConversation{ID: id, URI: AliceActor + "/conversations/" + vocab.ID(id.String()), GroupID: "urn:uuid:" + uuid.NewString(), Epoch: epoch, Status: user.StatusActive, GroupInfo: []byte("info"), FormerGroups: []string{}}
	Write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		err := tx.Conversations.Add(ctx, user.Conversation{ID: id, URI: h.URI, Mode: user.ModeEncrypted, Host: AliceActor, GroupID: h.GroupID, CreatedAt: began})
		if err == nil {
			err = tx.Hosted.Add(ctx, h, began)
		}
		if err == nil {
			err = tx.Conversations.Join(ctx, id, []vocab.ID{AliceActor}, user.RoleAdmin, 0)
		}
		if err == nil {
			err = tx.Conversations.Join(ctx, id, []vocab.ID{bobActor}, user.RoleMember, 0)
		}
		return err
	})
	return h
}

// StateOf returns the stored state of a hosted conversation.
func StateOf(t *testing.T, c *db.Cluster, u vocab.Username, id uuid.UUID) (h *user.HostedConversation) {
	t.Helper()
	Read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		h, err = tx.Hosted.Find(ctx, id)
		return err
	})
	return h
}
