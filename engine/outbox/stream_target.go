package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

// placing is the Add that puts a new post into a stream. The Add and the post are stored in one
// transaction.
type placing struct {
	add *addToStream
	x   *exchange // of the Add
}

// checkTarget refuses a streamTarget that cannot name a stream.
func (p *post) checkTarget() error {
	if p.StreamTarget == "" || p.StreamTarget == featured {
		return nil
	}
	_, err := parseIdentifier("streamTarget", p.StreamTarget)
	return err
}

// findTarget finds the stream that streamTarget names, and prepares the Add.
func (p *post) findTarget(ctx context.Context, f *finder, x *exchange) error {
	switch {
	case p.StreamTarget == "":
		return nil
	case x.Assistant:
		return fault.New(fault.Forbidden, "the token puts nothing into streams").WithCode("insufficient_scope").At("/params/streamTarget")
	case !x.audience().IsPublic():
		return refuseHidden("streamTarget")
	}
	add := &addToStream{streamName: streamName{StreamID: p.StreamTarget}}
	x.placing = &placing{add, &exchange{Dispatch: x.Dispatch, now: x.now, intent: add, cause: x.cause, actor: x.actor}}
	return atTarget(add.findStream(ctx, f, x.placing.x))
}

// atTarget makes a refusal of the Add point to the parameter streamTarget.
func atTarget(err error) error {
	if e := fault.Of(err); e != nil && e.Pointer != "" {
		return e.At("/params/streamTarget")
	}
	return err
}

// constructPlacing builds the Add that puts the post of x into a stream, if the action names
// one.
func (o *Outbox) constructPlacing(ctx context.Context, x *exchange) error {
	if x.placing == nil {
		return nil
	}
	x.placing.add.object = x.activity.Object.ID
	return o.constructActivity(ctx, x.placing.x)
}

// storePlacing stores the Add that puts the post of x into a stream, if the action names one.
func (o *Outbox) storePlacing(ctx context.Context, tx *user.Tx, x *exchange) error {
	if x.placing == nil {
		return nil
	}
	y := x.placing.x
	// A new object has no earlier Add. But findEarlier also refuses if the stream is full or
	// gone.
	if _, err := x.placing.add.findEarlier(ctx, tx, y); err != nil {
		return atTarget(err)
	}
	if err := o.fanOut.chooseInboxes(ctx, tx, y); err != nil {
		return err
	}
	return o.storeActivity(ctx, tx, y, o.fanOut.newJob(y))
}
