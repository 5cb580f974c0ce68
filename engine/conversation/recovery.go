package conversation

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Reasons lists the reasons that a device may report when it cannot go on in a conversation.
var Reasons = []string{
	"lost_state",      // its keys are gone
	"undecryptable",   // it has the keys of the epoch but cannot decrypt messages
	"bad_commit",      // it cannot apply a commit that was accepted
	"missing_commits", // the log does not go back to its epoch any more
	"rejoin_failed",   // an external commit failed: the group may be unusable for all
}

// reasonForked is the reason of a report that the server itself makes. It means that a member
// that knows only the SWICG draft has committed in an epoch that is over. That member has applied
// its own commit before the host could refuse it.
const reasonForked = "forked"

// Report is the statement of a device that it cannot go on in a conversation.
type Report struct {
	Reason string
	Epoch  int64 // the epoch of the device; 0 if it knows none
}

func (p Report) check() error {
	if !slices.Contains(Reasons, p.Reason) {
		return unprocessable("invalid_parameter", "reason is lost_state, undecryptable, bad_commit, missing_commits or rejoin_failed").At("/reason")
	}
	if p.Epoch < 0 {
		return unprocessable("invalid_parameter", "epoch is that of the device, 0 if it knows none").At("/epoch")
	}
	return nil
}

// Report counts the report of a device, and tells the host of the conversation. If the host is
// not a user of this server, the parameter at is nil, and the report is only counted. A report
// changes nothing in the conversation, because it may be false, or the device may be the only one
// that is lost.
func (r *Registry) Report(ctx context.Context, at *Place, caller vocab.ID, p Report) error {
	if err := p.check(); err != nil {
		return err
	}
	if at != nil {
		if err := r.tellHost(ctx, *at, caller, p); err != nil {
			return err
		}
	}
	r.metrics.reports.WithLabelValues(p.Reason).Inc()
	return nil
}

// tellHost adds an event that tells the host of a report. It refuses a caller that is not a
// member.
func (r *Registry) tellHost(ctx context.Context, at Place, caller vocab.ID, p Report) error {
	return r.Store.Write(ctx, at.Host, func(ctx context.Context, tx *user.Tx) error {
		c, err := readAs(ctx, tx, at.ID, caller)
		if err != nil {
			return err
		}
		d := vocab.Doc{"reason": p.Reason, "deviceEpoch": p.Epoch, "epoch": c.Epoch, "generation": c.Generation}
		return tx.Events.Add(ctx, newEvent(eventReport, c, r.Actors.ID(at.Host), caller, d, r.Now()))
	})
}
