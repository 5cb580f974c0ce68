package conversation

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// gapWaits are how long a host is left alone between questions for what is missing. After the last
// one somebody has to read the conversation, or another message to come.
var gapWaits = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

const (
	maxAsking = 8    // conversations whose hosts are asked at once
	maxGaps   = 1000 // conversations that wait for that
	pageTime  = 30 * time.Second
)

// gaps reads from hosts what of their logs has not come: after the commit that shows it, and for a
// conversation once at a time.
type gaps struct {
	*Members
	found  prometheus.Counter
	pages  *policy.Limiter // of logs, by the host's domain
	asking chan struct{}   // a place for each that is asked
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running map[copyKey]bool // true: something came meanwhile
}

// copyKey names the copy that a user has of a conversation.
type copyKey struct {
	user vocab.Username
	id   uuid.UUID
}

func newGaps(m *Members) *gaps {
	g := &gaps{Members: m, pages: policy.LogPages.Limiter(m.Now), asking: make(chan struct{}, maxAsking), running: map[copyKey]bool{},
		found: prometheus.NewCounter(prometheus.CounterOpts{Name: "lightweb_mls_gap_total", Help: "Messages of conversations elsewhere that came while earlier ones were missing."})}
	g.ctx, g.stop = context.WithCancel(context.Background())
	if m.Metrics != nil {
		m.Metrics.MustRegister(g.found)
	}
	return g
}

// Committed hears of commits that show that messages are missing.
func (m *Members) Committed(_ context.Context, c db.Commit) {
	for _, b := range c.Behind {
		if b.IsGap {
			m.gaps.found.Inc()
		}
		m.gaps.begin(copyKey{c.User, b.Conversation})
	}
}

// Close ends the work beside requests.
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

// seek begins to fill a conversation of which messages are missing.
func (g *gaps) seek(u vocab.Username, j *db.JoinedConversation) {
	if j.WholeSeq < j.LastSeq && j.Host != "" && j.Status != db.StatusFrozen {
		g.begin(copyKey{u, j.ID})
	}
}

// begin begins to fill a conversation, unless that is under way.
func (g *gaps) begin(of copyKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, is := g.running[of]; is {
		g.running[of] = true
		return
	}
	if g.closed || len(g.running) >= maxGaps { // whoever reads it begins again
		return
	}
	g.running[of] = false
	g.work.Go(func() { g.run(of) })
}

// run asks again and again until nothing is missing, or it is of no use.
func (g *gaps) run(of copyKey) {
	for try := 0; ; {
		err := g.fill(of)
		if err == nil || !isPassing(err) {
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

// end ends the work on a conversation, unless something came meanwhile.
func (g *gaps) end(of copyKey) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running[of] && !g.closed {
		g.running[of] = false
		return false
	}
	delete(g.running, of)
	return true
}

// isPassing reports whether a failure may be over soon.
func isPassing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.RateLimited:
		return true
	}
	return false
}

// fill reads what is missing, page by page.
func (g *gaps) fill(of copyKey) error {
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-g.ctx.Done():
		return g.ctx.Err()
	}
	for {
		more, err := g.fillPage(of)
		if err != nil || !more {
			return err
		}
	}
}

// fillPage reads one page of the host's log, and reports whether another one is to be read: while
// no device of the user has joined, the host has filled enough with one.
func (g *gaps) fillPage(of copyKey) (more bool, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, pageTime)
	defer cancel()
	c, err := g.Registry.Find(ctx, of.user, of.id)
	if err != nil {
		return false, err
	}
	var j *db.JoinedConversation
	err = g.Store.Read(ctx, of.user, func(ctx context.Context, tx *db.Tx) (err error) {
		j, err = readJoined(ctx, tx, c)
		return err
	})
	if err != nil || j.Host == "" || j.Status == db.StatusFrozen {
		return false, err
	}
	if ok, after := g.pages.Allow(policy.RegistrableDomain(j.Host.Host())); !ok {
		return false, fault.New(fault.RateLimited, "the host has been asked for much of its logs").After(after)
	}
	said, more, err := g.readHostLog(ctx, of.user, c, j.WholeSeq)
	if err != nil {
		return false, err
	}
	if more && len(said) == 0 {
		return false, badReply(nil)
	}
	return more && j.Confirmed, g.keepPage(ctx, of, j.WholeSeq, j.LastSeq, said, more)
}

// keepPage keeps a page of the host's log. Numbers that the page passes over are gone.
func (g *gaps) keepPage(ctx context.Context, of copyKey, after, last int64, said []loggedSaid, more bool) error {
	return g.Store.Write(ctx, of.user, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.LockInbox(ctx); err != nil {
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
		j, err := tx.JoinedConversation(ctx, of.id)
		if err != nil || j == nil || j.Status == db.StatusFrozen {
			return err
		}
		if !more {
			reached = max(reached, last)
		}
		j.WholeSeq = max(j.WholeSeq, min(reached, j.LastSeq))
		_, err = tx.SaveJoined(ctx, *j, g.Now())
		return err
	})
}

// keepEntry keeps one message of the host's log as if the host had sent it.
func (g *gaps) keepEntry(ctx context.Context, tx *db.Tx, of copyKey, e *entry) error {
	j, err := tx.JoinedConversation(ctx, of.id)
	if err != nil || j == nil || j.Status == db.StatusFrozen {
		return err
	}
	blocked, err := tx.Blocked(ctx, []vocab.ID{e.sender, j.Host})
	if err != nil {
		return err
	}
	e.object = j.URI + "/log/" + vocab.ID(strconv.FormatInt(e.seq, 10))
	r := &receiver{InboxTx: quiet{tx}, entry: e, conversation: j,
		Arrival: Arrival{Me: g.Local.ID(of.user), Activity: &vocab.Activity{}, Sender: &vocab.Actor{ID: j.Host}, IsBlocked: blocked[e.sender] || blocked[j.Host], Now: g.Now()}}
	_, err = r.takeMessage(ctx)
	return err
}

// quiet is a transaction that notes no gap: that is what is being filled.
type quiet struct{ *db.Tx }

// NoteBehind is InboxTx's.
func (quiet) NoteBehind(uuid.UUID, bool) {}

// read reads an entry of a host's log. The header of the message says what it is.
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
	if e.kind == db.KindOpaque || e.kind == db.KindWelcome || s.Epoch != e.epoch {
		return nil, badLabel("wrong_epoch", "the MLS message is of another epoch than is said of it", "")
	}
	return e, nil
}
