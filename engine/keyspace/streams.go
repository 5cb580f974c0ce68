package keyspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ID is the id of an entry of a stream. The ids in a stream increase.
type ID struct{ Milli, Seq uint64 }

// ParseID parses an id in the form of Redis, <milliseconds>-<number>.
func ParseID(s string) (ID, error) {
	ms, seq, ok := strings.Cut(s, "-")
	milli, err1 := strconv.ParseUint(ms, 10, 64)
	n, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return ID{}, fmt.Errorf("%.60q is not the id of an event, such as 1771675203871-42", s)
	}
	return ID{milli, n}, nil
}

func (id ID) String() string {
	return strconv.FormatUint(id.Milli, 10) + "-" + strconv.FormatUint(id.Seq, 10)
}

// Less reports whether id comes before other.
func (id ID) Less(other ID) bool {
	return id.Milli < other.Milli || id.Milli == other.Milli && id.Seq < other.Seq
}

// Entry is one entry of a stream.
type Entry struct {
	ID     ID
	Fields []string // names and values in turn
}

// Field returns the value of a field, or "" if there is none with that name.
func (e Entry) Field(name string) string {
	for n := 0; n+1 < len(e.Fields); n += 2 {
		if e.Fields[n] == name {
			return e.Fields[n+1]
		}
	}
	return ""
}

// appendScript appends entries if the last id of the stream is the one that the caller expects,
// and returns the last id of the stream. The script checks and appends in one step. So if the
// server has lost entries, it gets no new ones. Otherwise the stream would have a gap. The last id
// of a stream without entries is empty on the stand-in of package embedded.
var appendScript = redis.NewScript(`
local last = '0-0'
if redis.call('EXISTS', KEYS[1]) == 1 then
	local info = redis.call('XINFO', 'STREAM', KEYS[1])
	for n = 1, #info, 2 do
		if info[n] == 'last-generated-id' and info[n + 1] ~= '' then last = info[n + 1] end
	end
end
local at = 4
if last ~= ARGV[1] then return last end
while at <= #ARGV do
	local size = tonumber(ARGV[3])
	last = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], ARGV[at], unpack(ARGV, at + 1, at + size))
	at = at + 1 + size
end
return last`)

// Append appends entries to a stream if the last id of the stream equals the parameter after. It
// returns the new last id. If the stream has another last id, Append adds nothing and returns that
// id. All entries must have the same number of fields. Append drops the oldest entries of the
// stream if there are more than keep. The server may leave a few more than that.
func (k Space) Append(ctx context.Context, stream string, after ID, keep int, entries []Entry) (last ID, err error) {
	if len(entries) == 0 {
		return after, nil
	}
	args := []any{after.String(), keep, len(entries[0].Fields)}
	for _, e := range entries {
		args = append(args, e.ID.String())
		for _, f := range e.Fields {
			args = append(args, f)
		}
	}
	err = k.store.call(ctx, "append to "+k.key(stream), func(ctx context.Context) error {
		answer, err := appendScript.Run(ctx, k.store.client, []string{k.key(stream)}, args...).Text()
		if err == nil {
			last, err = ParseID(answer)
		}
		return err
	})
	return last, err
}

// LastID returns the highest id that the stream has ever had, or the zero ID if there is no
// stream.
func (k Space) LastID(ctx context.Context, stream string) (last ID, err error) {
	err = k.store.call(ctx, "read the last id of "+k.key(stream), func(ctx context.Context) error {
		answer, err := appendScript.Run(ctx, k.store.client, []string{k.key(stream)}, "", 0, 0).Text()
		if err == nil {
			last, err = ParseID(answer)
		}
		return err
	})
	return last, err
}

// Length returns how many entries a stream has.
func (k Space) Length(ctx context.Context, stream string) (n int64, err error) {
	err = k.store.call(ctx, "count entries of "+k.key(stream), func(ctx context.Context) error {
		n, err = k.store.client.XLen(ctx, k.key(stream)).Result()
		return err
	})
	return n, err
}

// LastIDs returns the LastID of a stream for each of many users, in one round trip.
func (s *Store) LastIDs(ctx context.Context, users []vocab.Username, stream string) ([]ID, error) {
	ids := make([]ID, len(users))
	err := s.call(ctx, "read last ids", func(ctx context.Context) error {
		answers, err := s.pipeline(ctx, func(p redis.Pipeliner) {
			for _, u := range users {
				appendScript.EvalSha(ctx, p, []string{s.Of(u).key(stream)}, "", 0, 0)
			}
		})
		for n, a := range answers {
			if err == nil {
				ids[n], err = ParseID(a.(*redis.Cmd).Val().(string))
			}
		}
		return err
	})
	return ids, err
}

// pipeline sends commands in one round trip. If the server does not have appendScript, as after
// a restart, pipeline loads the script and sends the commands again.
func (s *Store) pipeline(ctx context.Context, queue func(redis.Pipeliner)) ([]redis.Cmder, error) {
	send := func() ([]redis.Cmder, error) {
		p := s.client.Pipeline()
		queue(p)
		return p.Exec(ctx)
	}
	answers, err := send()
	if err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return answers, err
	}
	if err := appendScript.Load(ctx, s.client).Err(); err != nil {
		return nil, err
	}
	return send()
}

// Forget removes a stream.
func (k Space) Forget(ctx context.Context, stream string) error {
	return k.store.call(ctx, "remove "+k.key(stream), func(ctx context.Context) error {
		return k.store.client.Del(ctx, k.key(stream)).Err()
	})
}

// Range returns up to n entries after an id, the oldest first.
func (k Space) Range(ctx context.Context, stream string, after ID, n int) (entries []Entry, err error) {
	err = k.store.call(ctx, "read "+k.key(stream), func(ctx context.Context) error {
		found, err := k.store.client.XRangeN(ctx, k.key(stream), "("+after.String(), "+", int64(n)).Result()
		if err == nil {
			entries, err = entriesOf(found)
		}
		return err
	})
	return entries, err
}

// NewestBefore returns the last n entries before an id, the oldest first. If the id is zero, it
// returns the last n entries of the stream.
func (k Space) NewestBefore(ctx context.Context, stream string, before ID, n int) (entries []Entry, err error) {
	from := "+"
	if before != (ID{}) {
		from = "(" + before.String()
	}
	err = k.store.call(ctx, "read "+k.key(stream), func(ctx context.Context) error {
		found, err := k.store.client.XRevRangeN(ctx, k.key(stream), from, "-", int64(n)).Result()
		if err == nil {
			entries, err = entriesOf(found)
		}
		return err
	})
	slices.Reverse(entries)
	return entries, err
}

// Wait returns up to n entries after an id. If there are none, Wait waits for some. If none arrive
// within the duration while, it returns none.
func (k Space) Wait(ctx context.Context, stream string, after ID, n int, while time.Duration) (entries []Entry, err error) {
	err = k.store.callWithin(ctx, while+callLimit, "wait for "+k.key(stream), func(ctx context.Context) error {
		found, err := k.store.client.XRead(ctx, &redis.XReadArgs{Streams: []string{k.key(stream), after.String()}, Count: int64(n), Block: while}).Result()
		if err == nil && len(found) > 0 {
			entries, err = entriesOf(found[0].Messages)
		}
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return entries, err
}

func entriesOf(found []redis.XMessage) ([]Entry, error) {
	entries := make([]Entry, 0, len(found))
	for _, m := range found {
		id, err := ParseID(m.ID)
		if err != nil {
			return nil, err
		}
		e := Entry{ID: id}
		for name, value := range m.Values {
			text, _ := value.(string)
			e.Fields = append(e.Fields, name, text)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Sizes returns the memory of a stream for each of many users, in bytes. On the stand-in it makes
// one call for each user, because the stand-in looks at every field of a stream.
func (s *Store) Sizes(ctx context.Context, users []vocab.Username, stream string) ([]int64, error) {
	if !s.isStandIn {
		return s.measure(ctx, users, stream)
	}
	var all []int64
	for part := range slices.Chunk(users, 1) {
		sizes, err := s.measure(ctx, part, stream)
		if err != nil {
			return nil, err
		}
		all = append(all, sizes...)
	}
	return all, nil
}

// measure does the work of Sizes in one round trip.
func (s *Store) measure(ctx context.Context, users []vocab.Username, stream string) ([]int64, error) {
	sizes := make([]int64, len(users))
	err := s.call(ctx, "measure streams", func(ctx context.Context) error {
		answers, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, u := range users {
				p.MemoryUsage(ctx, s.Of(u).key(stream))
			}
			return nil
		})
		if errors.Is(err, redis.Nil) { // some have no stream
			err = nil
		}
		for n, a := range answers {
			sizes[n] = a.(*redis.IntCmd).Val()
		}
		return err
	})
	return sizes, err
}

// Trim removes the oldest entries of a stream, so that keep entries stay. It returns how many
// bytes that freed.
func (k Space) Trim(ctx context.Context, stream string, keep int) (freed int64, err error) {
	err = k.store.call(ctx, "trim "+k.key(stream), func(ctx context.Context) error {
		var before, after *redis.IntCmd
		_, err := k.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			before = p.MemoryUsage(ctx, k.key(stream))
			p.XTrimMaxLen(ctx, k.key(stream), int64(keep))
			after = p.MemoryUsage(ctx, k.key(stream))
			return nil
		})
		freed = before.Val() - after.Val()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return freed, err
}
