package db

import (
	"context"
	"time"
)

// HostDialect returns the signature dialect that a host took last, empty when none was remembered since then.
func (c *Cluster) HostDialect(ctx context.Context, host string, since time.Time) (string, error) {
	var d string
	err := c.instance.QueryRow(ctx, `SELECT coalesce(dialect, '') FROM hosts WHERE host = $1 AND learned_at >= $2`, host, since).Scan(&d)
	if isNoRows(err) {
		return "", nil
	}
	return d, storeFault("read host", err)
}

// LearnHostDialect remembers the signature dialect that a host took.
func (c *Cluster) LearnHostDialect(ctx context.Context, host, dialect string, now time.Time) error {
	_, err := c.instance.Exec(ctx, `INSERT INTO hosts (host, dialect, learned_at) VALUES ($1, $2, $3)
		ON CONFLICT (host) DO UPDATE SET dialect = excluded.dialect, learned_at = excluded.learned_at`, host, dialect, now)
	return storeFault("remember host", err)
}
