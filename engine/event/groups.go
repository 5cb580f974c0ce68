package event

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// groupsEvery is the time between two checks of the positions of groups with readers.
	groupsEvery = time.Second

	// othersEvery is the number of these checks of which one also includes the groups without
	// readers.
	othersEvery = 10
)

// groupNames lists the consumer groups that every user's stream has.
var groupNames = []string{"llm", "ws"}

// groups maintains the consumer groups of the streams. It makes missing groups, and stores the
// positions of the groups in the users' databases. It is used by one goroutine.
type groups struct {
	*Emitter
	marks  map[groupKey]*groupMark
	looks  int                          // the number of checks so far
	unread map[vocab.Username]bool      // users whose groups all exist and have no readers
	hung   map[vocab.Username]time.Time // the times until which the checks skip users whose databases did not answer in time
}

type groupKey struct {
	user vocab.Username
	name string
}

// groupMark is the known state of a group.
type groupMark struct {
	acknowledged int64 // the position that is stored in the user's database
	// missed is the number of the last entry that was checked for a loss: the group got this
	// entry or missed it. Later checks begin after this entry.
	missed int64
	isTold bool // a log line has said that entries were missed
}

func newGroups(e *Emitter) *groups {
	return &groups{Emitter: e, marks: map[groupKey]*groupMark{}, unread: map[vocab.Username]bool{}, hung: map[vocab.Username]time.Time{}}
}

// keepGroups maintains the groups until ctx ends.
func (e *Emitter) keepGroups(ctx context.Context) {
	g := newGroups(e)
	tick := time.NewTicker(groupsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.Streams.IsUp() {
			g.lookAtAll(ctx)
		}
	}
}

// lookAtAll checks the groups of the streams that are at rest.
func (g *groups) lookAtAll(ctx context.Context) {
	resting := g.listResting()
	for part := range slices.Chunk(g.chooseStreams(resting), atOnce) {
		if !g.lookAt(ctx, part) {
			return
		}
	}
	g.measureLag(resting)
}

// chooseStreams returns the streams that are checked this time.
func (g *groups) chooseStreams(resting []rest) []rest {
	g.looks++
	if g.looks%othersEvery == 0 {
		g.forgetRemoved()
		return resting
	}
	return slices.DeleteFunc(slices.Clone(resting), func(r rest) bool { return g.unread[r.user] })
}

// measureLag sets the metric of how many events each group has not acknowledged, over all users
// whose streams are at rest. A user counts with at most g.Keep events.
func (g *groups) measureLag(resting []rest) {
	for _, name := range groupNames {
		var lag int64
		for _, r := range resting {
			if m := g.marks[groupKey{r.user, name}]; m != nil {
				lag += min(max(int64(r.mark.Seq)-m.acknowledged, 0), int64(g.Keep))
			}
		}
		g.metrics.groupLag.WithLabelValues(name).Set(float64(lag))
	}
}

// lookAt checks the groups of some streams, and reports whether Redis answered.
func (g *groups) lookAt(ctx context.Context, part []rest) bool {
	users := make([]vocab.Username, len(part))
	for n, r := range part {
		users[n] = r.user
	}
	oldest, err := g.Streams.Oldest(ctx, users, Stream)
	if err != nil {
		return false
	}
	found, err := g.Streams.Groups(ctx, users, Stream)
	if err != nil {
		return false
	}
	for n, r := range part {
		if g.Now().Before(g.hung[r.user]) {
			continue
		}
		g.unread[r.user] = areUnread(found[n])
		g.tendGroups(ctx, r.user, found[n], oldest[n])
	}
	return true
}

// areUnread reports whether all groups exist and none of them has a reader.
func areUnread(found []keyspace.Group) bool {
	return len(found) >= len(groupNames) && !slices.ContainsFunc(found, func(f keyspace.Group) bool { return f.Consumers > 0 })
}

// tendGroups checks the groups of one stream. It forgets the stream if the user is removed. If
// the user's database does not answer in time, it skips the user for hungWait.
func (g *groups) tendGroups(ctx context.Context, u vocab.Username, found []keyspace.Group, oldest keyspace.ID) {
	for _, name := range groupNames {
		err := g.tendGroup(ctx, groupKey{u, name}, found, oldest)
		switch {
		case err == nil || ctx.Err() != nil || keyspace.IsAway(err):
		case g.Users.IsRemoved(ctx, u):
			g.forgetStream(u)
			return
		default:
			g.Log.WarnContext(ctx, "group of a stream not kept", "user", u, "group", name, "err", err)
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !keyspace.IsAway(err) {
			g.hung[u] = g.Now().Add(hungWait)
			return
		}
	}
}

// tendGroup makes one group if it is missing, or else stores its position and counts the entries
// that it missed.
func (g *groups) tendGroup(ctx context.Context, key groupKey, found []keyspace.Group, oldest keyspace.ID) error {
	at := slices.IndexFunc(found, func(f keyspace.Group) bool { return f.Name == key.name })
	if at < 0 {
		return g.createGroup(ctx, key)
	}
	if err := g.noteMark(ctx, key, acknowledged(found[at])); err != nil {
		return err
	}
	g.countMissed(ctx, key, found[at], oldest)
	return nil
}

func (e *Emitter) forgetStream(u vocab.Username) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, u)
}

// forgetRemoved forgets the groups of users whose streams were forgotten.
func (g *groups) forgetRemoved() {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.marks, func(k groupKey, _ *groupMark) bool { return g.streams[k.user] == nil })
	maps.DeleteFunc(g.hung, func(u vocab.Username, _ time.Time) bool { return g.streams[u] == nil })
	maps.DeleteFunc(g.unread, func(u vocab.Username, _ bool) bool { return g.streams[u] == nil })
}

// acknowledged returns the number up to which the group has acknowledged all events.
func acknowledged(f keyspace.Group) int64 {
	if f.Pending != (keyspace.ID{}) {
		return int64(f.Pending.Seq) - 1
	}
	return int64(f.Delivered.Seq)
}

// createGroup makes a group that continues at the position in the user's database, or begins with
// the first entry if there is no position.
func (g *groups) createGroup(ctx context.Context, key groupKey) error {
	var after keyspace.ID
	var mark int64
	err := g.Store.Read(ctx, key.user, func(ctx context.Context, tx *user.Tx) (err error) {
		if mark, err = markOf(ctx, tx, key.name); err != nil || mark == 0 {
			return err
		}
		edge, err := tx.Events.FindEdge(ctx, mark)
		if edge != nil {
			after = keyspace.ID{Milli: uint64(edge.Milli), Seq: uint64(edge.Seq)}
		}
		return err
	})
	if err != nil {
		return err
	}
	g.marks[key] = &groupMark{acknowledged: mark, missed: mark}
	return g.Streams.Of(key.user).CreateGroup(ctx, Stream, key.name, after)
}

// markOf returns the position of a group in the database, or 0 if the database has no position of
// the group.
func markOf(ctx context.Context, tx *user.Tx, name string) (int64, error) {
	marks, err := tx.Events.ListGroupMarks(ctx)
	for _, m := range marks {
		if m.Name == name {
			return m.Acknowledged, err
		}
	}
	return 0, err
}

// noteMark stores the position of a group in the database if it has moved forward.
func (g *groups) noteMark(ctx context.Context, key groupKey, acknowledged int64) error {
	m := g.marks[key]
	if m == nil {
		m = &groupMark{}
		err := g.Store.Read(ctx, key.user, func(ctx context.Context, tx *user.Tx) (err error) {
			m.acknowledged, err = markOf(ctx, tx, key.name)
			return err
		})
		if err != nil {
			return err
		}
		m.missed = acknowledged
		g.marks[key] = m
	}
	if acknowledged <= m.acknowledged {
		return nil
	}
	err := g.Store.Write(ctx, key.user, func(ctx context.Context, tx *user.Tx) error {
		return tx.Events.RaiseGroupMark(ctx, user.GroupMark{Name: key.name, Acknowledged: acknowledged})
	})
	if err == nil {
		m.acknowledged = acknowledged
	}
	return err
}

// countMissed counts the entries that were trimmed before they were delivered to a group with
// readers.
func (g *groups) countMissed(ctx context.Context, key groupKey, f keyspace.Group, oldest keyspace.ID) {
	m := g.marks[key]
	from := max(m.missed, int64(f.Delivered.Seq))
	missed := min(int64(oldest.Seq)-1-from, maxWaiting) // limited, because a restore skips far more numbers
	m.missed = from
	if f.Consumers == 0 || missed <= 0 {
		return
	}
	m.missed = int64(oldest.Seq) - 1
	g.metrics.unreadTrimmed.Add(float64(missed))
	if !m.isTold {
		m.isTold = true
		g.Log.WarnContext(ctx, "events were dropped from a stream before a program read them", "user", key.user, "group", key.name, "events", missed)
	}
}
