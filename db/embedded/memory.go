package embedded

import (
	"context"
	"os"
	"strconv"
	"strings"
)

// PostgreSQL's cache, shared_buffers, is a quarter of the memory, within these limits. The cache
// is large because each user's database has its own catalogues, and every connection reads some 2
// MB of them. It has an upper limit because PostgreSQL scans all of it to make or drop a
// database. Pages of the cache that are never used take no memory.
const (
	leastBuffers = 128 << 20
	mostBuffers  = 2 << 30
)

// sharedBuffers returns the size of shared_buffers, in bytes.
func sharedBuffers() int64 {
	memory := physicalMemory()
	if limit, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil { // the limit of a container; "max" means no limit
		if n, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil {
			memory = min(memory, n)
		}
	}
	return min(max(memory/4, leastBuffers), mostBuffers)
}

// logCompression returns the setting for the compression of pages in the WAL. The setting is lz4
// if the server is built with it. Otherwise it is "on", which means pglz and costs ten times as
// much.
func (c *Cluster) logCompression(ctx context.Context) string {
	if _, err := c.as.Run(ctx, c.data, c.bin.path("postgres"), "-D", ".", "-C", "wal_compression", "-c", "wal_compression=lz4"); err != nil {
		return "on"
	}
	return "lz4"
}
