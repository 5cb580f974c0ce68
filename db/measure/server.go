package measure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
)

// Server describes the PostgreSQL server of a measurement.
type Server struct {
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
	Local    bool              `json:"local"` // the server is reached over a unix socket or loopback
	Backend  int               `json:"-"`     // the number of the server's process that answered
}

// DescribeServer reads the server's version and some of its settings.
func (d *Databases) DescribeServer(ctx context.Context) (Server, error) {
	version, err := d.instance.ServerVersion(ctx)
	if err != nil {
		return Server{}, err
	}
	s := Server{Version: version, Settings: map[string]string{}}
	err = d.instance.InTx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return s.readSettings(ctx, tx) })
	return s, postgres.Fault("ask for the server's settings", err)
}

func (s *Server) readSettings(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1)`,
		[]string{"fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_connections", "max_wal_size", "wal_compression"})
	if err != nil {
		return err
	}
	var name, value string
	if _, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error { s.Settings[name] = value; return nil }); err != nil {
		return err
	}
	return tx.QueryRow(ctx, `SELECT pg_backend_pid(), coalesce(inet_server_addr() <<= ANY('{127.0.0.0/8,::1}'::inet[]), true)`).Scan(&s.Backend, &s.Local)
}

// CountWaits counts the sessions of Lightweb that run a statement now, by the event for which
// they wait, such as "IO/WALSync". Sessions that do not wait are counted under "CPU".
func (d *Databases) CountWaits(ctx context.Context) (map[string]int, error) {
	waits := map[string]int{}
	err := d.instance.InTx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT coalesce(wait_event_type || '/' || wait_event, 'CPU'), count(*) FROM pg_stat_activity
			WHERE application_name = 'lightweb' AND state = 'active' AND pid <> pg_backend_pid() GROUP BY 1`)
		if err != nil {
			return err
		}
		var event string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&event, &n}, func() error { waits[event] = n; return nil })
		return err
	})
	return waits, postgres.Fault("ask what sessions wait for", err)
}
