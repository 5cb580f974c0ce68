package instance

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// SetEpoch makes j believe that it serves in another epoch.
func (j Journal) SetEpoch(epoch int64) { j.epoch.Store(epoch) }

// TakeAll takes every connection that all but State share, until the returned function.
func (d *Database) TakeAll(ctx context.Context) (release func(), err error) {
	var taken []*pgxpool.Conn
	release = func() {
		for _, conn := range taken {
			conn.Release()
		}
	}
	for range MaxConnections - lookupConns {
		conn, err := d.on.pool.Acquire(ctx)
		if err != nil {
			release()
			return nil, err
		}
		taken = append(taken, conn)
	}
	return release, nil
}
