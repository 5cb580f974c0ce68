package keyspace

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Delivered is an entry that a group handed to one of its readers.
type Delivered struct {
	Entry
	Tries int  // how often it was handed out, this time included
	Lost  bool // the stream has it no more: there is its id alone, and it counts as acknowledged
}

// ErrNoGroup is that the stream has no such group, or is not there.
var ErrNoGroup = errors.New("no such consumer group")

// Member is one reader of a consumer group. It is handed one entry at a time: so Tries says how
// often a reader has begun with an entry, and no entry waits for a reader that is busy.
type Member struct {
	Space
	Stream, Group string
	Name          string // no two readers at one time have the same
}

// Next hands the reader the next entry that no reader of the group has had, as soon as there is
// one; nil when there is none after a while. The error is ErrNoGroup where there is no group.
func (m Member) Next(ctx context.Context, while time.Duration) (*Delivered, error) {
	while = max(while, time.Millisecond) // Redis takes 0 for ever
	d, err := m.read(ctx, ">", while, while+callLimit)
	if d != nil {
		d.Tries = 1
	}
	return d, err
}

// Resume hands the reader again the first entry after an id that it was handed before and did not
// acknowledge; nil when there is none.
func (m Member) Resume(ctx context.Context, after ID) (*Delivered, error) {
	d, err := m.read(ctx, after.String(), -1, callLimit)
	switch {
	case err != nil || d == nil:
		return nil, err
	case len(d.Fields) == 0:
		d.Lost = true
		return d, m.Acknowledge(ctx, d.ID)
	}
	return m.countTries(ctx, d)
}

// read reads one entry in the name of the reader, waiting for it when block is not negative.
func (m Member) read(ctx context.Context, from string, block, limit time.Duration) (d *Delivered, err error) {
	err = m.store.callWithin(ctx, limit, "read "+m.key(m.Stream), func(ctx context.Context) error {
		found, err := m.store.client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: m.Group, Consumer: m.Name, Count: 1, Block: block,
			Streams: []string{m.key(m.Stream), from}}).Result()
		if err != nil {
			return groupFault(err)
		}
		d, err = deliveredOf(found[0].Messages)
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return d, err
}

// Idle is a part of the entries that a group has handed out for so long that their readers are
// taken for dead.
type Idle struct {
	Taken *Delivered // one that is handed to the reader who asked; nil when there is none
	Lost  []ID       // those that the stream has no more: nobody has to acknowledge them
	Next  ID         // where the next part begins; the zero ID after the last
}

// TakeOver hands the reader one entry that another one, or itself, was handed so long ago and did
// not acknowledge. It looks at the next few from an id on.
func (m Member) TakeOver(ctx context.Context, from ID, idle time.Duration) (part Idle, err error) {
	err = m.store.call(ctx, "take over "+m.key(m.Stream), func(ctx context.Context) error {
		found, next, deleted, err := m.store.client.XAutoClaimWithDeleted(ctx, &redis.XAutoClaimArgs{Stream: m.key(m.Stream), Group: m.Group, Consumer: m.Name,
			MinIdle: idle, Start: from.String(), Count: 1}).Result()
		if err != nil {
			return groupFault(err)
		}
		if part.Taken, err = deliveredOf(found); err != nil {
			return err
		}
		if part.Next, err = ParseID(next); err != nil {
			return err
		}
		part.Lost, err = idsOf(deleted)
		return err
	})
	if err == nil && part.Taken != nil {
		part.Taken, err = m.countTries(ctx, part.Taken)
	}
	return part, err
}

// countTries asks how often an entry was handed out. It returns nil when somebody has acknowledged
// the entry since.
func (m Member) countTries(ctx context.Context, d *Delivered) (*Delivered, error) {
	err := m.store.call(ctx, "count deliveries in "+m.key(m.Stream), func(ctx context.Context) error {
		found, err := m.store.client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: m.key(m.Stream), Group: m.Group,
			Start: d.ID.String(), End: d.ID.String(), Count: 1}).Result()
		if len(found) > 0 {
			d.Tries = int(found[0].RetryCount)
		}
		return groupFault(err)
	})
	if err != nil || d.Tries == 0 {
		return nil, err
	}
	return d, nil
}

// Hold says that the reader still works at an entry: for TakeOver it is as if it had been handed
// out now.
func (m Member) Hold(ctx context.Context, id ID) error {
	return m.store.call(ctx, "hold an entry of "+m.key(m.Stream), func(ctx context.Context) error {
		return m.store.client.XClaimJustID(ctx, &redis.XClaimArgs{Stream: m.key(m.Stream), Group: m.Group, Consumer: m.Name, Messages: []string{id.String()}}).Err()
	})
}

// Acknowledge ends the delivery of an entry to the group.
func (m Member) Acknowledge(ctx context.Context, id ID) error {
	return m.store.call(ctx, "acknowledge in "+m.key(m.Stream), func(ctx context.Context) error {
		return m.store.client.XAck(ctx, m.key(m.Stream), m.Group, id.String()).Err()
	})
}

// Bury adds an entry with these fields to the dead letters of the stream, of which about keep stay.
func (m Member) Bury(ctx context.Context, fields []string, keep int) error {
	return m.store.call(ctx, "bury an entry of "+m.key(m.Stream), func(ctx context.Context) error {
		return m.store.client.XAdd(ctx, &redis.XAddArgs{Stream: m.key(m.Stream + ":dead"), MaxLen: int64(keep), Approx: true, Values: fields}).Err()
	})
}

// deliveredOf returns the first entry of an answer, nil when there is none.
func deliveredOf(found []redis.XMessage) (*Delivered, error) {
	entries, err := entriesOf(found)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return &Delivered{Entry: entries[0]}, nil
}

func idsOf(texts []string) ([]ID, error) {
	var all []ID
	for _, text := range texts {
		id, err := ParseID(text)
		if err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, nil
}

// groupFault marks the answers by which Redis says that there is no group, or none any more.
func groupFault(err error) error {
	if redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED") {
		return errors.Join(ErrNoGroup, err)
	}
	return err
}
