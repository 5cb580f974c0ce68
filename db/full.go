package db

import (
	"context"
	"time"
)

// growTime is how long after the server had no room for a connection some more are tried again.
const growTime = time.Second

// shrink makes do with the connections there are, after the server had no room for another, and tells whether there are
// any. The caller holds mu.
func (c *conns) shrink() bool {
	there := c.inUse() + c.shutting + c.idle.Len()
	c.ceiling = max(1, min(c.ceiling, there))
	c.grower.Reset(growTime)
	c.metrics.full.Inc()
	c.toldFull.Do(func() {
		c.log.Warn("server took no more connections", "open", there, "database.max_connections", c.limit,
			"hint", "raise max_connections of PostgreSQL, or lower database.max_connections")
	})
	return there > 0
}

// grow tries some more connections, bit by bit.
func (c *conns) grow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.ceiling = min(c.limit, c.ceiling+max(1, c.limit/16))
	if c.ceiling < c.limit {
		c.grower.Reset(growTime)
	}
	c.serve()
}

// fit lowers the limit, and returns what it was.
func (c *conns) fit(limit int) (was int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = c.limit
	c.limit, c.ceiling = min(c.limit, limit), min(c.ceiling, limit)
	return was
}

// Beside is how many connections an instance may use beside those to users' databases: to the instance database, for the
// lock of who serves, and of commands that run meanwhile.
const Beside = instanceConns + 8

// leastConns is how many connections to users' databases an instance needs for its classes of use.
const leastConns = 4

// Fit makes sure that the server has room for the connections that are configured: it warns when not, and uses fewer.
func (c *Cluster) Fit(ctx context.Context) error {
	var takes, reserved, ofRole int
	err := c.instance.QueryRow(ctx, `SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int +
		coalesce(current_setting('reserved_connections', true)::int, 0), rolconnlimit FROM pg_roles WHERE rolname = current_user`).
		Scan(&takes, &reserved, &ofRole) // what is reserved is for whoever must mend the server, be we superuser or not
	if err != nil {
		return storeFault("ask how many connections the server takes", err)
	}
	room := takes - reserved
	if ofRole >= 0 {
		room = min(room, ofRole)
	}
	used := max(leastConns, room-Beside)
	if wanted := c.users.fit(used); wanted > used {
		c.log.WarnContext(ctx, "server takes fewer connections than configured", "max_connections", takes, "reserved", reserved, "role_limit", ofRole,
			"database.max_connections", wanted, "beside", Beside, "used", used, "hint", "raise max_connections of PostgreSQL, or lower database.max_connections")
	}
	return nil
}
