package inbox

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of a report.
const (
	maxReported = 100  // objects that are stored
	maxReport   = 5000 // characters of the reporter's text
)

// takeReport stores a Flag for the operator if it is about local users or for the instance. Such
// a Flag enters no user's database. Any other Flag is dropped. The fault is RateLimited when the
// sender's domain reports too often, or when the sender or its domain has too many open reports.
// It is also RateLimited when too many reports are open in all, and no other domain has more of
// them than the sender's domain.
func (i *Inbox) takeReport(ctx context.Context, x *receiving) error {
	a := x.Activity
	objects, err := a.Doc.IDs("object")
	if err != nil {
		return err
	}
	r := instance.Report{Activity: a.ID, Actor: x.Actor.ID, Objects: objects[:min(len(objects), maxReported)], Content: reportedWords(a.Doc), ReceivedAt: i.Now(), Domain: x.paidBy()}
	forInstance := audience.Names(a.Addressing, i.Local.InstanceID())
	for _, id := range r.Objects {
		if u, _, ok := i.Local.Holder(id); ok {
			r.Users = append(r.Users, u.String())
		}
		forInstance = forInstance || id.Same(i.Local.InstanceID())
	}
	if len(r.Users) == 0 && !forInstance {
		x.unkept = IgnoredReport
		return nil
	}
	if err := limitBy(i.bounds.reportsOfDomain, x.paidBy()); err != nil {
		return err
	}
	added, displaced, err := i.Store.Instance.Reports.Add(ctx, r, forInstance, instance.ReportBounds{All: policy.OpenReports, Domain: policy.OpenReportsOfDomain, Actor: policy.OpenReportsOfActor})
	if err != nil {
		return fmt.Errorf("keep report: %w", err)
	}
	if displaced != nil {
		i.ignored.add(displaced.Activity, vocab.Flag, displaced.Actor, IgnoredDisplaced)
	}
	if added {
		i.Log.InfoContext(ctx, "report received", "activity", a.ID, "actor", r.Actor, "host", r.Actor.Host())
	}
	return nil
}

// reportedWords returns the reporter's text. Servers write it as plain text, and Lemmy writes it
// as a summary.
func reportedWords(d vocab.Doc) string {
	text := []rune(cmp.Or(d.Words("content"), d.Words("summary")))
	return string(text[:min(len(text), maxReport)])
}
