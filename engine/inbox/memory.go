package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// takeRoom reserves memory for a parsed request.
func (i *Inbox) takeRoom(x *receiving) error {
	n := min(perRequest+perByte*int64(len(x.Body)), policy.Memory.Pool)
	if !i.room.Take(x.payer, n) {
		return errFull
	}
	x.room = n
	return nil
}

// giveRoom gives back what a request has reserved.
func (i *Inbox) giveRoom(x *receiving) {
	i.room.Give(x.payer, x.room)
	x.room = 0
}

// aside runs work that may have to wait for a key before the sender is proven. While it waits the request holds its body
// alone: the parsed activity, which takes many times the memory, is let go of and parsed again afterwards. Otherwise senders
// whose servers stall would take the memory of everybody else.
func (i *Inbox) aside(ctx context.Context, x *receiving, work func(context.Context) error) error {
	err := work(actor.BeforeWaiting(ctx, func() {
		x.Activity = nil
		i.giveRoom(x)
	}))
	if err != nil || x.Activity != nil {
		return err
	}
	if err := i.takeRoom(x); err != nil {
		return err
	}
	x.Activity, err = vocab.ParseActivity(x.Body)
	return err
}
