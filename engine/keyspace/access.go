package keyspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Access is a Redis user with which a program can read one stream of one Lightweb user.
type Access struct {
	Name  string   // its hyphen sets it apart from names of Lightweb users
	Rules []string // the arguments of ACL SETUSER
}

// streamCommands lists the commands that a program needs to read a stream, alone or in a
// consumer group.
var streamCommands = []string{
	"xread", "xreadgroup", "xack", "xclaim", "xautoclaim", "xpending", "xrange", "xrevrange", "xlen", "xinfo",
	"ping", "hello", "auth", "select", "client|setname", "client|id",
	"cluster|slots", "cluster|shards", "command", // client libraries send these to a cluster first
}

// StreamAccess returns the access for a program that reads a stream of a Lightweb user, and reads,
// adds and deletes the dead letters of the stream, which are in <stream>:dead. The program cannot
// change the entries of the stream or use any other key. The rules contain the digest of the
// password, not the password.
func (s *Store) StreamAccess(u vocab.Username, stream, password string) Access {
	digest := sha256.Sum256([]byte(password))
	key := s.Of(u).key(stream)
	dead := key + ":dead"
	rules := []string{"reset", "on", "#" + hex.EncodeToString(digest[:]), "~" + key}
	for _, c := range streamCommands {
		rules = append(rules, "+"+c)
	}
	return Access{accessName(u), append(rules, "(~"+dead+" +xadd +xrange +xlen +xdel)")}
}

// GrantAccess creates or changes the Redis user on every server. The result saved is true if all
// servers have written the user to their ACL files. A server without such a file loses the user
// when it restarts. After an error, some servers may have the user.
func (s *Store) GrantAccess(ctx context.Context, a Access) (saved bool, err error) {
	var forgetful atomic.Bool // a server could not save the user
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

// accessName returns the name of the Redis user with StreamAccess.
func accessName(u vocab.Username) string { return "lightweb-" + u.String() }

// RevokeAccess removes from every server the Redis user that GrantAccess created from a result of
// StreamAccess. It does nothing on a server that has no such user.
func (s *Store) RevokeAccess(ctx context.Context, u vocab.Username) error {
	name := accessName(u)
	return s.call(ctx, "remove the user "+name+" of Redis", func(ctx context.Context) error {
		return s.onEveryServer(ctx, func(ctx context.Context, c redis.UniversalClient) error {
			removed, err := c.ACLDelUser(ctx, name).Result()
			if err == nil && removed > 0 {
				_ = c.Do(ctx, "ACL", "SAVE").Err() // it fails on a server without a file of users, which forgets the user anyway
			}
			return err
		})
	})
}

// onEveryServer calls the function do for all servers of a cluster concurrently. Without a cluster
// it calls the function for the only server.
func (s *Store) onEveryServer(ctx context.Context, do func(context.Context, redis.UniversalClient) error) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return do(ctx, s.client)
	}
	return cluster.ForEachShard(ctx, func(ctx context.Context, c *redis.Client) error { return do(ctx, c) })
}
