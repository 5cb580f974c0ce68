package instance

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// SetEpoch sets the serving epoch that j uses.
func (j Journal) SetEpoch(epoch int64) { j.epoch.Store(epoch) }

// TakeAll takes all connections except those reserved for Users.State. The caller gives them back
// with release().
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
