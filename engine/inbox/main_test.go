package inbox_test

import (
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// newScene starts a scene on an engine of its own.
func newScene(t *testing.T, change ...func(*inbox.Deps)) *peertest.Scene {
	t.Helper()
	t.Parallel()
	return peertest.NewStage(t, peertest.NewInbound(t, change...)).Scene(t)
}

// accepted stands for an answer without a fault.
const accepted = fault.Kind(255)

// expect sends an activity and checks the answer and the changes in alice's database.
func expect(t *testing.T, s *peertest.Scene, want []string, kind fault.Kind, send func() error) {
	t.Helper()
	var err error
	made := s.Changes(func() { err = send() })
	if !slices.Equal(made, want) {
		t.Errorf("changes %q, want %q", made, want)
	}
	if kind == accepted && err != nil || kind != accepted && fault.KindOf(err) != kind {
		t.Errorf("err = %v, want kind %v", err, kind)
	}
}

const follow = `{"id":"p:/follows/1","type":"Follow","actor":"p:/carol","object":"us:/alice"}`
