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

// Member is one reader of a consumer group.
type Member struct {
	Space
	Stream, Group string
	Name          string // no two readers at one time have the same
}

// Next hands the reader up to n entries that no reader of the group has had, as soon as there are
// some, or none after a while. The error is ErrNoGroup where there is no group.
func (m Member) Next(ctx context.Context, n int, while time.Duration) (all []Delivered, err error) {
	err = m.store.callWithin(ctx, while+callLimit, "read "+m.key(m.Stream), func(ctx context.Context) error {
		found, err := m.store.client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: m.Group, Consumer: m.Name, Count: int64(n), Block: while,
			Streams: []string{m.key(m.Stream), ">"}}).Result()
		if err != nil {
			return groupFault(err)
		}
		all, err = deliveredOf(found[0].Messages, nil)
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return all, err
}

// Resume hands the reader again the first entry after an id that it was handed before and did not
// acknowledge; none when there is none.
func (m Member) Resume(ctx context.Context, after ID) (all []Delivered, err error) {
	err = m.store.call(ctx, "resume "+m.key(m.Stream), func(ctx context.Context) error {
		pending, err := m.pending(ctx, "("+after.String(), "+")
		if err != nil || len(pending) == 0 {
			return err
		}
		found, err := m.store.client.XClaim(ctx, &redis.XClaimArgs{Stream: m.key(m.Stream), Group: m.Group, Consumer: m.Name, Messages: []string{pending[0].ID}}).Result()
		if err != nil {
			return groupFault(err)
		}
		if len(found) == 0 {
			all, err = lostOf([]string{pending[0].ID})
			return err
		}
		pending[0].RetryCount++ // by the claim
		all, err = deliveredOf(found, pending)
		return err
	})
	return all, err
}

// TakeOver hands the reader an entry that another one, or itself, was handed so long ago and did
// not acknowledge, and the ids of all such entries that were lost; none when there is none.
func (m Member) TakeOver(ctx context.Context, idle time.Duration) (all []Delivered, err error) {
	err = m.store.call(ctx, "take over "+m.key(m.Stream), func(ctx context.Context) error {
		found, _, deleted, err := m.store.client.XAutoClaimWithDeleted(ctx, &redis.XAutoClaimArgs{Stream: m.key(m.Stream), Group: m.Group, Consumer: m.Name,
			MinIdle: idle, Start: "0-0", Count: 1}).Result()
		if err != nil {
			return groupFault(err)
		}
		if all, err = lostOf(deleted); err != nil || len(found) == 0 {
			return err
		}
		pending, err := m.pending(ctx, found[0].ID, found[0].ID)
		if err != nil {
			return err
		}
		taken, err := deliveredOf(found, pending)
		all = append(all, taken...)
		return err
	})
	return all, err
}

// pending returns the first entry of a range that the reader was handed and did not acknowledge.
func (m Member) pending(ctx context.Context, from, to string) ([]redis.XPendingExt, error) {
	found, err := m.store.client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: m.key(m.Stream), Group: m.Group, Consumer: m.Name,
		Start: from, End: to, Count: 1}).Result()
	return found, groupFault(err)
}

// Acknowledge ends the delivery of entries to the group.
func (m Member) Acknowledge(ctx context.Context, ids ...ID) error {
	texts := make([]string, len(ids))
	for n, id := range ids {
		texts[n] = id.String()
	}
	return m.store.call(ctx, "acknowledge in "+m.key(m.Stream), func(ctx context.Context) error {
		return m.store.client.XAck(ctx, m.key(m.Stream), m.Group, texts...).Err()
	})
}

// Bury adds an entry with these fields to the dead letters of the stream, of which about keep stay,
// and acknowledges it.
func (m Member) Bury(ctx context.Context, id ID, fields []string, keep int) error {
	return m.store.call(ctx, "bury an entry of "+m.key(m.Stream), func(ctx context.Context) error {
		err := m.store.client.XAdd(ctx, &redis.XAddArgs{Stream: m.key(m.Stream + ":dead"), MaxLen: int64(keep), Approx: true, Values: fields}).Err()
		if err != nil {
			return err
		}
		return m.store.client.XAck(ctx, m.key(m.Stream), m.Group, id.String()).Err()
	})
}

// deliveredOf reads entries, with how often each was handed out: once unless pending says more.
func deliveredOf(found []redis.XMessage, pending []redis.XPendingExt) ([]Delivered, error) {
	entries, err := entriesOf(found)
	if err != nil {
		return nil, err
	}
	tries := map[string]int{}
	for _, p := range pending {
		tries[p.ID] = int(p.RetryCount)
	}
	all := make([]Delivered, len(entries))
	for n, e := range entries {
		all[n] = Delivered{Entry: e, Tries: max(tries[found[n].ID], 1)}
	}
	return all, nil
}

func lostOf(ids []string) ([]Delivered, error) {
	var all []Delivered
	for _, text := range ids {
		id, err := ParseID(text)
		if err != nil {
			return nil, err
		}
		all = append(all, Delivered{Entry: Entry{ID: id}, Lost: true})
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
