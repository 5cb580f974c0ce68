package embedded

import (
	"context"
	"os"
	"strconv"
	"strings"
)

// Of the memory that there is a quarter is PostgreSQL's own cache: a database of its own for every
// user has catalogues of its own, some 2 MB of which every connection reads. Pages that are never
// used take nothing, but making and dropping a database walks over all of them.
const (
	leastBuffers = 128 << 20
	mostBuffers  = 2 << 30
)

// sharedBuffers returns how large shared_buffers are made, in bytes.
func sharedBuffers() int64 {
	memory := physicalMemory()
	if limit, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil { // a container's; "max" is none
		if n, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil {
			memory = min(memory, n)
		}
	}
	return min(max(memory/4, leastBuffers), mostBuffers)
}

// logCompression returns how the pages in the log are compressed: lz4 costs a tenth of what pglz
// does, and not every server is built with it.
func (c *Cluster) logCompression(ctx context.Context) string {
	if _, err := c.as.Run(ctx, c.data, c.bin.path("postgres"), "-D", ".", "-C", "wal_compression", "-c", "wal_compression=lz4"); err != nil {
		return "on"
	}
	return "lz4"
}
