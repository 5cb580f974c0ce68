package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
)

// placing is the Add that puts a post into a stream: they are stored together, or neither is.
type placing struct {
	add *addToStream
	x   *exchange // of the Add
}

// checkTarget refuses what names no stream.
func (p *post) checkTarget() error {
	if p.StreamTarget == "" || p.StreamTarget == featured {
		return nil
	}
	_, err := parseIdentifier("streamTarget", p.StreamTarget)
	return err
}

// findTarget finds the stream that the post is put into.
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

// atTarget lets a refusal of the Add point to the parameter of the post.
func atTarget(err error) error {
	if e := fault.Of(err); e != nil && e.Pointer != "" {
		return e.At("/params/streamTarget")
	}
	return err
}

// constructPlacing writes the Add of what x writes, if it is put into a stream.
func (o *Outbox) constructPlacing(ctx context.Context, x *exchange) error {
	if x.placing == nil {
		return nil
	}
	x.placing.add.object = x.activity.Object.ID
	return o.constructActivity(ctx, x.placing.x)
}

// storePlacing stores the Add of what x writes, if it is put into a stream.
func (o *Outbox) storePlacing(ctx context.Context, tx *db.Tx, x *exchange) error {
	if x.placing == nil {
		return nil
	}
	y := x.placing.x
	if _, err := x.placing.add.findEarlier(ctx, tx, y); err != nil { // a new object is in no stream: it may be full, or gone
		return atTarget(err)
	}
	if err := o.chooseInboxes(ctx, tx, y); err != nil {
		return err
	}
	return o.storeActivity(ctx, tx, y, o.newJob(y))
}
