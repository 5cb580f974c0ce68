package instance

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
)

// Server describes the PostgreSQL server on which a figure was measured.
type Server struct {
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
	Local    bool              `json:"local"` // reached over a socket or loopback
	Backend  int               `json:"-"`     // process that served the question
}

// Server asks the server what it is and how it is set.
func (d *Database) Server(ctx context.Context) (Server, error) {
	version, err := d.ServerVersion(ctx)
	if err != nil {
		return Server{}, err
	}
	s := Server{Version: version, Settings: map[string]string{}}
	rows, err := d.on.Query(ctx, `SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1)`,
		[]string{"fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_connections", "max_wal_size", "wal_compression"})
	if err != nil {
		return Server{}, postgres.Fault("ask for the server's settings", err)
	}
	var name, value string
	if _, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error { s.Settings[name] = value; return nil }); err != nil {
		return Server{}, postgres.Fault("ask for the server's settings", err)
	}
	err = d.on.QueryRow(ctx, `SELECT pg_backend_pid(), coalesce(inet_server_addr() <<= ANY('{127.0.0.0/8,::1}'::inet[]), true)`).Scan(&s.Backend, &s.Local)
	return s, postgres.Fault("ask for the server's process", err)
}

// CountWaits counts by the event for which they wait, such as "IO/WALSync", the sessions of
// Lightweb that are at work right now; those that wait for nothing are under "CPU".
func (d *Database) CountWaits(ctx context.Context) (map[string]int, error) {
	rows, err := d.on.Query(ctx, `SELECT coalesce(wait_event_type || '/' || wait_event, 'CPU'), count(*) FROM pg_stat_activity
		WHERE application_name = 'lightweb' AND state = 'active' AND pid <> pg_backend_pid() GROUP BY 1`)
	if err != nil {
		return nil, postgres.Fault("ask what sessions wait for", err)
	}
	waits := map[string]int{}
	var event string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&event, &n}, func() error { waits[event] = n; return nil })
	return waits, postgres.Fault("ask what sessions wait for", err)
}
