package handler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// The user has asked for a relationship, and the actor has not answered yet. The user's programs
// show the actor, and learn of its new name.
func TestUpdateOfAnActorThatTheUserHasAskedIsTold(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for name, ask := range map[string]func(*peertest.Scene){
		"to follow": func(s *peertest.Scene) {
			s.Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
		},
		"to be friends": offered,
	} {
		s := stage.Scene(t)
		ask(s)
		s.Actor("p:/carol").Doc["name"] = "Caroline"
		s.Actor("p:/carol").Show()
		s.Later(2 * time.Minute) // the engine fetches an actor at most once a minute
		made := s.Changes(func() {
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":"p:/carol"}`)
		})
		told := slices.ContainsFunc(made, func(row string) bool { return strings.HasPrefix(row, "+ event update.received p:/updates/1") })
		if !told || !slices.Contains(made, "+ actor p:/carol Caroline") {
			t.Errorf("asked %s: the changes are %q, want the new name and an event", name, made)
		}
	}
}
