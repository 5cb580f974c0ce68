package event

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// groupsEvery is how often it is looked how far the groups are that have readers.
	groupsEvery = time.Second

	// othersEvery is how many looks go by until it is looked whether the others are there.
	othersEvery = 10
)

// groupNames are the consumer groups that every user's stream has.
var groupNames = []string{"llm", "ws"}

// groups keeps the consumer groups of the streams: it makes those that are missing, and notes in
// the users' databases how far they are. One goroutine uses it.
type groups struct {
	*Emitter
	marks  map[groupKey]*groupMark
	looks  int                     // that were begun
	unread map[vocab.Username]bool // those whose groups are there and have no readers
}

type groupKey struct {
	user vocab.Username
	name string
}

// groupMark is what is known of a group.
type groupMark struct {
	acknowledged int64 // as the user's database has it
	missed       int64 // trimmed entries up to this number are counted
	isTold       bool  // that there are such
}

// keepGroups looks after the groups until ctx ends.
func (e *Emitter) keepGroups(ctx context.Context) {
	g := &groups{Emitter: e, marks: map[groupKey]*groupMark{}, unread: map[vocab.Username]bool{}}
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

// lookAtAll looks at the groups of all streams of which nothing is to be emitted.
func (g *groups) lookAtAll(ctx context.Context) {
	resting := g.resting()
	for part := range slices.Chunk(g.chooseStreams(resting), atOnce) {
		if !g.lookAt(ctx, part) {
			return
		}
	}
	g.measureLag(resting)
}

// chooseStreams returns the streams that are looked at this time.
func (g *groups) chooseStreams(resting []rest) []rest {
	g.looks++
	if g.looks%othersEvery == 0 {
		return resting
	}
	return slices.DeleteFunc(slices.Clone(resting), func(r rest) bool { return g.unread[r.user] })
}

// measureLag adds up how far the groups are behind.
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

// lookAt looks at some streams, and reports whether Redis answered.
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
		for _, name := range groupNames {
			g.tendGroup(ctx, r, name, found[n], oldest[n])
		}
		g.unread[r.user] = areUnread(found[n])
	}
	return true
}

// areUnread reports whether all groups are there and none of them has a reader.
func areUnread(found []keyspace.Group) bool {
	return len(found) >= len(groupNames) && !slices.ContainsFunc(found, func(f keyspace.Group) bool { return f.Consumers > 0 })
}

// tendGroup looks after one group.
func (g *groups) tendGroup(ctx context.Context, r rest, name string, found []keyspace.Group, oldest keyspace.ID) {
	key := groupKey{r.user, name}
	at := slices.IndexFunc(found, func(f keyspace.Group) bool { return f.Name == name })
	var err error
	switch {
	case at < 0:
		err = g.createGroup(ctx, key)
	default:
		if err = g.noteMark(ctx, key, acknowledged(found[at])); err == nil {
			g.countMissed(ctx, key, found[at], oldest)
		}
	}
	if err != nil && ctx.Err() == nil && !keyspace.IsAway(err) {
		g.Log.WarnContext(ctx, "group of a stream not kept", "user", r.user, "group", name, "err", err)
	}
}

// acknowledged returns the number up to which nothing is left to do for the group.
func acknowledged(f keyspace.Group) int64 {
	if f.Pending != (keyspace.ID{}) {
		return int64(f.Pending.Seq) - 1
	}
	return int64(f.Delivered.Seq)
}

// createGroup makes a group that goes on where it was.
func (g *groups) createGroup(ctx context.Context, key groupKey) error {
	var after keyspace.ID
	var mark int64
	err := g.Store.Read(ctx, key.user, func(ctx context.Context, tx *db.Tx) (err error) {
		if mark, err = markOf(ctx, tx, key.name); err != nil || mark == 0 {
			return err
		}
		edge, err := tx.EventsEdge(ctx, mark)
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

// markOf returns how far a group is as the database has it.
func markOf(ctx context.Context, tx *db.Tx, name string) (int64, error) {
	marks, err := tx.GroupMarks(ctx)
	for _, m := range marks {
		if m.Name == name {
			return m.Acknowledged, err
		}
	}
	return 0, err
}

// noteMark writes down how far a group is, when it has moved.
func (g *groups) noteMark(ctx context.Context, key groupKey, acknowledged int64) error {
	m := g.marks[key]
	if m == nil {
		m = &groupMark{}
		err := g.Store.Read(ctx, key.user, func(ctx context.Context, tx *db.Tx) (err error) {
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
	err := g.Store.Write(ctx, key.user, func(ctx context.Context, tx *db.Tx) error {
		return tx.RaiseGroupMark(ctx, db.GroupMark{Name: key.name, Acknowledged: acknowledged})
	})
	if err == nil {
		m.acknowledged = acknowledged
	}
	return err
}

// countMissed counts the entries that were trimmed before a group with readers was handed them.
func (g *groups) countMissed(ctx context.Context, key groupKey, f keyspace.Group, oldest keyspace.ID) {
	m := g.marks[key]
	from := max(m.missed, int64(f.Delivered.Seq))
	missed := min(int64(oldest.Seq)-1-from, maxWaiting) // a restore jumps over far more numbers
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
