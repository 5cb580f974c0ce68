package keyspace

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Delivered is an entry that was delivered to a reader of a consumer group.
type Delivered struct {
	Entry
	Tries int // how often the entry was delivered, this time included
	// Lost says that the stream does not have the entry any more. Then only ID is set, and the
	// entry is acknowledged.
	Lost bool
}

// ErrNoGroup says that the stream or the group does not exist.
var ErrNoGroup = errors.New("no such consumer group")

// Member is one reader of a consumer group. It gets one entry at a time. So Tries is the number
// of times that a reader has begun with an entry, and no entry waits for a busy reader.
type Member struct {
	Space
	Stream, Group string
	Name          string // unique among the running readers of the group
}

// Next returns the next entry that was not delivered to the group yet. If there is none, Next
// waits for one. If none arrives within the duration while, it returns nil. The error is
// ErrNoGroup if there is no group.
func (m Member) Next(ctx context.Context, while time.Duration) (*Delivered, error) {
	while = max(while, time.Millisecond) // for Redis 0 means to wait forever
	d, err := m.read(ctx, ">", while, while+callLimit)
	if d != nil {
		d.Tries = 1
	}
	return d, err
}

// Resume returns the first entry that was delivered to this reader before, was not acknowledged,
// and has an id higher than the parameter after. It returns nil if there is none.
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

// read delivers one entry to this reader. If the parameter block is positive, read waits up to
// that time for an entry. If block is negative, read does not wait. It must not be 0, because
// Redis would then wait without end. The parameter limit bounds the whole call.
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

// Idle is a page of a search for entries whose readers are considered dead, because the entries
// have not been acknowledged for a long time.
type Idle struct {
	Taken *Delivered // an entry that is now this reader's; nil if there is none
	Lost  []ID       // entries that the stream has lost; they need no acknowledgement
	Next  ID         // where the next page begins; the zero ID after the last
}

// TakeOver delivers to this reader one entry that has not been acknowledged. The parameter idle is
// the least time since the last delivery of that entry to any reader. TakeOver examines only a few
// entries, beginning at the id from.
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

// countTries sets d.Tries to the number of deliveries of the entry, and returns d. It returns
// nil if the entry has been acknowledged meanwhile.
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

// Hold tells Redis that the reader still works on an entry. For TakeOver the entry then counts
// as delivered just now.
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

// Bury adds an entry with these fields to the dead letters of the stream. It drops the oldest dead
// letters if there are more than keep. The server may leave a few more than that.
func (m Member) Bury(ctx context.Context, fields []string, keep int) error {
	return m.store.call(ctx, "bury an entry of "+m.key(m.Stream), func(ctx context.Context) error {
		return m.store.client.XAdd(ctx, &redis.XAddArgs{Stream: m.key(m.Stream + ":dead"), MaxLen: int64(keep), Approx: true, Values: fields}).Err()
	})
}

// deliveredOf returns the first entry of an answer, or nil if there is none.
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

// groupFault adds ErrNoGroup to the errors by which Redis says that the group does not exist or
// was removed.
func groupFault(err error) error {
	if redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED") {
		return errors.Join(ErrNoGroup, err)
	}
	return err
}
