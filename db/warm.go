package db

import "github.com/lightweb/lightweb/engine/vocab"

// Warm tells whether reading u's database would open no connection: one is there and idle. A moment later that may be
// otherwise; it serves to limit how fast strangers can make connections be opened.
func (c *Cluster) Warm(u vocab.Username) bool {
	c.users.mu.Lock()
	defer c.users.mu.Unlock()
	return len(c.users.byName[c.userDatabase(u)]) > 0
}
