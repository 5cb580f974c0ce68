package keyspace

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Group is a consumer group of a stream.
type Group struct {
	Name           string
	Delivered      ID    // the last entry that was delivered
	Pending        ID    // the lowest entry that was delivered and not acknowledged; zero: none
	Unacknowledged int64 // number of entries that were delivered and not acknowledged
	Consumers      int64 // number of consumers that have read from it
}

// CreateGroup makes a group that begins with the first entry whose id is higher than the parameter
// after. It also makes the stream if there is none. If the group exists, it stays as it is.
func (k Space) CreateGroup(ctx context.Context, stream, group string, after ID) error {
	return k.store.call(ctx, "create a group of "+k.key(stream), func(ctx context.Context) error {
		err := k.store.client.XGroupCreateMkStream(ctx, k.key(stream), group, after.String()).Err()
		if redis.HasErrorPrefix(err, "BUSYGROUP") {
			return nil
		}
		return err
	})
}

// MoveGroups sets the positions of groups of many users, in one round trip: the given group on
// the stream of users[n] gets the position ids[n]. Users without the group are skipped.
func (s *Store) MoveGroups(ctx context.Context, users []vocab.Username, stream, group string, ids []ID) error {
	if len(users) == 0 {
		return nil
	}
	return s.call(ctx, "move groups", func(ctx context.Context) error {
		return moveFault(s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for n, u := range users {
				if key := s.Of(u).key(stream); s.isStandIn {
					remakeScript.Eval(ctx, p, []string{key}, group, ids[n].String())
				} else {
					p.XGroupSetID(ctx, key, group, ids[n].String())
				}
			}
			return nil
		}))
	})
}

// moveFault returns the first error of the answers, except for those about missing streams and
// groups. The parameter err is the error of the whole pipeline.
func moveFault(answers []redis.Cmder, err error) error {
	if len(answers) == 0 {
		return err
	}
	for _, a := range answers {
		if err := a.Err(); err != nil && !isGroupMissing(err) {
			return err
		}
	}
	return nil
}

// isGroupMissing reports whether err says that the stream or the group does not exist.
func isGroupMissing(err error) bool {
	return redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "The XGROUP subcommand requires the key to exist")
}

// remakeScript moves a group on the stand-in, which has no XGROUP SETID: it removes the group and
// makes it again. The stand-in then forgets which entries of the group wait for an acknowledgement.
var remakeScript = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1]) == 1 then
	redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[2])
end
return 'OK'`)

// Groups returns the groups of a stream of many users, in at most two round trips.
func (s *Store) Groups(ctx context.Context, users []vocab.Username, stream string) ([][]Group, error) {
	all := make([][]Group, len(users))
	err := s.call(ctx, "list groups", func(ctx context.Context) error {
		answers, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, u := range users {
				p.XInfoGroups(ctx, s.Of(u).key(stream))
			}
			return nil
		})
		if err != nil && !isAnswer(err) {
			return err
		}
		for n, a := range answers {
			if all[n], err = groupsOf(a.(*redis.XInfoGroupsCmd)); err != nil {
				return err
			}
		}
		return s.addPending(ctx, users, stream, all)
	})
	return all, err
}

// groupsOf returns the groups in an answer. A stream that does not exist has no groups.
func groupsOf(answer *redis.XInfoGroupsCmd) ([]Group, error) {
	found, err := answer.Result()
	if redis.HasErrorPrefix(err, "no such key") {
		return nil, nil
	}
	groups := make([]Group, len(found))
	for n, f := range found {
		groups[n] = Group{Name: f.Name, Unacknowledged: f.Pending, Consumers: f.Consumers}
		if f.Pending > 0 {
			groups[n].Pending.Seq = 1 // any id but zero; addPending reads the real id
		}
		if err == nil {
			groups[n].Delivered, err = ParseID(f.LastDeliveredID)
		}
	}
	return groups, err
}

// addPending reads the lowest pending ids of the groups that have pending entries.
func (s *Store) addPending(ctx context.Context, users []vocab.Username, stream string, all [][]Group) error {
	p := s.client.Pipeline()
	var asked []*Group
	for n, groups := range all {
		for k := range groups {
			if g := &groups[k]; g.Pending != (ID{}) {
				p.XPending(ctx, s.Of(users[n]).key(stream), g.Name)
				asked = append(asked, g)
			}
		}
	}
	answers, err := p.Exec(ctx)
	for n, a := range answers {
		found := a.(*redis.XPendingCmd).Val()
		if err != nil {
			break
		}
		asked[n].Pending = ID{}
		if found.Count > 0 {
			asked[n].Pending, err = ParseID(found.Lower)
		}
	}
	return err
}

// Oldest returns the id of the first entry of a stream for each of many users, in one round trip.
// The id is zero for a user whose stream has no entry.
func (s *Store) Oldest(ctx context.Context, users []vocab.Username, stream string) ([]ID, error) {
	ids := make([]ID, len(users))
	err := s.call(ctx, "read first ids", func(ctx context.Context) error {
		answers, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, u := range users {
				p.XRangeN(ctx, s.Of(u).key(stream), "-", "+", 1)
			}
			return nil
		})
		for n, a := range answers {
			if found := a.(*redis.XMessageSliceCmd).Val(); err == nil && len(found) > 0 {
				ids[n], err = ParseID(found[0].ID)
			}
		}
		return err
	})
	return ids, err
}
