package keyspace

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Glance is the result of the method Glance.
type Glance struct {
	Texts    []string // in the order of their keys; "" for a missing key
	Elements []string // of the list; fewer than asked for if the list is shorter
}

// Glance reads the texts of some keys, and then the elements of a list up to the index in the
// parameter last. If last is -1, it reads all elements. It needs one round trip, but is no
// transaction: another process may write after the texts are read and before the list is.
func (k Space) Glance(ctx context.Context, texts []string, list string, last int) (g Glance, err error) {
	keys := make([]string, len(texts))
	for n, name := range texts {
		keys[n] = k.key(name)
	}
	err = k.store.call(ctx, "read "+k.key(list), func(ctx context.Context) error {
		var found *redis.SliceCmd
		var elements *redis.StringSliceCmd
		_, err := k.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			if len(keys) > 0 {
				found = p.MGet(ctx, keys...)
			}
			elements = p.LRange(ctx, k.key(list), 0, int64(last))
			return nil
		})
		if err != nil {
			return err
		}
		if found != nil {
			g.Texts = textsOf(found)
		}
		g.Elements = elements.Val()
		return nil
	})
	return g, err
}

// textsOf returns the texts that MGET found, with "" for missing keys.
func textsOf(found *redis.SliceCmd) []string {
	texts := make([]string, len(found.Val()))
	for n, f := range found.Val() {
		texts[n], _ = f.(string)
	}
	return texts
}

// ReplaceList replaces the elements of a list. The list expires after the duration while.
func (k Space) ReplaceList(ctx context.Context, list string, elements []string, while time.Duration) error {
	values := make([]any, len(elements))
	for n, e := range elements {
		values[n] = e
	}
	return k.store.call(ctx, "write "+k.key(list), func(ctx context.Context) error {
		return k.store.transact(ctx, func(p redis.Pipeliner) {
			p.Del(ctx, k.key(list))
			p.RPush(ctx, k.key(list), values...)
			p.Expire(ctx, k.key(list), while)
		})
	})
}

// Text is a key with a text. The key expires after the duration While.
type Text struct {
	Key, Value string
	While      time.Duration
	IfMissing  bool // a text that the key has already stays as it is
}

// storeText adds the call that stores a text to a pipeline.
func (k Space) storeText(ctx context.Context, p redis.Pipeliner, t Text) {
	if t.IfMissing {
		p.SetNX(ctx, k.key(t.Key), t.Value, t.While)
		return
	}
	p.Set(ctx, k.key(t.Key), t.Value, t.While)
}

// Texts returns the texts of keys, in one round trip, with "" for missing keys.
func (k Space) Texts(ctx context.Context, names []string) (texts []string, err error) {
	keys := make([]string, len(names))
	for n, name := range names {
		keys[n] = k.key(name)
	}
	err = k.store.call(ctx, "read texts", func(ctx context.Context) error {
		found := k.store.client.MGet(ctx, keys...)
		texts = textsOf(found)
		return found.Err()
	})
	return texts, err
}

// UserKey names a key of a user.
type UserKey struct {
	User vocab.Username
	Name string
}

// TextsOf returns the texts of keys of many users, in one round trip, with "" for missing keys.
func (s *Store) TextsOf(ctx context.Context, keys []UserKey) ([]string, error) {
	texts := make([]string, len(keys))
	err := s.call(ctx, "read texts", func(ctx context.Context) error {
		answers, err := s.pipeline(ctx, func(p redis.Pipeliner) {
			for _, k := range keys {
				p.Get(ctx, s.Of(k.User).key(k.Name))
			}
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		for n, a := range answers {
			if err := a.Err(); err != nil && !errors.Is(err, redis.Nil) {
				return err // such as of another server of a cluster
			}
			texts[n] = a.(*redis.StringCmd).Val()
		}
		return nil
	})
	return texts, err
}

// Use returns the text of a key, and makes the key expire when the duration while has passed from
// now. Use returns "" if the key does not exist.
func (k Space) Use(ctx context.Context, name string, while time.Duration) (text string, err error) {
	err = k.store.call(ctx, "use "+k.key(name), func(ctx context.Context) error {
		text, err = k.store.client.GetEx(ctx, k.key(name), while).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return text, err
}

// Enlist inserts an element at the start of a list. It returns the elements beyond the given
// number, which stay in the list until the caller removes them together with the keys that they
// name.
func (k Space) Enlist(ctx context.Context, list, element string, most int) (beyond []string, err error) {
	err = k.store.call(ctx, "add to "+k.key(list), func(ctx context.Context) error {
		var found *redis.StringSliceCmd
		err := k.store.transact(ctx, func(p redis.Pipeliner) {
			p.LPush(ctx, k.key(list), element)
			found = p.LRange(ctx, k.key(list), int64(most), -1)
		})
		beyond = found.Val()
		return err
	})
	return beyond, err
}

// Delist removes keys, and from lists the elements that name these keys, in one transaction. It
// returns how many of the keys existed.
func (k Space) Delist(ctx context.Context, lists []string, names ...string) (n int64, err error) {
	err = k.store.call(ctx, "remove from lists", func(ctx context.Context) error {
		var removed []*redis.IntCmd
		err := k.store.transact(ctx, func(p redis.Pipeliner) {
			for _, name := range names {
				removed = append(removed, p.Del(ctx, k.key(name)))
				for _, list := range lists {
					p.LRem(ctx, k.key(list), 0, name)
				}
			}
		})
		n = 0
		for _, r := range removed {
			n += r.Val()
		}
		return err
	})
	return n, err
}

// SetTexts stores texts, in one round trip.
func (k Space) SetTexts(ctx context.Context, texts []Text) error {
	return k.store.call(ctx, "write texts", func(ctx context.Context) error {
		_, err := k.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, t := range texts {
				k.storeText(ctx, p, t)
			}
			return nil
		})
		return err
	})
}

// AgreeTexts stores texts, and returns the texts that their keys have then, in one round trip. If
// several processes store different texts of the same keys with IfMissing, all get the same ones.
func (k Space) AgreeTexts(ctx context.Context, texts []Text) (agreed []string, err error) {
	keys := make([]string, len(texts))
	for n, t := range texts {
		keys[n] = k.key(t.Key)
	}
	err = k.store.call(ctx, "agree on texts", func(ctx context.Context) error {
		var found *redis.SliceCmd
		_, err := k.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, t := range texts {
				k.storeText(ctx, p, t)
			}
			found = p.MGet(ctx, keys...)
			return nil
		})
		agreed = textsOf(found)
		return err
	})
	return agreed, err
}

// Sweep calls isChosen for every key, with the user's name at the beginning of the key and with
// the rest of the key. It deletes the keys for which isChosen returns true, unless dryRun is true.
// Keys that are added or removed meanwhile may be missed, and isChosen may get a key more than
// once.
func (s *Store) Sweep(ctx context.Context, dryRun bool, isChosen func(user, name string) bool) error {
	cluster, isCluster := s.client.(*redis.ClusterClient)
	if !isCluster {
		return s.sweep(ctx, s.client, dryRun, isChosen)
	}
	var one sync.Mutex // isChosen is not called concurrently
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return s.sweep(ctx, c, dryRun, isChosen)
	})
}

// sweep is Sweep on one server.
func (s *Store) sweep(ctx context.Context, server redis.Cmdable, dryRun bool, isChosen func(user, name string) bool) error {
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		err := s.call(ctx, "sweep keys", func(ctx context.Context) (err error) {
			var keys []string
			if keys, cursor, err = server.Scan(ctx, cursor, "*", sweepStep).Result(); err != nil {
				return err
			}
			_, err = server.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, key := range keys {
					user, name, _ := strings.Cut(key, ":")
					if isChosen(strings.Trim(user, "{}"), name) && !dryRun {
						p.Unlink(ctx, key)
					}
				}
				return nil
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepStep is approximately the number of keys that one call of a sweep examines.
const sweepStep = 1000

// Delete removes keys, and returns how many of them existed.
func (k Space) Delete(ctx context.Context, names ...string) (n int64, err error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = k.key(name)
	}
	err = k.store.call(ctx, "delete keys", func(ctx context.Context) error {
		n, err = k.store.client.Del(ctx, keys...).Result()
		return err
	})
	return n, err
}
