package pool

import "time"

// growTime is how long after the server had no room for a connection some more are tried again.
const growTime = time.Second

// lowerCeiling limits the pool to the open connections, after the server had no room for another,
// and reports whether there are any. The caller holds mu.
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

// raiseCeiling allows some more connections, bit by bit.
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
