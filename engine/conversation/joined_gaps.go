package conversation

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// gapWaits are the waits between attempts to read missing messages from a host. After the last
// wait there is one more attempt. If it fails, too, no attempt follows until a user reads the
// conversation or another message arrives.
var gapWaits = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

const (
	pageTime = 30 * time.Second
	perEntry = 2 << 10 // bytes of a database row without the message in it
)

// gaps reads messages that are missing in users' copies of conversations from the logs of the
// hosts. It begins after the transaction that finds a gap, or when a user reads the conversation.
// It never fills one user's copy of a conversation twice at the same time.
type gaps struct {
	*Members
	found  prometheus.Counter
	pages  *policy.Limiter // pages of logs, by the host's domain
	asking *policy.Pool    // reads that are under way
	places *policy.Pool    // conversations that are being filled, or wait to be filled
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	unjoined *policy.Limiter // stored bytes of the logs of conversations that no device has joined, by the host's domain
	joined   *policy.Limiter // stored bytes of the logs of all other conversations, by user and the host's domain

	mu      sync.Mutex
	closed  bool
	running map[copyKey]*filling
}

// copyKey names a user's copy of a conversation.
type copyKey struct {
	user vocab.Username
	id   uuid.UUID
}

// filling is the work on a copy of a conversation.
type filling struct {
	payer string // the domain of its host
	again bool   // begin was called meanwhile
}

func newGaps(m *Members) *gaps {
	g := &gaps{Members: m, pages: policy.LogPages.Limiter(m.Now), asking: policy.LogReads.NewPool(), places: policy.LogGaps.NewPool(), running: map[copyKey]*filling{},
		unjoined: policy.UnjoinedLogs.Limiter(m.Now), joined: policy.JoinedLogs.Limiter(m.Now),
		found: prometheus.NewCounter(prometheus.CounterOpts{Name: "lightweb_mls_gap_total", Help: "Messages of conversations elsewhere that came while earlier ones were missing."})}
	g.ctx, g.stop = context.WithCancel(context.Background())
	if m.Metrics != nil {
		m.Metrics.MustRegister(g.found)
	}
	return g
}

// Committed is called after each transaction of a user. If the transaction found conversations
// incomplete, Committed begins to read their missing messages.
func (m *Members) Committed(_ context.Context, c user.Commit) {
	for _, b := range c.Behind {
		if b.IsGap {
			m.gaps.found.Inc()
		}
		m.gaps.begin(copyKey{c.User, b.Conversation}, b.Host)
	}
}

// Close stops the reading in the background, and waits until it has ended or ctx ends.
func (m *Members) Close(ctx context.Context) error {
	g := m.gaps
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.stop()
	done := make(chan struct{})
	go func() { g.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Busy, "hosts of conversations are still being asked", ctx.Err())
	}
}

// seek begins to fill a copy if messages are missing in it.
func (g *gaps) seek(u vocab.Username, j *user.JoinedConversation) {
	if j.WholeSeq < j.LastSeq && j.Host != "" && j.Status != user.StatusFrozen {
		g.begin(copyKey{u, j.ID}, j.Host)
	}
}

// begin begins to fill a copy. If the copy is being filled already, it is filled once more
// afterwards.
func (g *gaps) begin(of copyKey, host vocab.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.running[of]; f != nil {
		f.again = true
		return
	}
	f := &filling{payer: policy.RegistrableDomain(host.Host())}
	if g.closed || !g.places.Take(f.payer, 1) {
		// This copy is not filled now. A later call of begin can fill it: seek calls begin when a
		// user reads the conversation, and Committed does when it finds the copy incomplete.
		return
	}
	g.running[of] = f
	g.work.Go(func() { g.run(of) })
}

// run fills a copy, with retries, until nothing is missing or a retry would not help.
func (g *gaps) run(of copyKey) {
	for try := 0; ; {
		err := g.fill(of)
		if err == nil || !fault.IsPassing(err) {
			if err != nil && g.ctx.Err() == nil {
				g.Log.Info("missing messages cannot be had", "user", of.user, "conversation", of.id, "err", err)
			}
			if g.end(of) {
				return
			}
			try = 0
			continue
		}
		if try == len(gapWaits) {
			g.Log.Warn("messages are missing", "user", of.user, "conversation", of.id, "err", err, "hint", "its host does not answer; it is asked again when somebody reads the conversation")
			if g.end(of) {
				return
			}
			try = 0
			continue
		}
		wait := time.NewTimer(gapWaits[try])
		try++
		select {
		case <-wait.C:
		case <-g.ctx.Done():
			wait.Stop()
			g.end(of)
			return
		}
	}
}

// end is called when an attempt to fill a user's copy of a conversation is over, with or without
// success. If begin was called for the copy meanwhile, end returns false, and the caller reads
// once more. Otherwise, or if g is closed, end removes the copy from running and returns true.
func (g *gaps) end(of copyKey) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.running[of]
	if f.again && !g.closed {
		f.again = false
		return false
	}
	g.places.Give(f.payer, 1)
	delete(g.running, of)
	return true
}

// fill reads the missing messages, page by page. A panic, which a host's answer may cause, is an
// error that no retry mends.
func (g *gaps) fill(of copyKey) (err error) {
	defer func() {
		if v := recover(); v != nil {
			g.Log.Error("filling a conversation panicked", "user", of.user, "conversation", of.id, "err", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	for {
		more, err := g.fillPage(of)
		if err != nil || !more {
			return err
		}
	}
}

// fillPage reads one page of the host's log, and reports whether to read another one. As long as
// no device of the user has joined, it reads only one page, so that a stranger cannot fill the
// database.
func (g *gaps) fillPage(of copyKey) (more bool, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, pageTime)
	defer cancel()
	c, err := g.Registry.Find(ctx, of.user, of.id)
	if err != nil {
		return false, err
	}
	var j *user.JoinedConversation
	err = g.Store.Read(ctx, of.user, func(ctx context.Context, tx *user.Tx) (err error) {
		j, err = readJoined(ctx, tx, c)
		return err
	})
	if err != nil || j.Host == "" || j.Status == user.StatusFrozen {
		return false, err
	}
	payer := policy.RegistrableDomain(j.Host.Host())
	stored, key := g.storedOf(of.user, payer, j.Confirmed)
	if ok, after := stored.Ready(key); !ok && j.Confirmed {
		return false, askLater(after)
	} else if !ok {
		// After a device has joined, the filling begins again when a user reads the conversation.
		return false, nil
	}
	if !g.asking.Take(payer, 1) {
		return false, askLater(time.Second)
	}
	defer g.asking.Give(payer, 1)
	if ok, after := g.pages.Allow(payer); !ok {
		return false, askLater(after)
	}
	said, more, err := g.readHostLog(ctx, of.user, c, j.WholeSeq)
	if err != nil {
		return false, err
	}
	for _, s := range said {
		stored.Spend(key, perEntry+len(s.Content))
	}
	if more && len(said) == 0 {
		return false, badReply(nil)
	}
	return more && j.Confirmed, g.keepPage(ctx, of, j.WholeSeq, j.LastSeq, said, more)
}

// storedOf returns the limiter that counts the bytes of logs stored from a domain, and the key
// under which it counts them.
func (g *gaps) storedOf(u vocab.Username, domain string, joined bool) (l *policy.Limiter, key string) {
	if joined {
		return g.joined, u.String() + " " + domain
	}
	return g.unjoined, domain
}

func askLater(after time.Duration) error {
	return fault.New(fault.RateLimited, "the host has been asked for much of its logs").After(after)
}

// keepPage stores a page of the host's log. Numbers that the page skips do not exist at the host
// any more, so they are not missing.
func (g *gaps) keepPage(ctx context.Context, of copyKey, after, last int64, said []loggedSaid, more bool) error {
	return g.Store.Write(ctx, of.user, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.HoldAudience(ctx); err != nil { // held activities must not go to blocked actors
			return err
		}
		if err := tx.Messages.Lock(ctx); err != nil {
			return err
		}
		reached := after
		for _, s := range said {
			e, err := s.read()
			if err != nil || s.Seq <= reached {
				return badReply(err)
			}
			reached = s.Seq
			if err := g.keepEntry(ctx, tx, of, e); err != nil {
				return err
			}
		}
		j, err := tx.Joined.Find(ctx, of.id)
		if err != nil || j == nil || j.Status == user.StatusFrozen {
			return err
		}
		if !more {
			reached = max(reached, last)
		}
		j.WholeSeq = max(j.WholeSeq, min(reached, j.LastSeq))
		_, err = tx.Joined.Save(ctx, *j, g.Now())
		return err
	})
}

// keepEntry stores one message of the host's log as if the host had sent it.
func (g *gaps) keepEntry(ctx context.Context, tx *user.Tx, of copyKey, e *entry) error {
	j, err := tx.Joined.Find(ctx, of.id)
	if err != nil || j == nil || j.Status == user.StatusFrozen {
		return err
	}
	blocked, err := tx.Blocks.FindAmong(ctx, []vocab.ID{e.sender, j.Host})
	if err != nil {
		return err
	}
	isBlocked := func(id vocab.ID) bool { return blocked[id] || g.Gate.CheckActor(id) != nil }
	e.object = j.URI + "/log/" + vocab.ID(strconv.FormatInt(e.seq, 10))
	// A stranger's message needs no event, because an event has told of the stranger's Welcome.
	tells := func(trust string) bool { return trust != user.TrustStranger }
	isMuted := func(id vocab.ID) bool { return g.Registry.isMuted(of.user, id) }
	r := &receiver{tx: tx, fills: true, entry: e, conversation: j,
		Arrival: Arrival{Tells: tells, Me: g.Local.ID(of.user), Activity: &vocab.Activity{}, Sender: &vocab.Actor{ID: j.Host}, IsBlocked: isBlocked(e.sender) || isBlocked(j.Host), Mutes: isMuted, Now: g.Now(), Applied: g.Now()}}
	_, err = r.takeMessage(ctx)
	return err
}

// read reads an entry of a host's log. The kind of the entry follows from the header of the
// message.
func (s loggedSaid) read() (*entry, error) {
	if s.Seq < 1 || s.Seq > maxSeq || s.Generation < 0 || len(s.Content) > maxMessage {
		return nil, badLabel("bad_seq", "an entry of a log has a number", "")
	}
	sender, err := vocab.ParseID(s.Sender)
	if err != nil {
		return nil, err
	}
	e, err := entryOf(s.Content)
	if err != nil {
		return nil, err
	}
	e.seq, e.generation, e.sender = s.Seq, s.Generation, sender
	if e.kind == user.KindOpaque || e.kind == user.KindWelcome || s.Epoch != e.epoch {
		return nil, badLabel("wrong_epoch", "the MLS message is of another epoch than is said of it", "")
	}
	return e, nil
}
