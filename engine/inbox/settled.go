package inbox

import (
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Payer returns the party that caused the activity; see receiving.paidBy.
func (x *applying) Payer() string { return x.payer }

// ArrivedAt returns when the activity came to this server.
func (x *applying) ArrivedAt() time.Time { return x.Now }

// Size returns the size in bytes of the stored activity and of the documents that were fetched for
// it.
func (x *applying) Size() int64 { return int64(len(x.raw)) + x.documents }

// IsLarge reports whether the activity is larger than BodyLimit.
func (x *applying) IsLarge() bool { return x.large }

// Outcome returns the outcome of the activity.
func (x *applying) Outcome() intake.Outcome {
	switch x.outcome {
	case outcomeContested:
		return intake.Contested
	case outcomeIgnored, outcomeStranger:
		return intake.Ignored
	}
	return intake.Kept
}

// Settled counts activities whose transaction is committed or that were set aside, and charges the
// parties that caused them for the stored bytes.
func (p *applier) Settled(items []intake.Item) {
	for _, item := range items {
		p.countSettled(item.(*applying))
	}
}

func (p *applier) countSettled(x *applying) {
	p.metrics.activities.WithLabelValues(x.outcome).Inc()
	if x.effects.Undecryptable != "" {
		p.metrics.undecryptable.WithLabelValues(x.effects.Undecryptable).Inc()
	}
	if x.effects.Mislabeled {
		p.metrics.mislabeled.Inc()
	}
	p.chargeStored(x)
}

// Ignored records an activity that none of its recipients stores.
func (p *applier) Ignored(item intake.Item) {
	x := item.(*applying)
	p.ignored.add(x.Activity.ID, x.Activity.Type, x.Actor.ID, x.reason)
}

// loseContested ignores an activity whose object belongs to another actor.
func (p *applier) loseContested(x *applying) {
	x.outcome, x.reason = outcomeIgnored, IgnoredContested
	p.countSettled(x)
	p.Ignored(x)
}

// SetAside returns the row that stores an activity which cannot be applied, and logs an error
// for the operator.
func (p *applier) SetAside(u vocab.Username, item intake.Item, cause error) user.Poisoned {
	x := item.(*applying)
	p.Log.Error("activity set aside", "user", u, "activity", x.Activity.ID, "type", x.Activity.Type, "err", cause,
		"hint", "lightweb inbox list "+u.String())
	x.outcome = outcomePoison
	return user.Poisoned{URI: x.Activity.ID, Version: p.Handlers.VersionID(x.Activity), Actor: x.Actor.ID, Raw: writeOpenly(x.Activity), Forwarders: x.forwarders()}
}
