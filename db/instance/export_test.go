package instance

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// SetEpoch makes j use another epoch.
func (j Journal) SetEpoch(epoch int64) { j.epoch.Store(epoch) }

// TakeAll takes all connections except those reserved for State, until release is called.
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
