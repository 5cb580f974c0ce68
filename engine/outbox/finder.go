package outbox

import (
	"log/slog"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/actor"
)

// finder finds the actors and objects that an action names, and the current inboxes of the
// actors.
type finder struct {
	store         Store
	instance      *instance.Database
	local         *actor.Local
	actors        Actors
	stale         Stale
	objects       Objects
	gate          Gate
	profiles      Profiles
	log           *slog.Logger
	deliverBlocks bool // a Block is sent to the blocked actor
}
