package keyspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Access is a user of Redis by whose name a program reads one stream of one user of Lightweb.
type Access struct {
	Name  string   // no name of a Lightweb user: it has a hyphen
	Rules []string // of ACL SETUSER
}

// streamCommands are what a program needs that reads a stream, alone or in a consumer group.
var streamCommands = []string{
	"xread", "xreadgroup", "xack", "xclaim", "xautoclaim", "xpending", "xrange", "xrevrange", "xlen", "xinfo",
	"ping", "hello", "auth", "select", "client|setname", "client|id",
	"cluster|slots", "cluster|shards", "command", // which libraries ask a cluster first
}

// StreamAccess returns the access of a program that reads a stream of a user of Lightweb, and adds
// to its dead letters, <stream>:dead. It can neither add to the stream nor shorten it, and reaches
// no other key. The rules hold the digest of the password.
func (s *Store) StreamAccess(u vocab.Username, stream, password string) Access {
	digest := sha256.Sum256([]byte(password))
	key := s.Of(u).key(stream)
	dead := key + ":dead"
	rules := []string{"reset", "on", "#" + hex.EncodeToString(digest[:]), "~" + key}
	for _, c := range streamCommands {
		rules = append(rules, "+"+c)
	}
	return Access{"lightweb-" + u.String(), append(rules, "(~"+dead+" +xadd +xrange +xlen +xdel)")}
}

// GrantAccess makes the user of Redis, or changes it, on every server, and reports whether all of
// them have written it into their file of users: the others forget it when they end. Until it has
// ended without a fault some servers may have it.
func (s *Store) GrantAccess(ctx context.Context, a Access) (saved bool, err error) {
	var forgetful atomic.Bool // a server has no such file
	err = s.call(ctx, "make the user "+a.Name+" of Redis", func(ctx context.Context) error {
		return s.onEveryServer(ctx, func(ctx context.Context, c redis.UniversalClient) error {
			if err := c.ACLSetUser(ctx, a.Name, a.Rules...).Err(); err != nil {
				return err
			}
			if c.Do(ctx, "ACL", "SAVE").Err() != nil {
				forgetful.Store(true)
			}
			return nil
		})
	})
	return err == nil && !forgetful.Load(), err
}

// onEveryServer does something on all servers of a cluster at once, or on the only one.
func (s *Store) onEveryServer(ctx context.Context, do func(context.Context, redis.UniversalClient) error) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return do(ctx, s.client)
	}
	return cluster.ForEachShard(ctx, func(ctx context.Context, c *redis.Client) error { return do(ctx, c) })
}
