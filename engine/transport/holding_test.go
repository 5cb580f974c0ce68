package transport

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/holding"
)

func TestWhoHoldsAUsersConnectionDoesNotReachTheNetwork(t *testing.T) {
	t.Parallel()
	// the gate and the hosts are nil, so a call of either would panic
	c := New(Config{}, nil, nil)
	ctx := holding.MarkHolder(t.Context())
	for name, ask := range map[string]func() error{
		"Get":  func() error { _, err := c.Get(ctx, Request{URL: "https://peer.example/"}); return err },
		"Post": func() error { _, err := c.Post(ctx, Post{Inbox: "https://peer.example/inbox"}); return err },
	} {
		err := func() (err error) {
			defer func() {
				if r := recover(); r != nil { // the call panics in builds with the race detector
					err = r.(error)
				}
			}()
			return ask()
		}()
		if err == nil || fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), "asked for the network") {
			t.Errorf("%s = %v, want an Internal error that says what is wrong", name, err)
		}
	}
}
