package pool

import "time"

// growTime is the time after which the pool raises its ceiling. It begins when the server had no
// room for a connection, and again with each raise.
const growTime = time.Second

// lowerCeiling limits the pool to the connections that are open, because the server had no room
// for another one. It reports whether any connections are open. The caller holds mu.
func (c *Pool) lowerCeiling() bool {
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

// raiseCeiling raises the ceiling by a sixteenth of the limit. It runs again after growTime,
// until the ceiling reaches the limit.
func (c *Pool) raiseCeiling() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.ceiling = min(c.limit, c.ceiling+max(1, c.limit/16))
	if c.ceiling < c.limit {
		c.grower.Reset(growTime)
	}
	c.serveWaiters()
}

// LowerLimit lowers the limit of connections, and returns the old one.
func (c *Pool) LowerLimit(limit int) (was int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = c.limit
	c.limit, c.ceiling = min(c.limit, limit), min(c.ceiling, limit)
	return was
}
