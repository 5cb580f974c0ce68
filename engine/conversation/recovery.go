package conversation

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Reasons are those for which a device cannot go on in a conversation.
var Reasons = []string{
	"lost_state",      // its keys are gone
	"undecryptable",   // it has the keys of the epoch, and messages do not open
	"bad_commit",      // it cannot apply a commit that was accepted
	"missing_commits", // the log does not go back to its epoch any more
	"rejoin_failed",   // an external commit did not help: the group may be lost for all
}

// Report is the word of a device that it cannot go on in a conversation.
type Report struct {
	Reason string
	Epoch  int64 // that the device is in
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

// Report counts the report of a device, and tells the host of the conversation when that is a user
// of this server; at is nil else. It changes nothing in the conversation: a device that lies, or is
// the only one that is lost, resets nobody.
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

// tellHost adds the event of a report, if it is a member's.
func (r *Registry) tellHost(ctx context.Context, at Place, caller vocab.ID, p Report) error {
	return r.Store.Write(ctx, at.Host, func(ctx context.Context, tx *db.Tx) error {
		c, err := readAs(ctx, tx, at.ID, caller)
		if err != nil {
			return err
		}
		d := vocab.Doc{"reason": p.Reason, "deviceEpoch": p.Epoch, "epoch": c.Epoch, "generation": c.Generation}
		return tx.AddEvent(ctx, newEvent(eventReport, c, r.Actors.ID(at.Host), caller, d, r.Now()))
	})
}
