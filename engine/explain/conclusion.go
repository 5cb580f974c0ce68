package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// userFacts is everything that this server knows about one activity or object for one user.
type userFacts struct {
	id vocab.ID
	traced
	u         vocab.Username
	suspended bool       // the user is suspended
	err       error      // why the user's database could not be read
	owner     bool       // the activity or object belongs to the user
	local     bool       // the id belongs to this server
	blocked   bool       // the policy refuses the server of the id
	waits     *time.Time // since when the activity has been in the journal for the user; nil if it is not there
	ignored   *Ignored   // nil unless the activity was accepted and stored for no user
}

func (s userFacts) describe() UserTrace {
	out := UserTrace{User: s.u, Follows: []vocab.ID{}, Blocks: []vocab.ID{}, Activities: []TracedActivity{}, Jobs: make([]TracedJob, len(s.Jobs)),
		SeenAt: s.SeenAt, DeletedAt: s.DeletedAt, WaitsSince: s.waits}
	out.Follows = append(out.Follows, s.Follows...)
	out.Blocks = append(out.Blocks, s.Blocks...)
	out.Activities = append(out.Activities, s.Activities...)
	if s.Object != nil {
		out.StoredAt = &s.Object.StoredAt
	}
	if s.Poison != nil {
		out.PoisonAt, out.Reason = &s.Poison.At, s.Poison.Reason
	}
	for i, j := range s.Jobs {
		out.Jobs[i] = TracedJob{ID: j.ID.String(), Activity: j.Activity, Type: j.Type, CreatedAt: j.CreatedAt, Status: j.Status, Counts: j.JobCounts, Deliveries: make([]TracedDelivery, len(j.Deliveries))}
		for k, d := range j.Deliveries {
			out.Jobs[i].Deliveries[k] = TracedDelivery{Inbox: d.Inbox, Status: d.Status, Attempts: d.Attempts, NextAt: d.NextAt, LastStatus: d.LastStatus, Error: d.Error}
		}
	}
	for _, c := range conclusions {
		if c.when(s) {
			out.Outcome, out.Says = c.outcome, c.says(s)
			break
		}
	}
	return out
}

// conclusions lists the meanings that the facts can have. The conclusion is the first entry whose
// function "when" returns true.
var conclusions = []struct {
	outcome string
	when    func(s userFacts) bool
	says    func(s userFacts) string
}{
	{TraceWaiting, func(s userFacts) bool { return s.err != nil && s.waits != nil }, func(s userFacts) string {
		return fmt.Sprintf("It came on %s and waits until the user's database can be used: %v; %s.", stamp(*s.waits), s.err, s.remedy())
	}},
	{TraceUnreadable, func(s userFacts) bool { return s.err != nil }, func(s userFacts) string {
		return fmt.Sprintf("The database cannot be read: %v; %s. What came meanwhile waits, or is sent again.", s.err, s.remedy())
	}},
	{TraceDeleted, func(s userFacts) bool { return s.DeletedAt != nil }, func(s userFacts) string {
		return fmt.Sprintf("Its author deleted it; known since %s. It does not come back.", stamp(*s.DeletedAt))
	}},
	{TraceSent, func(s userFacts) bool { return s.owner && (len(s.Activities) > 0 || s.Object != nil) }, userFacts.describeDeliveries},
	{TracePoison, func(s userFacts) bool { return s.Poison != nil }, func(s userFacts) string {
		return fmt.Sprintf("It came on %s and was set aside, because it could not be applied: %s. 'lightweb inbox retry %s --activity %s' tries it again, 'lightweb inbox drop' forgets it.",
			stamp(s.Poison.At), s.Poison.Reason, s.u, s.id)
	}},
	{TraceFeed, func(s userFacts) bool { a := s.first(); return a != nil && a.InFeed }, func(s userFacts) string {
		a := s.first()
		return fmt.Sprintf("It came on %s as %s and is in the feed.", stamp(a.StoredAt), a.Type)
	}},
	{TraceStored, func(s userFacts) bool { return s.first() != nil }, func(s userFacts) string {
		a := s.first()
		if handler.IsInFeed(a.Type) {
			return fmt.Sprintf("It came on %s as %s and is not in the feed: the user neither followed the sender nor was named, and sees it among the notifications; or blocked the sender since.", stamp(a.StoredAt), a.Type)
		}
		return fmt.Sprintf("It came on %s as %s, which is stored and in no feed.", stamp(a.StoredAt), a.Type)
	}},
	{TraceObject, func(s userFacts) bool { return s.Object != nil }, func(s userFacts) string {
		return fmt.Sprintf("The post was fetched on %s because of something else, such as an answer to it; it was not sent to the user.", stamp(s.Object.StoredAt))
	}},
	{TraceWaiting, func(s userFacts) bool { return s.waits != nil }, func(s userFacts) string {
		return fmt.Sprintf("It came on %s and waits to be applied, which a running engine does by itself: see 'lightweb inbox list %s'.", stamp(*s.waits), s.u)
	}},
	{TraceNotKept, func(s userFacts) bool { return s.SeenAt != nil }, func(s userFacts) string {
		return fmt.Sprintf("Its id was taken on %s, but it is not kept: it was undone, its actor was deleted, or it was pruned because it was old. It does not come back.", stamp(*s.SeenAt))
	}},
	{TraceIgnored, func(s userFacts) bool { return s.ignored != nil }, func(s userFacts) string { return s.ignored.Says }},
	{TraceBlocked, func(s userFacts) bool { return s.blocked }, func(userFacts) string {
		return "It never got in: the policy of this server refuses that domain. 'lightweb domain list' shows it, 'lightweb domain unblock' or 'allow' lets it in; then ask for it to be sent again."
	}},
	{TraceNever, func(s userFacts) bool { return s.owner }, func(userFacts) string { return "The user has no such activity or object." }},
	{TraceNever, func(s userFacts) bool { return s.suspended }, func(s userFacts) string {
		return fmt.Sprintf("It is not here. The user is suspended, so that what comes is refused: 'lightweb user unsuspend %s' ends that; then ask for it to be sent again.", s.u)
	}},
	{TraceNever, func(s userFacts) bool { return s.local }, func(userFacts) string {
		return "It did not come to the user: the one whose id it is under has no such thing, it was not meant for this user, or this user blocks that one."
	}},
	{TraceNever, func(s userFacts) bool { return len(s.Blocks) > 0 }, func(s userFacts) string {
		return fmt.Sprintf("It is not here, and leaves no trace if it is of %s, blocked by the user: nothing is kept of who is blocked. Sent again after an Unblock, it is taken.", someOf(s.Blocks))
	}},
	{TraceNever, func(s userFacts) bool { return len(s.Follows) == 0 }, func(userFacts) string {
		return "It never came, or did not concern the user, who follows nobody on that server: only what names or answers the user is taken from there."
	}},
	{TraceNever, func(userFacts) bool { return true }, func(s userFacts) string {
		return fmt.Sprintf("It never reached this server, although the user follows %s there: ask for it to be sent again, and see with 'lightweb actor fetch %[1]s --refresh' whether that server answers.", s.Follows[0])
	}},
}

// first returns the activity with the id. If that is not stored, first returns the newest
// received activity that brought the object with the id, or nil if there is none.
func (s userFacts) first() *user.TracedActivity {
	for i, a := range s.Activities {
		if a.URI == s.id || a.Direction == user.Inbound && handler.IsInFeed(a.Type) {
			return &s.Activities[i]
		}
	}
	return nil
}

// describeDeliveries says how many inboxes have accepted the user's activity, and to how many it
// is still being sent.
func (s userFacts) describeDeliveries() string {
	var c user.JobCounts
	for _, j := range s.Jobs {
		c.Total += j.Total
		c.Pending += j.Pending
		c.Delivered += j.Delivered
		c.Failed += j.Failed
		c.Skipped += j.Skipped
	}
	switch {
	case c.Total == 0:
		return "It is the user's own, and owed to nobody: nobody outside was addressed, or the deliveries are done with and forgotten."
	case c.Failed > 0:
		return fmt.Sprintf("It is the user's own: %d of %d inboxes took it, %d are tried again, %d were given up; the errors say why.", c.Delivered, c.Total, c.Pending, c.Failed+c.Skipped)
	case c.Pending > 0:
		return fmt.Sprintf("It is the user's own: %d of %d inboxes took it, the others are tried again by a running engine.", c.Delivered, c.Total)
	}
	return fmt.Sprintf("It is the user's own: %d of %d inboxes took it, and %d are not sent to any more.", c.Delivered, c.Total, c.Skipped)
}

// remedy says how to repair a database that cannot be used.
func (s userFacts) remedy() string {
	if hint := fault.Hint(s.err); hint != "" {
		return hint
	}
	return "see 'lightweb db status'"
}

// someOf names up to three actors, and adds "others" if there are more.
func someOf(ids []vocab.ID) string {
	var names []string
	for _, id := range ids[:min(len(ids), 3)] {
		names = append(names, string(id))
	}
	if len(ids) > 3 {
		names = append(names, "others")
	}
	return strings.Join(names, " or ")
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
