package inbox

import (
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The renewal of two actors panics, because the inbox has no store. The process goes on, and
// neither actor waits any more.
func TestAPanicEndsOnlyTheRenewalOfOneActor(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	r := newRenewer(&Inbox{Deps: Deps{Now: time.Now, Log: log}, beside: intake.NewBackground(log)})
	r.running = true // so add starts no round of its own
	r.add("https://peer.example/users/carol")
	r.owed["https://peer.example/users/dave"] = []vocab.Username{{}}
	r.renewAll()
	if len(r.waiting)+len(r.lines)+len(r.owed) > 0 || r.room.Used() != 0 {
		t.Errorf("%v wait, %v are owed, %d places are taken; want none", r.waiting, r.owed, r.room.Used())
	}
}
