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

// Why an activity that was answered 202 is kept for nobody. The list is closed.
const (
	IgnoredNobody      = "nobody"       // concerns nobody here
	IgnoredUnrelated   = "unrelated"    // its recipients have nothing to do with it
	IgnoredFollowers   = "followers"    // for followers, and its recipients do not follow
	IgnoredStranger    = "stranger"     // a private message of a stranger
	IgnoredBlocked     = "blocked"      // its recipients block who is behind it, or the policy refuses that one since
	IgnoredNoEffect    = "no_effect"    // about something that is not here, or that is newer, or changes nothing
	IgnoredRelay       = "relay"        // a relay passed it on, and nobody here has to do with it
	IgnoredUnproven    = "unproven"     // somebody passed it on without a proof, and its author's server does not show it
	IgnoredSenderGone  = "sender_gone"  // waited until its sender was deleted
	IgnoredContested   = "contested"    // brings an object whose id somebody else on its server uses here, and that server does not show it as the sender's
	IgnoredReport      = "report_empty" // a report that is about nobody here
	IgnoredDisplaced   = "displaced"    // a report that gave way to one of a domain with fewer
	IgnoredGroupBudget = "group_budget" // a Group actor announces more than is fetched for it
	IgnoredOverBudget  = "over_budget"  // kept for users who follow its sender alone: too much of its domain was stored for others
)

const (
	mostIgnored   = 200_000 // remembered in all
	mostUnwritten = 10_000  // in memory; beyond, they are only counted
	trimEvery     = 1_000   // written between two looks at how many there are

	flushEvery = 5 * time.Second
	flushTime  = 10 * time.Second
)

// ignored remembers what is kept for nobody. It is written behind: a crash may lose what came in
// the last seconds.
type ignored struct {
	inbox *Inbox
	log   *policy.Limiter

	mu        sync.Mutex
	unwritten []instance.Ignored
	unlogged  int // since the last line in the log
	written   int // since it was last trimmed
}

func newIgnored(i *Inbox) *ignored {
	return &ignored{inbox: i, log: policy.IgnoredLines.Limiter(i.Now), written: trimEvery}
}

// add remembers that an activity is kept for nobody; by is who sent it here. Activities of this
// server's own users are left out: their outbox has them.
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

// flushOften writes what came, every few seconds.
func (g *ignored) flushOften(work *intake.Background) {
	for work.Pause(flushEvery) {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		if err := g.flush(ctx); err != nil {
			g.inbox.Log.Warn("ignored activities not written", "err", err)
		}
		cancel()
	}
}

// flush writes what came since the last time. Rows that cannot be written now are tried again.
func (g *ignored) flush(ctx context.Context) error {
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

// trim bounds what is remembered, once in so many.
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

// addRequest says that a request was answered 202 and went no further.
func (g *ignored) addRequest(x *receiving, reason string) {
	by := x.Actor
	if x.signer != nil {
		by = x.signer
	}
	if by != nil && !x.gone {
		g.add(x.Activity.ID, x.Activity.Type, by.ID, reason)
	}
}
