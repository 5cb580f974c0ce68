package inbox

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The reasons why an activity that was answered 202 is stored for nobody. There are no other
// reasons. IgnoredOverBudget has two cases. In the first, too much of the sender's domain was
// stored for users who do not follow the sender; users who follow the sender may have stored the
// activity. In the second, a local user forwarded the activity to another local user when a budget
// of its actor's domain had no room.
const (
	IgnoredNobody      = "nobody"       // it concerns no local user
	IgnoredUnrelated   = "unrelated"    // it has nothing to do with its recipients
	IgnoredFollowers   = "followers"    // it is for followers or a server, and its recipients are not among them
	IgnoredStranger    = "stranger"     // it is a private message of a stranger
	IgnoredBlocked     = "blocked"      // its recipients block an actor that sent it or whose objects it brings, or the policy refuses such an actor now
	IgnoredNoEffect    = "no_effect"    // its object is not stored here, or a newer version of the object is, or it changes nothing
	IgnoredRelay       = "relay"        // a relay passed it on, and it concerns no local user
	IgnoredUnproven    = "unproven"     // another actor passed it on without a proof, and its author's server does not show it
	IgnoredSenderGone  = "sender_gone"  // its sender was deleted while it waited
	IgnoredContested   = "contested"    // another actor of its server uses the id of its object here, and that server does not show the object as the sender's
	IgnoredReport      = "report_empty" // it is a report about no local user
	IgnoredDisplaced   = "displaced"    // it is a report that was removed to make room for one of a domain with fewer open reports
	IgnoredGroupBudget = "group_budget" // a Group actor announces more than this server fetches or stores for it
	IgnoredOverBudget  = "over_budget"  // a budget of its domain has no room; see above
)

const (
	mostIgnored   = 200_000 // rows in the database
	mostUnwritten = 10_000  // rows in memory; activities beyond them are only counted
	trimEvery     = 1_000   // rows written between two trims

	flushEvery = 5 * time.Second
	flushTime  = 10 * time.Second
)

// ignored records the activities that are stored for nobody. It writes them to the database
// every few seconds, so a crash may lose the last ones.
type ignored struct {
	inbox *Inbox
	log   *policy.Limiter

	flushing sync.Mutex // held while a flush writes

	mu        sync.Mutex
	unwritten []instance.Ignored
	unlogged  int // activities since the last log line
	written   int // rows since the last trim
}

func newIgnored(i *Inbox) *ignored {
	return &ignored{inbox: i, log: policy.IgnoredLines.Limiter(i.Now), written: trimEvery}
}

// add records that an activity is stored for nobody. The parameter "by" is the actor that sent it.
// Activities of this server's own users are left out, because their outboxes have them.
func (g *ignored) add(id vocab.ID, kind string, by vocab.ID, reason string) {
	if reason == "" || g.inbox.Local.IsLocal(id) {
		return
	}
	g.inbox.metrics.ignored.WithLabelValues(reason).Inc()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.unwritten) < mostUnwritten {
		g.unwritten = append(g.unwritten, instance.Ignored{Activity: id, Reason: reason, Host: policy.RegistrableDomain(by.Host()), At: g.inbox.Now()})
	}
	if ok, _ := g.log.Allow(policy.RegistrableDomain(by.Host())); !ok {
		g.unlogged++
		return
	}
	g.inbox.Log.Info("activity ignored", "activity", id, "type", kind, "host", by.Host(), "reason", reason, "unlogged", g.unlogged)
	g.unlogged = 0
}

// flushOften calls flush every flushEvery, until the background work is closed.
func (g *ignored) flushOften(work *intake.Background) {
	for work.Pause(flushEvery) {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		if err := g.flush(ctx); err != nil {
			g.inbox.Log.Warn("ignored activities not written", "err", err)
		}
		cancel()
	}
}

// flush writes the activities that were added since the last flush, and waits for a flush that is
// writing others. If the activities cannot be written, the next flush tries to write them again.
func (g *ignored) flush(ctx context.Context) error {
	g.flushing.Lock()
	defer g.flushing.Unlock()
	g.mu.Lock()
	all := g.unwritten
	g.unwritten = nil
	g.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	if err := g.inbox.Store.Instance.Ignored.Add(ctx, all); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.unwritten = append(all, g.unwritten...)
		g.unwritten = g.unwritten[:min(len(g.unwritten), mostUnwritten)]
		return err
	}
	return g.trim(ctx, len(all))
}

// trim deletes rows so that at most mostIgnored remain. It does so once for every trimEvery rows
// written.
func (g *ignored) trim(ctx context.Context, written int) error {
	g.mu.Lock()
	g.written += written
	due := g.written >= trimEvery
	if due {
		g.written = 0
	}
	g.mu.Unlock()
	if !due {
		return nil
	}
	return g.inbox.Store.Instance.Ignored.Trim(ctx, mostIgnored)
}

// addRequest records that the activity of a request was answered 202 and is stored for nobody.
func (g *ignored) addRequest(x *receiving, reason string) {
	by := x.Actor
	if x.signer != nil {
		by = x.signer
	}
	if by != nil && !x.gone {
		g.add(x.Activity.ID, x.Activity.Type, by.ID, reason)
	}
}
