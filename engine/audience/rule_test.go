package audience_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/audience"
)

func TestRulesAreMet(t *testing.T) {
	t.Parallel()
	list := func(s string) []string { return strings.Fields(s) }
	for _, c := range []struct {
		any, all, ties string
		met            bool
	}{
		{"following friendOf", "", "friendOf", true},
		{"following friendOf", "", "follower closeFriendOf", false},
		{"following friendOf", "", "", false},
		{"", "following follower", "follower friendOf following", true},
		{"", "following follower", "following", false},
		{"", "following follower", "", false},
		{"", "", "following follower friendOf closeFriendOf", false},
		{"friendOf", "following", "following", false},
		{"friendOf", "following", "following friendOf", true},
	} {
		if got := (audience.Rule{Any: list(c.any), All: list(c.all)}).IsMet(list(c.ties)); got != c.met {
			t.Errorf("any of %q, all of %q by %q = %t", c.any, c.all, c.ties, got)
		}
	}
}
